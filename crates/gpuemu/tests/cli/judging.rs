//! What the keys of an op in `gpuemu.toml` do to its verdict, with a real Python.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use serde_json::Value;

use crate::fixture::{Project, text_of};

fn project(op: &str, files: &[(&str, &str)]) -> Option<Project> {
    let project = Project::new()?;
    let head = "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[validation]\nseed = 3\n\n[[ops]]\n";
    project.write("gpuemu.toml", &format!("{head}{op}"));
    for (name, text) in files {
        project.write(name, text);
    }
    Some(project)
}

/// The report on the op, of a run that ends with a status.
fn run(project: &Project, arguments: &[&str], status: i32) -> Value {
    let all = [&["--no-daemon"][..], arguments, &["--format", "json"]].concat();
    project.json(&all, status)["ops"][0].take()
}

fn warnings(report: &Value) -> String {
    report["warnings"].to_string()
}

/// A script by the documented protocol around an expression of `x`.
fn script(expression: &str) -> String {
    format!(
        "import base64\nimport json\nimport sys\n\nimport numpy as np\n\nrequest = json.loads(sys.stdin.read())\nencoded = request[\"inputs\"][\"x\"]\nx = np.frombuffer(base64.b64decode(encoded[\"data\"]), dtype=np.dtype(encoded[\"dtype\"])).reshape(encoded[\"shape\"])\nout = np.asarray({expression})\ndata = base64.b64encode(out.tobytes()).decode()\njson.dump({{\"outputs\": {{\"any_name\": {{\"data\": data, \"dtype\": str(out.dtype), \"shape\": list(out.shape)}}}}}}, sys.stdout)\n"
    )
}

const SAME: &str = "signature = \"x[M,N] -> out[M,N]\"\nvalues = \"regular\"\n";

#[test]
fn scripts_run_cold_and_warm_in_every_dtype_and_references_get_float64() {
    for mode in ["script_based", "daemon_orchestrated"] {
        let op = format!(
            "name = \"twice\"\nscript = \"op.py\"\nreference = \"ref.py\"\nexecution_mode = \"{mode}\"\ndtypes = [\"float32\", \"float16\", \"bfloat16\", \"float64\"]\n{SAME}"
        );
        let reference = script("2 * x if x.dtype == np.float64 else 1 / 0");
        let Some(project) = project(&op, &[("op.py", &script("x + x")), ("ref.py", &reference)]) else { return };
        let report = run(&project, &["fuzz", "--iterations", "12", "--max-shape", "9,9"], 0);
        assert_eq!(report["dtypes"].as_array().unwrap().len(), 4, "{report}");
        assert_eq!(report["not_checked"][0], "layouts");
    }
    let native = format!(
        "name = \"twice\"\nscript = \"op.py\"\nreference = \"ref.py\"\nreference_dtype = \"native\"\ndtypes = [\"float16\"]\n{SAME}"
    );
    let reference = script("x + x if x.dtype == np.float16 else 1 / 0");
    let Some(project) = project(&native, &[("op.py", &script("x + x")), ("ref.py", &reference)]) else { return };
    run(&project, &["fuzz", "--iterations", "3"], 0);
}

#[test]
fn a_callable_is_the_reference_on_the_client_side() {
    let op = format!(
        "name = \"scaled\"\nmodule = \"code:scaled\"\nreference = \"code:reference\"\nexecution_mode = \"client_side\"\nkwargs = {{ by = 0.25, block = 64 }}\n{}",
        SAME.replace("x[M,N] ->", "x[M,N] by:float=1.0 ->")
    );
    let code = "def scaled(x, by, block):\n    assert block == 64\n    return x * x.dtype.type(by)\n\n\ndef reference(x, by):\n    assert x.dtype == 'float64'\n    return x * by\n";
    let Some(project) = project(&op, &[("code.py", code)]) else { return };
    let report = run(&project, &["fuzz", "--iterations", "20"], 0);
    assert_eq!(report["reference"], "module code:reference");
    assert_eq!(report["case_results"][0]["case"]["parameters"][0][1], 0.25);
}

