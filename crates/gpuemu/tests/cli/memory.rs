//! What functions of a project do to memory, with a real Python.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use serde_json::Value;

use crate::fixture::{Project, text_of};

const HEAD: &str = "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[validation]\nseed = 3\n\n[[ops]]\n\
                    name = \"twice\"\nmodule = \"code\"\nreference = \"code:reference\"\nvalues = \"regular\"\n";

/// A project whose op doubles its input by some code.
fn project(signature: &str, code: &str) -> Option<Project> {
    let project = Project::new()?;
    project.write("gpuemu.toml", &format!("{HEAD}signature = \"{signature}\"\n"));
    // A reference is asked for values alone: whatever else it does is its own affair.
    let reference = "def reference(x):\n    out = np.asmatrix(x + x)\n    x[...] = 0\n    return {\"out\": out}\n";
    project.write("code.py", &format!("import numpy as np\n\nkept = {{}}\n\n\n{reference}\n\n{code}"));
    Some(project)
}

fn report(project: &Project, status: i32) -> Value {
    let arguments = ["--no-daemon", "test", "--iterations", "30", "--max-shape", "40,40", "--format", "json"];
    project.json(&arguments, status)["ops"][0].take()
}

#[test]
fn wrong_use_of_memory_fails() {
    for (body, check, words) in [
        ("    out = x + x\n    x[:, 1:] = 0\n    return out\n", "input_modified", "wrote over its input 'x' ("),
        ("    x += x\n    return x\n", "input_modified", "wrote over its input 'x' ("),
        ("    x += x\n    return x\n", "aliasing", "'out' lies in the memory of the input 'x'"),
        (
            "    out = kept.setdefault((x.shape, x.dtype), np.empty(x.shape, x.dtype))\n    return np.add(x, x, out)\n",
            "output_overwritten",
            "'out' of an earlier call changed when the function was called again",
        ),
        (
            "    key = (x.ctypes.data, x.shape, x.strides, x.dtype)\n    if key not in kept:\n        kept[key] = x + x\n    return kept[key].copy()\n",
            "stale_result",
            "a result is cached by address",
        ),
        (
            "    out = np.empty(x.shape, x.dtype)\n    out[:, :-1] = (x + x)[:, :-1]\n    return out\n",
            "not_written",
            "",
        ),
        ("    return (x + x).tolist()\n", "runner", "is of type list, which is no array"),
        ("    return np.asmatrix(x + x)\n", "runner", "numpy.matrix, a subclass of numpy.ndarray"),
    ] {
        let code = format!("def twice(x):\n{body}");
        let Some(project) = project("x[M,N] -> out[M,N]", &code) else { return };
        let report = report(&project, 1);
        let failures = report["failures"].as_array().unwrap().iter();
        let mut findings = failures.flat_map(|failure| failure["failures"].as_array().unwrap());
        let found = findings.find(|finding| finding["check"] == check);
        let found = found.unwrap_or_else(|| panic!("{check}: {}", report["failures"]));
        assert!(found["explanation"].as_str().unwrap().contains(words), "{found}");
    }
}

#[test]
fn right_use_of_memory_passes() {
    for (signature, body) in [
        ("x[M,N] -> out[M,N]", "    return x + x\n"),
        ("x[M,N] -> out[M,N]", "    return {\"out\": (x + x).T.copy().T}\n"),
        ("x[M,N] -> out[M,N]", "    return kept.setdefault(x.tobytes() + bytes(x.shape), x + x)\n"),
        // In place by declaration: the input is overwritten, and returned, or not.
        ("x[M,N] -> x[M,N]", "    x += x\n    return x\n"),
        ("x[M,N] -> x[M,N]", "    x += x\n"),
    ] {
        let code = format!("def twice(x):\n{body}");
        let Some(project) = project(signature, &code) else { return };
        let report = report(&project, 0);
        assert_eq!(report["not_checked"], serde_json::json!(["unwritten outputs", "stores out of bounds"]), "{body}");
    }
}

#[test]
fn what_is_declared_in_place_must_be_written_there() {
    let Some(project) = project("x[M,N] -> x[M,N]", "def twice(x):\n    return x + x\n") else { return };
    let report = report(&project, 1);
    let words = report["failures"][0]["failures"][0]["explanation"].as_str().unwrap();
    assert!(words.contains("the op works in place: write its result into the input"), "{words}");
}

#[test]
fn a_failure_is_seen_again_from_its_seed() {
    let code = "def twice(x):\n    out = x + x\n    x.fill(1)\n    return out\n";
    let Some(project) = project("x[M,N] -> out[M,N]", code) else { return };
    let first = report(&project, 1)["failures"][0].take();
    let seed = first["seed"].as_str().unwrap();
    let again = project.gpuemu(&["--no-daemon", "reproduce", seed]).output().unwrap();
    let text = text_of(&again.stdout);
    assert_eq!(again.status.code(), Some(1), "{text}");
    assert!(text.contains("input_modified: the kernel wrote over its input 'x'"), "{text}");
}
