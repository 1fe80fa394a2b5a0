//! Scripts that behave: cold, warm, and edited in between.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gpuemu_config::Framework;
use gpuemu_runners::executor::{ColdScript, ExecutorError, Interpreter, NamedTensors, Pool};
use gpuemu_tensor::{DType, Layout};
use serde_json::{Value, json};

use crate::project::{
    MATMUL, PATIENCE, Project, all_gone, call, executable, is_running, laid_out, named, numbers_script, small,
    try_call, values,
};

#[test]
fn the_documented_script_runs_cold_and_warm() {
    let Some(project) = Project::new() else { return };
    let pool = Pool::new(2);
    let (mut cold, mut warm) = (project.cold(MATMUL), project.warm(&pool, MATMUL));
    for dtype in [DType::F64, DType::F32, DType::BF16] {
        for (m, k, n) in [(3, 4, 2), (0, 4, 2), (2, 0, 3)] {
            let inputs = [small("a", dtype, &[m, k]), small("b", dtype, &[k, n])];
            let (a, b) = (inputs[0].1.to_f64(), inputs[1].1.to_f64());
            let product: Vec<f64> = (0..m * n)
                .map(|index| (0..k).fold(0.0, |sum, inner| sum + a[index / n * k + inner] * b[inner * n + index % n]))
                .collect();
            // NumPy multiplies matrices of bfloat16 in float32.
            let result = if dtype == DType::BF16 { DType::F32 } else { dtype };
            let expected = vec![named("result", result, &[m, n], &product)];
            assert_eq!(call(&mut cold, &inputs).unwrap(), expected);
            assert_eq!(call(&mut warm, &inputs).unwrap(), expected);
        }
    }
    assert!(pool.distrusted().is_empty(), "{:?}", pool.distrusted());
}

#[test]
fn every_dtype_and_layout_arrives() {
    let Some(project) = Project::new() else { return };
    let head = MATMUL.split("a = decode_tensor").next().unwrap();
    let script = format!(
        "{head}
arrays = {{name: decode_tensor(value) for name, value in request['inputs'].items()}}
json.dump({{'outputs': {{name: encode_tensor(array) for name, array in arrays.items()}}}}, sys.stdout)
"
    );
    let values: Vec<f64> = (0..12).map(|index| f64::from(index % 3 % 2)).collect();
    let mut inputs = Vec::new();
    for dtype in DType::ALL {
        let plain = named("x", dtype, &[3, 4], &values).1;
        inputs.extend(Layout::ALL.map(|layout| (format!("{dtype} {layout}"), laid_out(layout, &plain))));
    }
    let expected: NamedTensors = inputs.iter().map(|(name, tensor)| (name.clone(), tensor.to_contiguous())).collect();
    assert_eq!(call(&mut project.cold(&script), &inputs).unwrap(), expected);
    let mut warm = project.warm(&Pool::new(1), &script);
    (0..3).for_each(|_| assert_eq!(call(&mut warm, &inputs).unwrap(), expected));
}

#[test]
fn a_script_finds_what_python_gives_it_and_changes_nothing_for_the_next_run() {
    let Some(project) = Project::new() else { return };
    project.write("beside/helper.py", "value = 7\n");
    project.write("of_the_root.py", "value = 11\n");
    let body = r#"
import helper, of_the_root
request = json.loads(sys.stdin.read())
assert set(request) == {"inputs", "kwargs"}, request
assert request["kwargs"] == {"axis": -1, "mode": "ä", "deep": {"x": [1.5, None, True]}}, request
assert __name__ == "__main__" and sys.modules["__main__"].__dict__ is globals()
assert sys.argv == [__file__] and os.getcwd() == os.path.dirname(sys.path[0]) == sys.path[1]
assert sys.dont_write_bytecode and os.path.basename(sys.path[0]) == "beside"
assert "GPUEMU_TEST_LEFT" not in os.environ and "left" not in globals()
numbers = [len(sys.path), helper.value, of_the_root.value]
os.environ["GPUEMU_TEST_LEFT"] = left = "1"
os.environ.pop("PATH", None)
sys.path.insert(0, "/nowhere")
sys.argv.append("more")
os.chdir("/")
sys.stderr = None
"#;
    let script = project.write("beside/script.py", &numbers_script(body));
    let parameters = json!({"axis": -1, "mode": "ä", "deep": {"x": [1.5, null, true]}});
    let expected = try_call(
        &mut ColdScript::new(project.interpreter(), script.clone()).unwrap(),
        &[],
        parameters.clone(),
        PATIENCE,
    );
    assert_eq!(expected.as_ref().unwrap()[0].1.to_f64()[1..], [7.0, 11.0]);
    let pool = Pool::new(1);
    // Relative to the root, too.
    let mut warm = pool.script(&project.interpreter(), Path::new("beside/script.py")).unwrap();
    for _ in 0..4 {
        assert_eq!(try_call(&mut warm, &[], parameters.clone(), PATIENCE), expected);
    }
    assert!(pool.distrusted().is_empty(), "{:?}", pool.distrusted());
    assert!(!project.path("beside/__pycache__").exists());
}