#[test]
fn tolerances_are_the_bound_or_the_users_own() {
    let code = "import numpy as np\n\n\ndef tanh(input):\n    return np.tanh(input) * input.dtype.type(1.00001)\n";
    let op = "name = \"tanh\"\nmodule = \"code\"\nvalues = \"regular\"\n";
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    // The rigorous bound sees a bias of 1e-5; a fixed tolerance of the user's may forgive it.
    assert_eq!(run(&project, &["test"], 1)["status"], "failed");
    let config = project.read("gpuemu.toml");
    project.write("gpuemu.toml", &format!("{config}tolerances = {{ float32 = {{ atol = 1e-4, rtol = 1e-4 }} }}\n"));
    let report = run(&project, &["test"], 0);
    assert_eq!(report["status"], "passed");
    // So loose that anything would pass: said so.
    project.write("gpuemu.toml", &format!("{config}tolerances = {{ float32 = {{ atol = 10, rtol = 10 }} }}\n"));
    assert!(warnings(&run(&project, &["test"], 0)).contains("weak in float32"));
    // Close to the edge: said so too.
    project.write("gpuemu.toml", &format!("{config}tolerances = {{ float32 = {{ atol = 0, rtol = 1.05e-5 }} }}\n"));
    assert!(warnings(&run(&project, &["test"], 0)).contains("% of the tolerance"));
    project.write("gpuemu.toml", &format!("{config}tolerance = \"calibrated\"\n"));
    assert!(run(&project, &["test"], 2)["message"].as_str().unwrap().contains("no calibration is stored"));
}

#[test]
fn a_tolerance_that_no_correct_kernel_can_keep_is_said_to_be_one() {
    let op =
        "name = \"matmul\"\nmodule = \"code\"\nreference = \"code:exact\"\ndims = { K = { min = 512, max = 2048 } }\n";
    let code = "import numpy as np\n\n\ndef matmul(a, b):\n    with np.errstate(all=\"ignore\"):\n        return np.matmul(a, b)\n\n\ndef exact(a, b):\n    return matmul(a, b)\n";
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    // atol = rtol = 1e-5 is what the documents give float32: cancellation in a long sum exceeds it.
    let report = run(&project, &["test"], 1);
    assert!(warnings(&report).contains("failures are within the rigorous bound of the built-in op"), "{report}");
    project.replace("gpuemu.toml", "reference = \"code:exact\"\n", "");
    run(&project, &["test"], 0);
}

#[test]
fn invariants_are_demanded_whatever_the_reference_says() {
    for (invariant, expression, finds) in [
        ("non_negative", "+x", "elements are below 0"),
        ("finite", "x / np.float32(0)", "elements are not finite"),
        ("normalized", "abs(x)", "rows do not sum to 1"),
    ] {
        let op = format!(
            "name = \"any\"\nmodule = \"code\"\nreference = \"code:run\"\ninvariants = [\"{invariant}\"]\n{SAME}"
        );
        let code = format!(
            "import numpy as np\n\n\ndef run(x):\n    with np.errstate(all=\"ignore\"):\n        return {expression}\n"
        );
        let Some(project) = project(&op, &[("code.py", &code)]) else { return };
        let report = run(&project, &["test", "--iterations", "30"], 1);
        let finding = &report["failures"][0]["failures"][0];
        assert_eq!(finding["check"], "invariant", "{finding}");
        assert!(finding["explanation"].as_str().unwrap().contains(finds), "{finding}");
    }
}

#[test]
fn nan_and_infinity_fail_unless_they_are_not_checked() {
    let op = "name = \"relu\"\nmodule = \"code\"\nvalues = \"regular\"\n";
    let code = "import numpy as np\n\n\ndef relu(input):\n    out = np.array(np.maximum(input, 0))\n    out.reshape(-1)[:1] = np.nan\n    return out\n";
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    let report = run(&project, &["test"], 1);
    assert_eq!(report["failures"][0]["failures"][0]["check"], "unexpected_nan");
    project.replace("gpuemu.toml", "[validation]\n", "[validation]\ncheck_nan = false\n");
    let report = run(&project, &["test"], 0);
    // Neither passed nor failed: counted apart.
    assert_eq!(report["failed"], 0, "{report}");
    project.replace("code.py", "np.nan", "np.inf");
    assert_eq!(run(&project, &["test"], 1)["failures"][0]["failures"][0]["check"], "unexpected_infinity");
    project.replace("gpuemu.toml", "check_nan", "check_inf");
    run(&project, &["test"], 0);
}

