//! Functions of a project that do without the kernel that is tested, with a real Python.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use serde_json::Value;

use crate::fixture::{Project, text_of};

const HEAD: &str = "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[validation]\nseed = 3\n\n[[ops]]\n\
                    name = \"twice\"\nop = \"add\"\nmodule = \"code:twice\"\n";

const KERNELS: &str = r#"
def launch(out, x, y):
    if x.size % 2:
        raise ValueError(f"{x.size} elements are odd")
    out[...] = x + y

class OverGrid:
    def __getitem__(self, grid):
        return lambda out, x, y: out.__setitem__(..., x + y)

over_grid = OverGrid()
"#;

/// A project whose op adds by some code around the kernels.
fn project(launches: &str, body: &str) -> Option<Project> {
    let project = Project::new()?;
    project.write("gpuemu.toml", &format!("{HEAD}launches = \"{launches}\"\n"));
    project.write("kernels.py", KERNELS);
    let imports = "import numpy as np\n\nimport kernels\nfrom kernels import launch\n";
    let head = "@np.errstate(all=\"ignore\")\ndef twice(input, other):\n    out = np.empty(input.shape, input.dtype)\n";
    project.write("code.py", &format!("{imports}\n\n{head}{body}    return out\n"));
    Some(project)
}

fn report(project: &Project, status: i32) -> Value {
    project.json(&["--no-daemon", "test", "--iterations", "40", "--format", "json"], status)["ops"][0].take()
}

const ALWAYS: &str = "    flat = np.zeros(out.size + out.size % 2, out.dtype)\n    pad = (0, out.size % 2)\n    \
                      launch(flat, np.pad(input.reshape(-1), pad), np.pad(other.reshape(-1), pad))\n    \
                      out[...] = flat[:out.size].reshape(out.shape)\n";

#[test]
fn a_function_that_always_runs_its_kernel_passes() {
    let over_grid = "    kernels.over_grid[(1, 2)](out, input, other)\n";
    let nothing_to_do = format!("    if out.size == 0:\n        return out\n{ALWAYS}");
    for (launches, body) in
        [("kernels:launch", ALWAYS), ("kernels:launch", nothing_to_do.as_str()), ("kernels:over_grid", over_grid)]
    {
        let Some(project) = project(launches, body) else { return };
        assert_eq!(report(&project, 0)["status"], "passed", "{body}");
    }
    // What is tested may be the kernel itself, and is called by its own parameters.
    let Some(itself) = project("code:twice", "    np.add(input, other, out=out)\n") else { return };
    assert_eq!(report(&itself, 0)["status"], "passed");
}

#[test]
fn right_values_without_the_kernel_fail() {
    for (launches, body, words) in [
        (
            "kernels:launch",
            "    try:\n        launch(out, input, other)\n    except ValueError:\n        out = input + other\n",
            " elements are odd, and yet there is a result: something else computed it",
        ),
        (
            "kernels:launch",
            "    if input.size % 2 == 0:\n        launch(out, input, other)\n    else:\n        out = input + other\n",
            "the kernel that the op is said to launch was not called, and yet",
        ),
        ("kernels:over_grid", ALWAYS, "was not called"),
    ] {
        let Some(project) = project(launches, body) else { return };
        let failed = report(&project, 1);
        for failure in failed["failures"].as_array().unwrap() {
            let finding = &failure["failures"][0];
            assert_eq!((&finding["check"], &finding["bug_class"]), (&"not_launched".into(), &"fallback".into()));
            assert!(finding["explanation"].as_str().unwrap().contains(words), "{finding}");
        }
        // Replayed alone, it is the same failure.
        let seed = failed["failures"][0]["seed"].as_str().unwrap();
        let again = project.gpuemu(&["--no-daemon", "reproduce", seed]).output().unwrap();
        assert!(text_of(&again.stdout).contains("not_launched: the kernel"), "{}", text_of(&again.stdout));
        // Values alone say nothing of it.
        let config = project.read("gpuemu.toml");
        project.write("gpuemu.toml", &config.replace(&format!("launches = \"{launches}\"\n"), ""));
        assert_eq!(report(&project, 0)["status"], "passed");
    }
}

#[test]
fn what_is_launched_must_be_there() {
    for (launches, words) in [
        ("kernels:other", "`launches` names 'other', but module 'kernels' has no function of that name"),
        ("missing:launch", "there is no module 'missing'"),
    ] {
        let Some(project) = project(launches, ALWAYS) else { return };
        let output = project.gpuemu(&["--no-daemon", "test"]).output().unwrap();
        let text = text_of(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(words), "{text}");
    }
}