#[test]
fn other_programs_are_executed() {
    let Some(project) = Project::new() else { return };
    let document = json!({"outputs": {"y": {"data": "AACAPw==", "dtype": "float32", "shape": [1]}}});
    let text = format!("#!/bin/sh\ncat > request.json\necho '{document}'\n");
    let script = executable(&project, "script.sh", &text);
    let input = [named("x", DType::F32, &[1], &[1.0])];
    assert_eq!(values(&mut ColdScript::new(project.interpreter(), script.clone()).unwrap(), &input), [1.0]);
    let request: Value = serde_json::from_slice(&std::fs::read(project.path("request.json")).unwrap()).unwrap();
    let x = json!({"data": "AACAPw==", "dtype": "float32", "shape": [1]});
    assert_eq!(request, json!({"inputs": {"x": x}, "kwargs": {}}));
    let pool = Pool::new(1);
    assert_eq!(values(&mut pool.script(&project.interpreter(), &script).unwrap(), &input), [1.0]);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = call(&mut ColdScript::new(project.interpreter(), script).unwrap(), &input).unwrap_err();
    assert!(error.to_string().contains("chmod +x"), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    let Some(project) = Project::new() else { return };
    let missing = ColdScript::new(project.interpreter(), PathBuf::from("none.py")).unwrap_err();
    assert!(missing.script_is_missing() && missing.to_string().contains("none.py"), "{missing}");
    let pool = Pool::new(1);
    assert_eq!(pool.script(&project.interpreter(), Path::new("none.py")).unwrap_err(), missing);
    let folder = ColdScript::new(project.interpreter(), project.path("")).unwrap_err();
    assert!(!folder.script_is_missing() && folder.to_string().contains("not a file"), "{folder}");
    let script = project.write("script.py", "");
    let no_python = Interpreter { python: PathBuf::from("no-such-python"), ..project.interpreter() };
    let no_root = Interpreter { root: project.path("gone"), ..project.interpreter() };
    for (interpreter, expected) in [(no_python, "no-such-python"), (no_root, "gone does not exist")] {
        let cold = call(&mut ColdScript::new(interpreter.clone(), script.clone()).unwrap(), &[]).unwrap_err();
        assert!(matches!(cold, ExecutorError::Spawn { .. }) && cold.to_string().contains(expected), "{cold}");
        assert_eq!(pool.script(&interpreter, &script).unwrap_err(), cold);
        assert_eq!(pool.callable(&interpreter, "ops", "op", Framework::Numpy).unwrap_err(), cold);
    }
}

#[test]
fn a_proven_worker_is_asked_alone() {
    let Some(project) = Project::new() else { return };
    let pool = Pool::new(1);
    let log = numbers_script("open('log', 'a').write(f'{os.getpid()} ')\nnumbers = [1]");
    let mut warm = project.warm(&pool, &log);
    (0..5).for_each(|_| assert_eq!(values(&mut warm, &[]), [1.0]));
    drop(warm);
    // The next lease has the same worker, which need not prove anything.
    let mut warm = pool.script(&project.interpreter(), &project.path("script.py")).unwrap();
    assert_eq!(values(&mut warm, &[]), [1.0]);
    let seen = project.processes("log");
    let worker = seen[0];
    assert_eq!(seen.len(), 6 + 2);
    assert_eq!(seen.iter().filter(|process| **process == worker).count(), 6);
    assert!(seen[1] != worker && seen[3] != worker && seen[1] != seen[3]);
    assert!(is_running(worker));
    drop((warm, pool));
    assert!(all_gone(&[worker]));
}

#[test]
fn a_script_that_remembers_is_distrusted() {
    let Some(project) = Project::new() else { return };
    let pool = Pool::new(1);
    let body = r#"
json.counter = getattr(json, "counter", 0) + 1
open("log", "a").write(f"{os.getpid()} ")
numbers = [json.counter]
"#;
    let counting = numbers_script(body);
    let mut warm = project.warm(&pool, &counting);
    (0..4).for_each(|_| assert_eq!(values(&mut warm, &[]), [1.0]));
    let distrusted = pool.distrusted();
    assert_eq!(distrusted.len(), 1);
    assert_eq!(distrusted[0].0, project.path("script.py"));
    assert_eq!(distrusted[0].1, "element 0 of output 'n' is 2.0 warm and 1.0 cold");
    // Another lease knows.
    let mut other = pool.script(&project.interpreter(), &project.path("script.py")).unwrap();
    assert_eq!(values(&mut other, &[]), [1.0]);
    let mut seen = project.processes("log");
    assert_eq!(seen.len(), 2 + 2 + 2 + 1);
    assert!(all_gone(&seen[..1]));
    seen.sort_unstable();
    seen.dedup();
    // The worker was asked twice; every other run had a process of its own.
    assert_eq!(seen.len(), 6);
    // What was written anew is trusted anew.
    drop((warm, other));
    project.warm(&pool, &numbers_script("numbers = [9]"));
    assert!(pool.distrusted().is_empty());
}

#[test]
fn a_script_that_works_only_cold_is_distrusted() {
    let Some(project) = Project::new() else { return };
    let pool = Pool::new(1);
    let mut warm = project.warm(&pool, "import os\nos.write(1, b'{\"outputs\": {}}')");
    (0..3).for_each(|_| assert_eq!(call(&mut warm, &[]), Ok(vec![])));
    let distrusted = pool.distrusted();
    assert!(distrusted[0].1.contains("only the warm run fails"), "{distrusted:?}");
}

#[test]
fn an_edit_is_seen_by_the_next_lease() {
    let Some(project) = Project::new() else { return };
    let pool = Pool::new(4);
    // More often than a worker is compared with cold runs.
    let expect = |expected: [f64; 2]| {
        let mut leased = pool.script(&project.interpreter(), &project.path("script.py")).unwrap();
        (0..3).for_each(|_| assert_eq!(values(&mut leased, &[]), expected));
    };
    project.write("package/__init__.py", "");
    project.write("package/part.py", "value = 1\n");
    project.write("script.py", &numbers_script("import package.part\nnumbers = [package.part.value, 1]"));
    expect([1.0, 1.0]);
    project.write("package/part.py", "value = 2\n");
    expect([2.0, 1.0]);
    project.write("script.py", &numbers_script("import package.part\nnumbers = [package.part.value, 2]"));
    expect([2.0, 2.0]);
    // Of the same size and time: what is no older than the worker that read it may have been written since.
    let future = SystemTime::now() + Duration::from_secs(3600);
    for round in 3..6 {
        let text = numbers_script(&format!("import package.part\nnumbers = [package.part.value, {round}]"));
        for (name, text) in [("script.py", text), ("package/part.py", format!("value = {round}\n"))] {
            let path = project.write(name, &text);
            std::fs::File::options().write(true).open(path).unwrap().set_modified(future).unwrap();
        }
        expect([f64::from(round); 2]);
    }
    assert!(pool.distrusted().is_empty(), "{:?}", pool.distrusted());

    project.write("ops.py", "import package.part\ndef op(x): return x + package.part.value\n");
    project.write("package/part.py", "value = 10\n");
    let input = [named("x", DType::F32, &[1], &[1.0])];
    assert_eq!(values(&mut project.callable(&pool, "ops").unwrap(), &input), [11.0]);
    project.write("package/part.py", "value = 20\n");
    assert_eq!(values(&mut project.callable(&pool, "ops").unwrap(), &input), [21.0]);
}

#[test]
fn an_edit_during_a_lease_is_no_reason_for_distrust() {
    let Some(project) = Project::new() else { return };
    let pool = Pool::new(1);
    project.write("part.py", "value = 1\n");
    let mut warm = project.warm(&pool, &numbers_script("import part\nnumbers = [part.value]"));
    assert_eq!(values(&mut warm, &[]), [1.0]);
    project.write("part.py", "value = 2\n");
    (0..4).for_each(|_| assert_eq!(values(&mut warm, &[]), [2.0]));
    assert!(pool.distrusted().is_empty(), "{:?}", pool.distrusted());
}
