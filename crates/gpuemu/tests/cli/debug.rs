//! `gpuemu debug` with commands from a pipe, over failures of real ops.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use snapbox::str;

use crate::fixture::{Project, text_of};

/// A project with an op whose last element is wrong.
fn shifted(options: &[&str]) -> Option<Project> {
    let project = Project::new()?;
    project.write(
        "gpuemu.toml",
        r#"
[project]
name = "shifted"
framework = "numpy"
[[ops]]
name = "shift"
module = "ops"
signature = "x[M,N] by:float=2.0 -> out[M,N]"
reference = "reference:shift"
values = "integers"
dims = { M = 2, N = 4 }
"#,
    );
    project.write("reference.py", "def shift(x, by):\n    return x + by\n");
    project.write("ops.py", "def shift(x, by):\n    out = x + by\n    out[..., -1] += 1\n    return out\n");
    let test = ["test", "--base-seed", "7", "--iterations", "2", "--layouts", "contiguous", "--quiet"];
    project.gpuemu(&[&test, options].concat()).assert().code(1).stderr_eq("");
    Some(project)
}

/// What a session prints to stdout and stderr.
fn session(project: &Project, arguments: &[&str], commands: &str) -> (String, String) {
    let arguments = [&["debug"], arguments].concat();
    let output = project.gpuemu(&arguments).stdin(commands).assert().success();
    (text_of(&output.get_output().stdout), text_of(&output.get_output().stderr))
}

