//! A Python script that runs a case again without gpuemu.

use std::path::{Component, Path, PathBuf};

use gpuemu_config::{Config, Framework, OpSource};
use gpuemu_model::tensor_data::TensorData;
use gpuemu_tensor::{DType, Tensor};
use serde_json::{Value, json};

use super::open_case::OpenCase;
use crate::expected_error::ExpectedError;
use crate::report::text::case_line;

/// The first words of every script, by which one that may be written over is known.
const FIRST_WORDS: &str = "# Written by gpuemu";

/// Letters of a line of base64 text.
const LINE: usize = 100;

/// Writes a script that runs the open case again.
pub fn write(open: &OpenCase, config: &Config, file: &Path) -> Result<(), ExpectedError> {
    let failed = |error: std::io::Error| ExpectedError::plain(format!("cannot write {}: {error}", file.display()));
    match std::fs::read(file) {
        Ok(bytes) if !bytes.starts_with(FIRST_WORDS.as_bytes()) => {
            let message = format!("{} is there already, and was not written by gpuemu", file.display());
            return Err(ExpectedError::new(message, "name another file"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let script = script(open, config, &std::path::absolute(file)?)?;
    std::fs::write(file, script).map_err(failed)
}

fn script(open: &OpenCase, config: &Config, file: &Path) -> Result<String, ExpectedError> {
    let result = &open.result;
    let Some(op) = config.ops.iter().find(|op| op.name == result.op) else {
        return Err(ExpectedError::plain(format!("op '{}' is no longer in {}", result.op, config.file.display())));
    };
    if open.expected.is_empty() {
        let message = "the reference gave no output to compare with";
        return Err(ExpectedError::new(message, "`checks` says what went wrong"));
    }
    let mut case = json!({
        "op": op.name,
        "root": way_to(&std::path::absolute(&config.root)?, file),
        "framework": framework_name(config.project.framework),
        "parameters": open.parameters,
        "check_nan": config.validation.check_nan,
        "check_inf": config.validation.check_inf,
        "atomics": open.atomics,
        "inputs": open.inputs.iter().map(|(name, tensor)| input(name, tensor)).collect::<Vec<_>>(),
        "outputs": outputs(open),
    });
    let (kind, target) = match &op.source {
        OpSource::Module(target) => ("module", target),
        OpSource::Script(path) => ("script", path),
        OpSource::Kernel(_) | OpSource::Submitted => {
            let message = format!("op '{}' has no module or script that a Python program could run", op.name);
            return Err(ExpectedError::plain(message));
        }
    };
    case[kind] = Value::from(target.as_str());
    // An apostrophe can only stand inside of a JSON string, where it can be written in another way.
    let case = serde_json::to_string_pretty(&case)?.replace('\'', "\\u0027");
    let mut head =
        comment(&format!("{FIRST_WORDS} {}: op {}, {}", env!("CARGO_PKG_VERSION"), op.name, case_line(result)));
    for finding in &result.failures {
        let first = finding.headline();
        head.push_str(&comment(&format!("# {}: {first} [{}]", finding.check, finding.bug_class)));
    }
    let main = "if __name__ == \"__main__\":\n    sys.exit(main(json.loads(CASE)))\n";
    Ok(format!("{head}{}\n\nCASE = r'''\n{case}\n'''\n\n{main}", include_str!("reproduction.py")))
}

/// A comment of one line, whatever is in it.
fn comment(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("{line}\n")
}

fn framework_name(framework: Framework) -> &'static str {
    match framework {
        Framework::Pytorch => "pytorch",
        Framework::Jax => "jax",
        Framework::Tensorflow => "tensorflow",
        Framework::Numpy => "numpy",
    }
}

/// The project's folder as seen from a file: relative where the file lies in the project, which may then be moved.
fn way_to(root: &Path, file: &Path) -> String {
    let folder = file.parent().and_then(|folder| folder.strip_prefix(root).ok());
    let folder = folder.filter(|inside| inside.components().all(|part| matches!(part, Component::Normal(_))));
    let up: Option<PathBuf> = folder.map(|inside| inside.components().map(|_| "..").collect());
    match up {
        Some(up) if up.as_os_str().is_empty() => ".".to_string(),
        Some(up) => up.display().to_string(),
        None => root.display().to_string(),
    }
}

fn input(name: &str, tensor: &Tensor) -> Value {
    json!({
        "name": name,
        "dtype": tensor.dtype().name(),
        "shape": tensor.shape(),
        "strides": tensor.strides(),
        "offset": tensor.offset(),
        "storage": base64(DType::U8, tensor.storage().as_bytes()),
    })
}

fn outputs(open: &OpenCase) -> Vec<Value> {
    let pairs = open.expected.iter().zip(&open.allowed).zip(&open.output_dtypes);
    let numbers = |tensor: &Tensor| base64(DType::F64, &tensor.to_contiguous_bytes());
    let mut outputs = Vec::new();
    for (((name, expected), (_, allowed)), (_, dtype)) in pairs {
        outputs.push(json!({
            "name": name,
            "dtype": dtype.name(),
            "shape": expected.shape(),
            "expected": numbers(expected),
            "allowed": numbers(allowed),
        }));
    }
    outputs
}

/// Bytes as lines of base64 text.
fn base64(dtype: DType, bytes: &[u8]) -> Vec<String> {
    let tensor = Tensor::contiguous(dtype, vec![bytes.len() / dtype.size()], bytes);
    let text = tensor.ok().and_then(|tensor| TensorData::base64(&tensor).data).unwrap_or_default();
    text.as_bytes().chunks(LINE).map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_inside_of_the_project_finds_it_by_a_relative_path() {
        let way = |file: &str| way_to(Path::new("/home/me/project"), Path::new(file));
        assert_eq!(way("/home/me/project/case.py"), ".");
        assert_eq!(way("/home/me/project/a/b/case.py"), "../..");
        assert_eq!(way("/home/me/case.py"), "/home/me/project");
        assert_eq!(way("/home/me/project/../case.py"), "/home/me/project");
    }
}
