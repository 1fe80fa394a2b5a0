//! A folder with scripts, and what every test does with one.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use gpuemu_config::Framework;
use gpuemu_runners::executor::{
    Arguments, Callable, ColdScript, ExecutorError, Interpreter, NamedTensors, Pool, Program, WarmScript,
};
use gpuemu_tensor::{DType, Layout, Tensor};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const PATIENCE: Duration = Duration::from_secs(60);

pub const MATMUL: &str = r#"
import json, base64, sys
import numpy as np
def decode_tensor(encoded):
    data = base64.b64decode(encoded["data"])
    return np.frombuffer(data, dtype=np.dtype(encoded["dtype"])).reshape(encoded["shape"])
def encode_tensor(arr):
    return {"data": base64.b64encode(arr.tobytes()).decode("ascii"), "dtype": str(arr.dtype), "shape": list(arr.shape)}
request = json.loads(sys.stdin.read())
a = decode_tensor(request["inputs"]["a"]); b = decode_tensor(request["inputs"]["b"])
json.dump({"outputs": {"result": encode_tensor(np.matmul(a, b))}}, sys.stdout)
"#;

/// A script that answers with a list of integers, `numbers`, that its body makes.
pub fn numbers_script(body: &str) -> String {
    format!(
        r#"
import array, base64, json, os, sys
{body}
data = base64.b64encode(array.array("q", numbers).tobytes()).decode()
json.dump({{"outputs": {{"n": {{"data": data, "dtype": "int64", "shape": [len(numbers)]}}}}}}, sys.stdout)
"#
    )
}

/// The Python with NumPy: `cargo xtask test` names it. In CI it must be there.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("GPUEMU_TEST_PYTHON").map(PathBuf::from);
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(python.is_some() || !in_ci, "GPUEMU_TEST_PYTHON is not set; run the tests by `cargo xtask test`");
    if python.is_none() {
        eprintln!("skipped: GPUEMU_TEST_PYTHON is not set; `cargo xtask test` sets it");
    }
    python
}

/// A folder with scripts.
pub struct Project {
    folder: TempDir,
    pub python: PathBuf,
    written: Cell<u64>,
}

impl Project {
    pub fn new() -> Option<Self> {
        Some(Self { folder: TempDir::new().unwrap(), python: python()?, written: Cell::new(0) })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that looks older than everything that reads it, and newer than what was there.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        self.written.set(self.written.get() + 1);
        let time = SystemTime::now() - Duration::from_secs(10_000) + Duration::from_secs(self.written.get());
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        path
    }

    pub fn interpreter(&self) -> Interpreter {
        let root = self.folder.path().to_path_buf();
        Interpreter { python: self.python.clone(), root, memory_bytes: None, output_bytes: 512 << 20 }
    }

    pub fn cold(&self, script: &str) -> ColdScript {
        ColdScript::new(self.interpreter(), self.write("script.py", script)).unwrap()
    }

    pub fn warm(&self, pool: &Pool, script: &str) -> WarmScript {
        pool.script(&self.interpreter(), &self.write("script.py", script)).unwrap()
    }

    pub fn callable(&self, pool: &Pool, target: &str) -> Result<Callable, ExecutorError> {
        pool.callable(&self.interpreter(), target, "op", Framework::Numpy)
    }

    /// What a script fails with: cold, and in a worker that has proven itself by failing twice.
    pub fn failures(&self, script: &str) -> [ExecutorError; 2] {
        let cold = call(&mut self.cold(script), &[]).unwrap_err();
        let pool = Pool::new(1);
        let mut warm = self.warm(&pool, script);
        for _ in 0..2 {
            assert_eq!(call(&mut warm, &[]).unwrap_err(), cold);
        }
        let warm = call(&mut warm, &[]).unwrap_err();
        assert!(pool.distrusted().is_empty());
        [cold, warm]
    }

    /// Process ids that a script or callable wrote into a file.
    pub fn processes(&self, name: &str) -> Vec<i32> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }
}

pub fn try_call(
    program: &mut dyn Program,
    inputs: &[(String, Tensor)],
    parameters: Value,
    timeout: Duration,
) -> Result<NamedTensors, ExecutorError> {
    let Value::Object(parameters) = parameters else { panic!("parameters are an object") };
    program.call(&Arguments { inputs, parameters: &parameters, timeout })
}

pub fn call(program: &mut dyn Program, inputs: &[(String, Tensor)]) -> Result<NamedTensors, ExecutorError> {
    try_call(program, inputs, json!({}), PATIENCE)
}

/// The values of the only output.
pub fn values(program: &mut dyn Program, inputs: &[(String, Tensor)]) -> Vec<f64> {
    let outputs = call(program, inputs).unwrap();
    assert_eq!(outputs.len(), 1);
    outputs[0].1.to_f64()
}

pub fn named(name: &str, dtype: DType, shape: &[usize], values: &[f64]) -> (String, Tensor) {
    (name.to_string(), Tensor::from_f64(dtype, shape.to_vec(), values).unwrap())
}

/// Small integers, exact in every float dtype.
pub fn small(name: &str, dtype: DType, shape: &[usize]) -> (String, Tensor) {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|index| (index % 5) as f64 - 2.0).collect();
    named(name, dtype, shape, &values)
}

pub fn laid_out(layout: Layout, tensor: &Tensor) -> Tensor {
    let stored = layout.stored_shape(tensor.shape());
    let elements = tensor.to_contiguous_bytes();
    let count = stored.iter().product::<usize>() * tensor.dtype().size();
    layout.place(tensor.dtype(), tensor.shape(), &elements[..count]).unwrap()
}

/// Whether a process is at work: not gone, and not only waiting to be reaped by whoever inherited it.
pub fn is_running(process: i32) -> bool {
    if let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) {
        return !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']);
    }
    let id = rustix::process::Pid::from_raw(process).unwrap();
    !Path::new("/proc/self").exists() && rustix::process::test_kill_process(id).is_ok()
}

/// Waits for processes to be gone; a killed one takes a moment.
pub fn all_gone(processes: &[i32]) -> bool {
    let start = Instant::now();
    while processes.iter().any(|process| is_running(*process)) {
        if start.elapsed() > Duration::from_secs(10) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// A file that can be executed. It is made by another process: a descriptor to write it that a child of this one
/// happened to inherit would keep it from being executed.
pub fn executable(project: &Project, name: &str, text: &str) -> PathBuf {
    let (source, path) = (project.write("source", text), project.path(name));
    assert!(Command::new("cp").args([&source, &path]).status().unwrap().success());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
