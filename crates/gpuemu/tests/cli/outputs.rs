//! Functions of a project that are given memory for their outputs, with a real Python.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use serde_json::{Value, json};

use crate::fixture::{Project, text_of};

const HEAD: &str = "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[validation]\nseed = 3\n";

/// Without a daemon, which must not run yet; by one whose workers start now; and by the same once they are warm.
const DOORS: [&[&str]; 3] = [&["--no-daemon"], &[], &[]];

/// Functions that double their input, and what each of them is: its signature, its body.
const RIGHT: &[(&str, &str)] = &[
    ("fills(x, out)", "np.add(x, x, out=out)"),
    ("returns(x, *, out=None)", "return np.add(x, x, out=out)"),
    ("by_place(tensor, out=None)", "np.add(tensor, tensor, out=out)"),
];

const WRONG: &[(&str, &str, &str, &str)] = &[
    ("elsewhere(x, out)", "return x + x", "runner", "it took `out=` and returned another array"),
    ("tail(x, out)", "np.add(x[:-1], x[:-1], out=out[:-1])", "not_written", "of 'out' were never written"),
    ("nothing(x, out)", "pass", "not_written", "of 'out' were never written"),
    (
        "past(x, out)",
        "np.lib.stride_tricks.as_strided(out, (out.size + 1,))[...] = np.append(x + x, x[:1])",
        "out_of_bounds",
        "outside of 'out', the nearest 0 bytes after the end",
    ),
    ("spoils(x, out)", "np.add(x, x, out=out); x += 1", "input_modified", "wrote over its input 'x'"),
    ("skips(x, out)", "np.add(x, x, out=out)", "not_launched", "was not called"),
];

fn name_of(signature: &str) -> &str {
    signature.split('(').next().unwrap()
}

/// A project whose ops are such functions.
fn project(functions: &[(&str, &str)]) -> Option<Project> {
    let project = Project::new()?;
    let (mut config, mut code) =
        (HEAD.to_string(), "import numpy as np\n\n\ndef double(x):\n    return x + x\n".to_string());
    code.push_str("\n\ndef kernel(x, out):\n    np.add(x, x, out=out)\n");
    for (signature, body) in functions {
        let name = name_of(signature);
        let launches = if name == "skips" { "launches = \"code:kernel\"\n" } else { "" };
        config.push_str(&format!(
            "\n[[ops]]\nname = \"{name}\"\nmodule = \"code:{name}\"\nreference = \"code:double\"\n\
             signature = \"x[N] -> out[N]\"\nvalues = \"regular\"\ndims = {{ N = {{ min = 2, max = 40 }} }}\n{launches}"
        ));
        code.push_str(&format!("\n\ndef {signature}:\n    {body}\n"));
    }
    project.write("gpuemu.toml", &config);
    project.write("code.py", &code);
    Some(project)
}

/// What is said of each op.
fn reports(project: &Project, more: &[&str], status: i32) -> Vec<Value> {
    let arguments = [more, &["test", "--iterations", "12", "--format", "json"]].concat();
    project.json(&arguments, status)["ops"].as_array().unwrap().clone()
}

#[test]
fn functions_that_write_into_what_they_are_given_pass_and_everything_is_checked() {
    let Some(project) = project(RIGHT) else { return };
    for more in DOORS {
        for report in reports(&project, more, 0) {
            assert_eq!((&report["status"], &report["not_checked"]), (&json!("passed"), &json!([])), "{report}");
        }
    }
}

#[test]
fn what_a_function_does_to_memory_for_its_outputs_is_found() {
    let functions: Vec<(&str, &str)> = WRONG.iter().map(|(signature, body, ..)| (*signature, *body)).collect();
    let Some(project) = project(&functions) else { return };
    for more in DOORS {
        for (report, (_, _, check, words)) in reports(&project, more, 1).iter().zip(WRONG) {
            let failures = report["failures"].as_array().unwrap();
            assert!(!failures.is_empty(), "{check}: {report}");
            for failure in failures {
                let mut findings = failure["failures"].as_array().unwrap().iter();
                let found = findings.find(|finding| finding["check"] == *check);
                let found = found.unwrap_or_else(|| panic!("{check}: {failure}"));
                assert!(found["explanation"].as_str().unwrap().contains(words), "{found}");
            }
        }
    }
    let seed = reports(&project, &[], 1)[1]["failures"][0]["seed"].as_str().unwrap().to_string();
    let again = project.gpuemu(&["reproduce", &seed, "--op", "tail"]).output().unwrap();
    let text = text_of(&again.stdout);
    assert_eq!(again.status.code(), Some(1), "{text}");
    assert!(text.contains("not_written: 1 of"), "{text}");
}

#[test]
fn functions_that_do_not_name_their_output_are_given_none() {
    let functions = [
        ("any(x, **kwargs)", "assert not kwargs, kwargs\n    return x + x"),
        ("named_otherwise(x, result=None)", "assert result is None\n    return x + x"),
    ];
    let Some(project) = project(&functions) else { return };
    for report in reports(&project, &["--no-daemon"], 0) {
        assert_eq!(report["not_checked"], json!(["unwritten outputs", "stores out of bounds"]), "{report}");
    }
}

#[test]
fn an_argument_of_the_op_that_is_called_out_is_no_memory_for_an_output() {
    let Some(project) = Project::new() else { return };
    let op = "\n[[ops]]\nname = \"add\"\nmodule = \"code:add\"\nreference = \"code:reference\"\n\
              signature = \"x[N] out[N] -> out[N]\"\nvalues = \"regular\"\n";
    let given = "\n[[ops]]\nname = \"side\"\nmodule = \"code:side\"\nreference = \"code:double\"\n\
                 signature = \"x[N] -> y[N]\"\nvalues = \"regular\"\nkwargs = { out = \"left\" }\n";
    project.write("gpuemu.toml", &format!("{HEAD}{op}{given}"));
    project.write(
        "code.py",
        "def reference(x, out):\n    return x + out\n\n\ndef add(x, out):\n    out += x\n\n\n\
         def double(x):\n    return x + x\n\n\ndef side(x, out):\n    assert out == \"left\"\n    return x + x\n",
    );
    for report in reports(&project, &["--no-daemon"], 0) {
        assert_eq!(report["status"], "passed", "{report}");
    }
}