#[test]
fn a_failure_is_looked_into_step_by_step() {
    let Some(project) = shifted(&[]) else { return };
    let commands = "list\nlist shift\nopen 1\nchecks\nstep\nstep\nprint x\nprint out[0, ::2]\nexpected out [..., -1]\n\
                    diff out\ndiff out[:, :2]\nprint input.x[1,1]\nquit\nprint x\n";
    project.gpuemu(&["debug", "--quiet"]).stdin(commands).assert().success().stderr_eq("").stdout_eq(str![[r#"
1  shift  float32, x[2, 4], contiguous, integers values, by=2.0, seed 14818979533484651488  value [formula]
2  shift  float32, x[2, 4], contiguous, integers values, by=2.0, seed 13435648307350579764  value [formula]
1  shift  float32, x[2, 4], contiguous, integers values, by=2.0, seed 14818979533484651488  value [formula]
2  shift  float32, x[2, 4], contiguous, integers values, by=2.0, seed 13435648307350579764  value [formula]
FAIL  shift
  float32, x[2, 4], contiguous, integers values, by=2.0, seed 14818979533484651488
    value: 2 of 8 elements of 'out' differ; no pattern in place or ratio [formula]
    worst at [0, 3]: 2, expected 1 (error 1, allowed 2.000e-5)
    gpuemu reproduce 14818979533484651488 --op shift --layouts contiguous
  largest error 1 (50000.00 of fixed (atol = 1e-5, rtol = 1e-5)), module ops
  not checked: unwritten outputs, stores out of bounds
inputs
  x    float32 [2, 4]
outputs
  out  float32 [2, 4]
expected
  out  float64 [2, 4]
runner               passed
shape                passed
dtype                passed
out_of_bounds        not checked  the runner keeps its own memory
misaligned           not checked  only a compiled kernel in the PTX machine is checked for this
uninitialised        not checked  only a compiled kernel in the PTX machine is checked for this
race                 not checked  only a compiled kernel in the PTX machine is checked for this
synchronisation      not checked  only a compiled kernel in the PTX machine is checked for this
input_modified       passed
not_written          not checked  the runner keeps its own memory
value                failed       2 of 8 elements of 'out' differ; no pattern in place or ratio
unexpected_nan       passed
missing_nan          passed
unexpected_infinity  passed
missing_infinity     passed
nondeterministic     passed       two runs gave the same bits
invariant            not checked  none are configured
aliasing             passed
output_overwritten   passed
stale_result         passed
later_calls          not checked  only a run repeats a case
metamorphic          not checked  the op declares no properties
not_launched         not checked  the op has no `launches`
float_environment    passed
1/24  runner               passed
2/24  shape                passed
x float32 [2, 4]
[[-1.0 -1.0 -1.0 -1.0]
 [ 0.0  0.0 -1.0  0.0]]
out[0, ::2] float32 [2]
[1.0 1.0]
expected.out[..., -1] float64 [2]
[1.0 2.0]
out - expected.out float64 [2, 4]
[[0.0 0.0 0.0 1.0]
 [0.0 0.0 0.0 1.0]]
largest at [0, 3]: 1.0
out - expected.out[:, :2] float64 [2, 2]
[[0.0 0.0]
 [0.0 0.0]]
input.x[1,1] float32 []
0.0

"#]]);
}

#[test]
fn one_failure_is_shown_reproduced_and_shrunk() {
    let Some(project) = shifted(&["--no-daemon"]) else { return };
    let (text, errors) =
        session(&project, &["--no-daemon"], "show 1\nopen 1\nreproduce\nminimise\ntensors\nprint minimized.x\n");
    assert_eq!(errors, "");
    assert_eq!(text.matches("FAIL  shift").count(), 4, "{text}");
    assert!(text.contains("minimized inputs\n  x    float32 [2, 4]\n"), "{text}");
    assert!(text.contains("minimized.x float32 [2, 4]\n"), "{text}");
    // The list as it was shown still stands for the same failures, and a new one has the smallest case as well.
    let (text, notes) = session(&project, &["--no-daemon"], "list\nopen 1\n");
    assert!(text.lines().next().unwrap().contains("(minimized)"), "{text}");
    assert!(notes.contains("minimized form"), "{notes}");
}

#[test]
fn a_case_is_opened_at_the_start() {
    let Some(project) = shifted(&[]) else { return };
    let listed = project.json(&["failures", "--format", "json"], 0);
    let seed = listed[1]["seed"].as_str().unwrap();
    let (text, _) = session(&project, &[seed], "show 2\ntensors");
    assert_eq!(text.matches(&format!("seed {seed}\n")).count(), 2, "{text}");
    // A seed that was never tried is drawn anew.
    let (text, _) = session(&project, &["12345", "--op", "shift", "--quick"], "reproduce\n");
    assert_eq!(text.matches("seed 12345\n").count(), 2, "{text}");
    let (text, notes) = session(&project, &[], "open 3");
    assert!(text.contains("seed 3\n") && notes.contains("3 is not a place in the list of 2"), "{text}{notes}");
    project.gpuemu(&["debug", "--values", "tiny"]).stdin("").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: options of a case are given, but no case
hint: gpuemu debug SEED --op NAME ...

"#]]);
    project.gpuemu(&["debug", "1", "--op", "shfit"]).stdin("").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: there is no op 'shfit'
hint: did you mean 'shift'?

"#]]);
}

#[test]
fn a_mistake_is_said_and_the_session_goes_on() {
    let Some(project) = shifted(&[]) else { return };
    let commands = "tensors\nopne 1\nopen\nopen first\nopen 1 shift more\nopen 3 nothing\nlist\nlist nothing\nreproduce now\n\
                    open 1\nprint\nprint y\nprint x[0, 4]\nprint x[a]\ndiff x\nexpected ou\nexport\nexport ops.py\n\
                    \u{1f980}\n\n# a remark\nprint x[0, 0]\n";
    let (text, errors) = session(&project, &["--quiet"], commands);
    let (list, rest) = text.split_once("no failure is stored\nFAIL  shift\n").unwrap();
    // A list that is empty takes the place of none: the case is the first of the list before.
    let seed = list.lines().next().unwrap().split_once(", seed ").unwrap().1.split_once(' ').unwrap().0;
    assert!(rest.lines().next().unwrap().ends_with(seed), "{text}");
    assert!(text.contains("\nx[0, 0] float32 []\n"), "{text}");
    snapbox::assert_data_eq!(
        errors,
        str![[r#"
error: no case is open
hint: `list` shows stored failures, `open 1` opens the newest
error: unknown command 'opne'
hint: did you mean 'open'? `help` lists all commands
error: open needs a number
hint: open N, a place in `list`, or open SEED [OP]
error: 'first' is neither a place in the list nor a seed
hint: open N, a place in `list`, or open SEED [OP]
error: 'more' is one word too many
hint: open N, a place in `list`, or open SEED [OP]
error: there is no op 'nothing'
hint: `gpuemu ops` lists the built-in ops; the project's own are in gpuemu.toml
error: reproduce takes nothing after it, but 'now' was given
error: print needs the name of a tensor
hint: `tensors` lists them
error: there is no tensor 'y'
hint: did you mean 'x'?
error: slice, column 5: 4 is outside of dim 1, which has size 4
  [0, 4]
      ^
error: slice, column 2: 'a' has no meaning here; a number, a range such as 3:7 or '...' can be here
  [a]
   ^
error: there is no output 'x'
hint: known: out
error: there is no output 'ou'
hint: did you mean 'out'?
error: export needs the name of a file
hint: export case.py
error: ops.py is there already, and was not written by gpuemu
hint: name another file
error: unknown command '🦀'
hint: `help` lists all commands

"#]]
    );
    assert!(project.read("ops.py").starts_with("def shift"));
}

#[test]
fn bytes_that_are_no_text_and_an_end_without_a_line_break_harm_nothing() {
    let Some(project) = shifted(&[]) else { return };
    let output = project.gpuemu(&["debug", "--quiet"]).stdin(b"\xff\xfe\nhelp".to_vec()).assert().success();
    assert!(text_of(&output.get_output().stderr).starts_with("error: unknown command"));
    assert!(text_of(&output.get_output().stdout).contains("print NAME [SLICE]"));
}

#[test]
fn every_dtype_is_printed_exactly() {
    let Some(project) = Project::new() else { return };
    project.write(
        "gpuemu.toml",
        r#"
[project]
name = "dtypes"
framework = "numpy"
[[ops]]
name = "many"
module = "ops"
signature = "flag:bool[N] x:float32[N] -> large:int64[N] bytes:uint8[N] half:bfloat16[N] small:float8_e4m3fn[N] odd[N]"
reference = "ops:reference"
dims = { N = 3 }
"#,
    );
    project.write(
        "ops.py",
        r#"
import ml_dtypes
import numpy as np

def outputs(one):
    return {
        "large": np.array([2**60 + one, -(2**60) - one, 5]),
        "bytes": np.array([0, 128, 255], np.uint8),
        "half": np.array([0.1, -1e38, np.nan], ml_dtypes.bfloat16),
        "small": np.array([448, 0.0625, -np.nan], ml_dtypes.float8_e4m3fn),
        "odd": np.array([np.inf, -np.inf, 1e-45], np.float32),
    }

def many(flag, x):
    return outputs(1)

def reference(flag, x):
    return outputs(0)
"#,
    );
    let commands = "print large\nexpected large[0]\ndiff large\nprint bytes\nprint half\nprint small\nprint odd\ndiff odd\n\
                    print flag[:0]\n";
    let output = project.gpuemu(&["debug", "5", "--op", "many", "--quiet"]).stdin(commands).assert().success();
    let text = text_of(&output.get_output().stdout);
    let printed = &text[text.find("large int64 [3]\n[").unwrap()..];
    snapbox::assert_data_eq!(
        printed.to_string(),
        str![[r#"
large int64 [3]
[ 1152921504606846977 -1152921504606846977                    5]
expected.large[0] float64 []
1.152921504606847e18
large - expected.large float64 [3]
[ 1.0 -1.0  0.0]
largest at [0]: 1.0
bytes uint8 [3]
[  0 128 255]
half bfloat16 [3]
[   0.1001 -9.969e37       nan]
small float8_e4m3fn [3]
[ 448.0 0.0625    nan]
odd float32 [3]
[  inf  -inf 1e-45]
odd - expected.odd float64 [3]
[0.0 0.0 0.0]
flag[:0] bool [0]
[]

"#]]
    );
}

/// Breaks an op, exports its newest failure, and runs the script before and after the op is mended.
fn exported(project: &Project, op: &str, file: &str, right: &str, wrong: &str, options: &[&str]) -> String {
    project.replace(file, right, wrong);
    let test = ["test", "--op", op, "--base-seed", "3", "--iterations", "12", "--quiet"];
    project.gpuemu(&[&test, options].concat()).assert().code(1);
    let script = format!("cases/{op}.py");
    std::fs::create_dir_all(project.path("cases")).unwrap();
    let (text, errors) = session(project, &["--quiet"], &format!("list {op}\nopen 1\nexport {script}\n"));
    assert!(text.ends_with(&format!("wrote {script}\n")), "{text}{errors}");
    let output = project.python(&[&script]).assert().code(1);
    project.replace(file, wrong, right);
    let fixed = project.python(&[&script]).assert();
    let fixed = text_of(&fixed.success().get_output().stdout);
    assert!(fixed.ends_with(&format!("{op}: right\n")), "{fixed}");
    text_of(&output.get_output().stdout) + &text_of(&output.get_output().stderr)
}

#[test]
fn an_exported_script_fails_until_the_op_is_mended() {
    let Some(project) = Project::new() else { return };
    project.write(
        "gpuemu.toml",
        r#"
[project]
name = "exported"
framework = "numpy"
[validation]
dtypes = ["float32", "float16", "bfloat16"]
[[ops]]
name = "softmax"
module = "ops"
[[ops]]
name = "relu"
module = "ops:Kernels.relu"
[[ops]]
name = "split"
module = "ops"
signature = "x[N] -> low[N] high[N]"
reference = "ops:reference"
kwargs = { at = 0.5 }
[[ops]]
name = "double"
script = "scripts/double.py"
signature = "x[...,N] factor:float=2.0 -> out[...,N]"
reference = "ops:double"
[[ops]]
name = "abs"
module = "ops:absolute"
signature = "x[N] -> out[N]"
reference = "ops:absolute_reference"
"#,
    );
    project.write(
        "ops.py",
        r#"
import numpy as np

def softmax(input):
    x = input.astype(np.promote_types(input.dtype, np.float32))
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
        return (e / e.sum(-1, keepdims=True)).astype(input.dtype)

class Kernels:
    @staticmethod
    def relu(input):
        x = input
        return np.where(x < 0, x.dtype.type(0), x)

def contiguous(x):
    strides = np.empty(x.shape, x.dtype).strides
    return np.lib.stride_tricks.as_strided(x, x.shape, strides)

def split(x, at):
    low = np.where(x < at, x, np.zeros_like(x))
    high = np.where(x < at, np.zeros_like(x), x)
    return low, high

def reference(x, at):
    return {"high": np.where(x < at, 0, x), "low": np.where(x < at, x, 0)}

def double(x, factor):
    with np.errstate(all="ignore"):
        return x * factor

def absolute(values):
    return np.abs(values)

def absolute_reference(x):
    return np.abs(x)
"#,
    );
    project.write(
        "scripts/double.py",
        r#"
import base64, json, sys
import numpy as np

case = json.load(sys.stdin)
x = case["inputs"]["x"]
array = np.ndarray(x["shape"], x["dtype"], base64.b64decode(x["data"]))
with np.errstate(all="ignore"):
    out = (array * array.dtype.type(case["kwargs"]["factor"]))
data = base64.b64encode(out.tobytes()).decode()
print(json.dumps({"outputs": {"out": {"data": data, "dtype": x["dtype"], "shape": x["shape"]}}}))
"#,
    );
    let bound = exported(&project, "softmax", "ops.py", "e / e.sum", "1.001 * e / e.sum", &["--values", "regular"]);
    assert!(bound.contains("elements wrong\n  largest difference ") && bound.contains(" (allowed "), "{bound}");
    assert!(bound.ends_with("softmax: wrong\n"), "{bound}");
    // A kernel that ignores strides is right on contiguous inputs: the script has the real ones.
    exported(
        &project,
        "relu",
        "ops.py",
        "x = input\n",
        "x = contiguous(input)\n",
        &["--layouts", "row_gap,transposed"],
    );
    exported(&project, "split", "ops.py", "return low, high", "return high, low", &[]);
    exported(&project, "double", "scripts/double.py", "out = (array", "out = (1.5 * array", &[]);
    let shape = exported(&project, "abs", "ops.py", "np.abs(values)", "np.abs(values)[None]", &[]);
    assert!(shape.contains("came back, expected"), "{shape}");
    let dtype = exported(&project, "abs", "ops.py", "np.abs(values)", "np.abs(values) + np.float64(0)", &[]);
    assert!(dtype.contains("float64 [") && dtype.contains("came back, expected"), "{dtype}");
    let raised = exported(&project, "abs", "ops.py", "np.abs(values)", "np.abs(valeus)", &[]);
    assert!(raised.contains("NameError"), "{raised}");
    let random = "np.abs(values) + np.random.rand(*values.shape).astype(values.dtype) * values.dtype.type(1e-6)";
    let unsteady = exported(&project, "abs", "ops.py", "np.abs(values)", random, &["--values", "regular"]);
    assert!(unsteady.contains("the second run gave other bits"), "{unsteady}");
    // Moved with the project, the script still finds it; elsewhere it says what is missing.
    let moved = project.path("moved");
    std::fs::create_dir_all(moved.join("cases")).unwrap();
    std::fs::rename(project.path("ops.py"), moved.join("ops.py")).unwrap();
    std::fs::copy(project.path("cases/abs.py"), moved.join("cases/abs.py")).unwrap();
    project.python(&["moved/cases/abs.py"]).assert().success();
    let lost = project.python(&["cases/abs.py"]).assert().code(2);
    assert!(text_of(&lost.get_output().stderr).contains("ops cannot be imported"));
    project.python(&["cases/abs.py", "moved"]).assert().success();
}
