//! Scripts and callables that fail, crash, hang, flood and fork.

use std::time::{Duration, Instant};

use gpuemu_config::Framework;
use gpuemu_runners::executor::{ColdScript, ExecutorError, Interpreter, Pool, Program};
use gpuemu_tensor::{DType, Storage, Tensor};
use serde_json::{Value, json};

use crate::project::{Project, all_gone, call, executable, named, numbers_script, small, try_call, values};

#[test]
fn only_the_document_may_be_printed() {
    let Some(project) = Project::new() else { return };
    for script in [
        "print('loading the model')\nprint('{\"outputs\": {}}')",
        "print('{\"outputs\": {}}')\nprint('loading the model')",
    ] {
        for error in project.failures(script) {
            assert!(matches!(error, ExecutorError::BadOutput { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("loading the model") && text.contains("print everything else to stderr"), "{text}");
        }
    }
    assert_eq!(call(&mut project.cold("print(' {\"outputs\": {}}\\n\\n')"), &[]), Ok(vec![]));
}

#[test]
fn a_script_that_fails_is_quoted() {
    let Some(project) = Project::new() else { return };
    let raising = "import sys\nprint('a warning', file=sys.stderr)\ndef f():\n    raise ValueError('seven')\nf()";
    let [cold, warm] = project.failures(raising);
    assert!(matches!(&cold, ExecutorError::Failed { status, .. } if status == "exited with status 1"), "{cold}");
    assert!(matches!(warm, ExecutorError::Raised { .. }), "{warm}");
    for text in [cold.to_string(), warm.to_string()] {
        assert!(text.contains("ValueError: seven") && text.contains("script.py\", line 4, in f"), "{text}");
        assert!(text.contains("a warning") && !text.contains("<string>"), "{text}");
    }
    for script in ["", "import sys\nsys.exit(0)", "print(' ')"] {
        for error in project.failures(script) {
            assert!(matches!(error, ExecutorError::NoOutput { .. }), "{error}");
            assert!(error.to_string().contains("exited with status 0 but printed nothing"), "{error}");
        }
    }
    for error in project.failures("import sys\nprint('{}')\nsys.exit(3)") {
        assert!(matches!(&error, ExecutorError::Failed { status, .. } if status == "exited with status 3"), "{error}");
    }
    for error in project.failures("raise SystemExit('no such device')") {
        let text = error.to_string();
        assert!(text.contains("exited with status 1") && text.contains("no such device"), "{text}");
    }
    for error in project.failures("def unfinished(") {
        assert!(error.to_string().contains("SyntaxError"), "{error}");
    }
}

#[test]
fn outputs_that_are_wrong_are_named() {
    let Some(project) = Project::new() else { return };
    let printing = |output: Value| format!("print('''{}''')", json!({"outputs": {"y": output}}));
    for (output, expected) in [
        (json!({"data": "AAAA", "dtype": "float32", "shape": [1]}), "takes 4 bytes, but 3 were given"),
        (json!({"data": "AAAA", "dtype": "float33", "shape": [1]}), "unknown dtype 'float33'"),
        (json!({"data": "A?==", "dtype": "float32", "shape": [1]}), "\"data\" is not base64"),
        (json!([1.0]), "\"dtype\" is missing"),
    ] {
        for error in project.failures(&printing(output.clone())) {
            let text = error.to_string();
            assert!(matches!(error, ExecutorError::BadOutput { .. }), "{error}");
            assert!(text.contains("output 'y'") && text.contains(expected), "{text}");
        }
    }
    for error in project.failures("print('[1, 2]')") {
        assert!(error.to_string().contains("an object with \"outputs\""), "{error}");
    }
}

#[test]
fn a_crash_has_the_name_of_its_signal() {
    let Some(project) = Project::new() else { return };
    let error = call(&mut project.cold("import ctypes\nctypes.string_at(0)"), &[]).unwrap_err();
    assert!(matches!(&error, ExecutorError::Failed { status, .. } if status == "was killed by SIGSEGV"), "{error}");
    assert!(error.to_string().contains("script.py\", line 2"), "{error}");

    project.write(
        "ops.py",
        "import ctypes, sys\ndef op(x):\n    print('before')\n    ctypes.string_at(0)\ndef fine(x): return x\n",
    );
    let pool = Pool::new(1);
    let mut crashing = project.callable(&pool, "ops").unwrap();
    let input = [small("x", DType::F32, &[2])];
    for _ in 0..2 {
        let error = call(&mut crashing, &input).unwrap_err();
        assert!(matches!(&error, ExecutorError::Failed { status, .. } if status == "was killed by SIGSEGV"), "{error}");
        assert!(error.to_string().contains("before") && error.to_string().contains("ops.py\", line 4"), "{error}");
    }
}

#[test]
fn an_illegal_instruction_inside_a_framework_says_what_to_do() {
    let Some(project) = Project::new() else { return };
    let dies = "import os, signal\ndef product(): os.kill(os.getpid(), signal.SIGILL)\n";
    // A package of that name stands in for the framework: no processor of a test refuses what it lists.
    project.write("torch/__init__.py", dies);
    let text = call(&mut project.cold("import torch\ntorch.product()"), &[]).unwrap_err().to_string();
    assert!(text.contains("was killed by SIGILL") && text.contains("set ONEDNN_MAX_CPU_ISA="), "{text}");
    project.write("ops.py", &format!("{dies}def op(x): product()\n"));
    let mut crashing = project.callable(&Pool::new(1), "ops").unwrap();
    let text = call(&mut crashing, &[small("x", DType::F32, &[2])]).unwrap_err().to_string();
    assert!(text.contains("was killed by SIGILL") && !text.contains("ONEDNN_MAX_CPU_ISA"), "{text}");
}

#[test]
fn a_hanging_script_is_ended_with_all_it_started() {
    let Some(project) = Project::new() else { return };
    let script = r#"
import os, sys, time
child = os.fork()
open("log", "a").write(f"{os.getpid()} ")
print("stuck", file=sys.stderr)
time.sleep(600)
"#;
    let second = Duration::from_secs(1);
    for warm in [false, true] {
        let start = Instant::now();
        let pool = Pool::new(1);
        let mut program: Box<dyn Program> =
            if warm { Box::new(project.warm(&pool, script)) } else { Box::new(project.cold(script)) };
        let error = try_call(program.as_mut(), &[], json!({}), second).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        assert!(matches!(error, ExecutorError::TimedOut { limit, .. } if limit == second), "{error}");
        assert!(error.to_string().contains("within 1 s") && error.to_string().contains("stuck"), "{error}");
    }
    let processes = project.processes("log");
    // Cold, and warm with a cold run beside it: each forked once.
    assert_eq!(processes.len(), 6, "{processes:?}");
    assert!(all_gone(&processes));
}

#[test]
fn a_hanging_callable_is_replaced() {
    let Some(project) = Project::new() else { return };
    let text = "import os, time\ndef op(x, wait=0):\n    time.sleep(wait)\n    return x.dtype.type(os.getpid())\n";
    project.write("ops.py", text);
    let pool = Pool::new(1);
    let mut callable = project.callable(&pool, "ops").unwrap();
    let input = [small("x", DType::F64, &[2])];
    let first = values(&mut callable, &input);
    let error = try_call(&mut callable, &input, json!({"wait": 600}), Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error, ExecutorError::TimedOut { .. }), "{error}");
    assert!(all_gone(&[first[0] as i32]));
    assert_ne!(values(&mut callable, &input), first);
}

#[test]
fn a_large_input_may_be_ignored() {
    let Some(project) = Project::new() else { return };
    let storage = Storage::filled(100 << 20, 1);
    let input = [("x".to_string(), Tensor::new(DType::U8, vec![100 << 20], vec![1], 0, storage).unwrap())];
    // More than a pipe holds is printed before anything could be read.
    let script = numbers_script("print(' ' * (1 << 20))\nnumbers = [5]");
    assert_eq!(values(&mut project.cold(&script), &input), [5.0]);
    let length = numbers_script("numbers = [len(json.loads(sys.stdin.read())['inputs']['x']['data'])]");
    assert_eq!(values(&mut project.warm(&Pool::new(1), &length), &input), [139_810_136.0]);
}

#[test]
fn a_flood_is_stopped() {
    let Some(project) = Project::new() else { return };
    let interpreter = Interpreter { output_bytes: 1 << 20, ..project.interpreter() };
    let text = "import sys\nprint('it begins', file=sys.stderr)\nwhile True:\n    print('x' * 100000)\n";
    let script = project.write("flood.py", text);
    let mut cold = ColdScript::new(interpreter.clone(), script.clone()).unwrap();
    let stderr = "it begins\n".to_string();
    let expected = ExecutorError::OutputTooLarge { what: script.display().to_string(), limit: 1 << 20, stderr };
    assert_eq!(call(&mut cold, &[]), Err(expected.clone()));
    let pool = Pool::new(1);
    let mut warm = pool.script(&interpreter, &script).unwrap();
    (0..3).for_each(|_| assert_eq!(call(&mut warm, &[]), Err(expected.clone())));
    project.write("ops.py", "import numpy\ndef op(x): return numpy.zeros(1 << 20, numpy.float64)\n");
    let mut callable = pool.callable(&interpreter, "ops", "op", Framework::Numpy).unwrap();
    let error = call(&mut callable, &[small("x", DType::F32, &[1])]).unwrap_err();
    assert!(matches!(error, ExecutorError::OutputTooLarge { .. }), "{error}");
}

#[test]
fn a_child_that_keeps_the_pipe_holds_nobody_up() {
    let Some(project) = Project::new() else { return };
    let body = r#"
if os.fork() == 0:
    open("log", "a").write(f"{os.getpid()} ")
    import time
    time.sleep(600)
numbers = [3]
"#;
    let start = Instant::now();
    assert_eq!(values(&mut project.cold(&numbers_script(body)), &[]), [3.0]);
    let pool = Pool::new(1);
    let mut warm = project.warm(&pool, &numbers_script(body));
    (0..3).for_each(|_| assert_eq!(values(&mut warm, &[]), [3.0]));
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    drop((warm, pool));
    let children = project.processes("log");
    assert!(all_gone(&children), "{children:?}");
}

#[test]
fn a_forked_child_that_comes_back_is_no_worker() {
    let Some(project) = Project::new() else { return };
    let text = r#"
import os
def op(x):
    child = os.fork()
    if child == 0:
        return x
    return x + 1 + os.waitpid(child, 0)[1]
"#;
    project.write("ops.py", text);
    let pool = Pool::new(1);
    let mut callable = project.callable(&pool, "ops").unwrap();
    (0..3).for_each(|_| assert_eq!(values(&mut callable, &[named("x", DType::F32, &[1], &[4.0])]), [5.0]));
}

#[test]
fn memory_is_limited() {
    let Some(project) = Project::new() else { return };
    let interpreter = Interpreter { memory_bytes: Some(4 << 30), ..project.interpreter() };
    let body = "numbers = [len(bytearray(int(os.environ.get('GPUEMU_TEST_BYTES', 5 << 30))))]";
    let script = project.write("eats.py", &numbers_script(body));
    let fails = |program: &mut dyn Program| {
        let error = call(program, &[]).unwrap_err();
        assert!(error.to_string().contains("MemoryError"), "{error}");
    };
    fails(&mut ColdScript::new(interpreter.clone(), script.clone()).unwrap());
    let pool = Pool::new(1);
    let mut warm = pool.script(&interpreter, &script).unwrap();
    (0..3).for_each(|_| fails(&mut warm));
    if cfg!(target_os = "linux") {
        let program = format!("#!/bin/sh\nexec '{}' -c 'bytearray(5 << 30)'\n", project.python.display());
        fails(&mut ColdScript::new(interpreter, executable(&project, "eats.sh", &program)).unwrap());
    }
}