/// Where the reference has NaN itself, an output of nothing but NaN is right: that is no evidence for the rest.
#[test]
fn an_output_of_nothing_that_is_checked_is_no_pass() {
    let op = "name = \"relu\"\nmodule = \"code\"\n";
    let code = "import numpy as np\n\n\ndef relu(input):\n    return np.full(input.shape, np.nan, input.dtype)\n";
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    project.replace("gpuemu.toml", "[validation]\n", "[validation]\ncheck_nan = false\n");
    let report = run(&project, &["test"], 2);
    assert_eq!((&report["status"], &report["failed"]), (&"error".into(), &0.into()));
    assert!(report["passed"].as_u64() > Some(0), "some cases have NaN in their reference: {report}");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("cases could not be judged: no element could be judged"), "{message}");
}

#[test]
fn dims_and_shapes_decide_what_is_tried() {
    let op = "name = \"relu_rows\"\nmodule = \"code\"\nreference = \"code:run\"\nsignature = \"x[M,N] -> out[M,N]\"\ndims = { M = [3, 5], N = { min = 10, max = 12 } }\nshapes = [{ M = 3, N = 11 }, { N = 12 }]\n";
    let code = "import numpy as np\n\n\ndef run(x):\n    return np.maximum(x, 0)\n";
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    let sizes = |report: &Value| -> Vec<(u64, u64)> {
        let cases = report["case_results"].as_array().unwrap().iter();
        let size = |case: &Value, place: usize| case["case"]["sizes"]["named"][place][1].as_u64().unwrap();
        cases.map(|case| (size(case, 0), size(case, 1))).collect()
    };
    let drawn = sizes(&run(&project, &["test"], 0));
    assert_eq!(drawn.len(), 200);
    assert!(drawn.iter().all(|(m, n)| [3, 5].contains(m) && (10..=12).contains(n)));
    let quick = sizes(&run(&project, &["test", "--quick"], 0));
    assert_eq!(quick.len(), 10);
    assert!(quick.iter().all(|(m, n)| *n == 12 || (*m, *n) == (3, 11)), "{quick:?}");
    assert!(quick.contains(&(3, 11)) && quick.iter().any(|(_, n)| *n == 12), "{quick:?}");
}

#[test]
fn what_a_function_does_not_take_is_not_exercised_and_said_so() {
    let op = "name = \"layernorm\"\nmodule = \"code\"\n";
    let code = "import numpy as np\n\n\ndef layernorm(input):\n    x = input.astype(np.float64)\n    with np.errstate(all=\"ignore\"):\n        centred = x - x.mean(-1, keepdims=True)\n        return (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).astype(input.dtype)\n";
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    let report = run(&project, &["test"], 0);
    for name in ["eps", "weight", "bias"] {
        assert!(warnings(&report).contains(&format!("'{name}' is not exercised")), "{report}");
    }
}

#[test]
fn what_was_not_compared_is_not_passed() {
    let op = "name = \"relu\"\nmodule = \"code\"\n";
    let code = "import numpy as np\n\n\ndef relu(input):\n    return np.maximum(input, 0)\n";
    let rows = "name = \"rows\"\nmodule = \"code:rows\"\nreference = \"code:rows\"\nsignature = \"x[M,N] -> out[M,N]\"\ndims = { M = 0 }\n";
    let Some(empty) = project(rows, &[("code.py", "def rows(x):\n    return x\n")]) else { return };
    // Nothing but empty cases.
    let report = run(&empty, &["test"], 2);
    assert!(report["message"].as_str().unwrap().contains("no case had an element to compare"), "{report}");
    // A bound that leaves none of the listed sizes is an error, not any size.
    empty.replace("gpuemu.toml", "{ M = 0 }", "{ N = [64, 128] }");
    let output = empty.gpuemu(&["--no-daemon", "fuzz", "--max-shape", "9,32"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output.stdout));
    // A size that nobody can compute is an error of the op, and ends nobody's process.
    empty.replace("gpuemu.toml", "{ N = [64, 128] }", "{ N = 100000000000 }");
    assert!(run(&empty, &["test"], 2)["message"].as_str().unwrap().contains("is too large"));
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    // Expected failures do not hide a run that broke off.
    project.replace("code.py", "    return np", "    if input.ndim == 1:\n        return input + 1\n    return np");
    let entry = "\n[[expected_failures]]\nop = \"relu\"\nreason = \"known\"\nexpires = \"2099-12-31\"\n";
    let config = project.read("gpuemu.toml");
    project.write("gpuemu.toml", &format!("{config}{entry}"));
    assert_eq!(run(&project, &["test"], 0)["status"], "expected_failure");
    assert_eq!(run(&project, &["test", "--fail-fast"], 1)["status"], "failed");
}

#[test]
fn an_op_dropped_by_fail_fast_is_unfinished() {
    let op = "name = \"relu\"\nmodule = \"code\"\n\n[[ops]]\nname = \"tanh\"\nmodule = \"code:relu\"\n";
    let Some(project) = project(op, &[("code.py", "def relu(input):\n    return input + 1\n")]) else { return };
    let report = project.json(&["--no-daemon", "test", "--fail-fast", "--format", "json"], 1);
    assert_eq!(report["ops"][1]["status"], "unfinished", "{report}");
}

#[test]
fn optional_tensors_are_given_as_the_function_needs_them() {
    let op = "name = \"layernorm\"\nmodule = \"code\"\n";
    let code = "import numpy as np\n\n\ndef layernorm(input, weight, bias, eps):\n    x = input.astype(np.float64)\n    with np.errstate(all=\"ignore\"):\n        centred = x - x.mean(-1, keepdims=True)\n        out = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)\n        return (out * weight + bias).astype(input.dtype)\n";
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    assert_eq!(run(&project, &["test"], 0)["status"], "passed");
}

#[test]
fn a_kernel_that_hangs_or_crashes_fails_and_the_run_goes_on() {
    for (body, words) in [
        ("    import time\n    time.sleep(60)\n", "did not finish within 1 s"),
        ("    import ctypes\n    ctypes.string_at(0)\n", "crashed"),
        ("    raise ValueError(\"only even sizes\")\n", "only even sizes"),
        ("    return input[..., :-1]\n", "has shape"),
        ("    return input.astype(\"float64\")\n", "is float64, expected float32"),
        ("    return (input, input)\n", "2 outputs came back"),
        ("    return None\n", ""),
    ] {
        let op = "name = \"relu\"\nmodule = \"code\"\ntimeout = 1.0\nvalues = \"regular\"\ndims = {}\n";
        let code = format!(
            "import numpy as np\n\n\ndef relu(input):\n    if input.shape[-1:] != (1,):\n        return np.maximum(input, 0)\n{body}"
        );
        let Some(project) = project(op, &[("code.py", &code)]) else { return };
        let report = run(&project, &["test", "--iterations", "60"], 1);
        assert_eq!(report["cases"], 60, "{body}: {report}");
        assert!(report["passed"].as_u64().unwrap() > 0, "{body}: {report}");
        let failures = report["failures"].to_string();
        assert!(failures.contains(words), "{body}: {failures}");
    }
}

#[test]
fn bfloat16_without_ml_dtypes_is_an_error_of_the_project() {
    let op = "name = \"relu\"\nmodule = \"code\"\ndtypes = [\"bfloat16\"]\n";
    let code = "import numpy as np\n\n\ndef relu(input):\n    return np.maximum(input, input.dtype.type(0))\n";
    let Some(project) = project(op, &[("code.py", code)]) else { return };
    run(&project, &["test", "--iterations", "10"], 0);
    // The module of that name in the project's folder hides the real one, and cannot be imported.
    project.write("ml_dtypes.py", "raise ImportError('not here')\n");
    let output = project.gpuemu(&["--no-daemon", "test"]).output().unwrap();
    let text = text_of(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("bfloat16 needs the Python package ml_dtypes"), "{text}");
}
