//! Configuration files, as people write them and get them wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use gpuemu_config::{
    Config, ConfigError, DimensionRange, Environment, ExecutionMode, Framework, Invariant, LogLevel, OpSource, Seed,
    ToleranceMode, load, load_file,
};
use gpuemu_model::Strategy;
use gpuemu_model::precision::SummationOrder;
use gpuemu_tensor::DType;
use tempfile::TempDir;

fn project(text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("gpuemu.toml"), text).unwrap();
    folder
}

fn environment(home: &Path) -> Environment {
    Environment::of(&[("HOME", home.to_str().unwrap())])
}

fn read(text: &str) -> Result<Config, ConfigError> {
    let folder = project(text);
    load(folder.path(), &environment(folder.path()))
}

/// The error as printed, with the file's folder left out.
fn message(text: &str) -> String {
    let folder = project(text);
    let error = load(folder.path(), &environment(folder.path())).unwrap_err();
    error.to_string().replace(&format!("{}/", folder.path().display()), "")
}

const NAMED: &str = "[project]\nname = \"p\"\n";

#[test]
fn the_complete_example_of_the_documentation_is_read() {
    let config = read(include_str!("data/complete.toml")).unwrap();
    assert_eq!(config.project.name, "my-ml-project");
    assert_eq!(config.project.framework, Framework::Pytorch);
    assert_eq!(config.validation.dtypes, [DType::F32, DType::F16, DType::BF16]);
    assert_eq!(config.validation.seed, Seed::Fixed(42));
    assert_eq!(config.ops.len(), 3);
    let [matmul, softmax, layernorm] = config.ops.as_slice() else { panic!("three ops") };
    assert_eq!(matmul.source, OpSource::Module("my_project.ops.matmul".to_string()));
    assert_eq!(matmul.execution_mode, ExecutionMode::ScriptBased);
    assert_eq!(softmax.execution_mode, ExecutionMode::DaemonOrchestrated);
    assert_eq!(softmax.invariants, [Invariant::ShapePreserved, Invariant::NonNegative, Invariant::Normalized]);
    assert_eq!(layernorm.reference.as_deref(), Some("my_project.refs:layernorm_reference"));
    // The op's own tolerances, over the global ones.
    assert_eq!(matmul.tolerances[&DType::BF16].atol, 1e-2);
    assert_eq!(config.kernels[1].artifact_checks.max_local_memory_bytes, Some(512));
    assert_eq!((config.ci.parallel, config.ci.thorough_timeout), (4, Duration::from_secs(600)));
}

#[test]
fn an_empty_project_has_the_documented_defaults() {
    let config = read(NAMED).unwrap();
    assert_eq!(config.project.version, "0.0.0");
    assert_eq!(config.validation.dtypes, [DType::F32]);
    assert!(config.validation.check_nan && config.validation.check_inf);
    assert_eq!((config.validation.seed, config.validation.values), (Seed::Random, Strategy::Adversarial));
    assert_eq!((config.ci.iterations, config.ci.quick_iterations, config.ci.parallel), (200, 10, 1));
    assert_eq!(config.ci.quick_dtypes, [DType::F32]);
    assert_eq!(config.ci.thorough_timeout, Duration::from_secs(300));
    assert!(config.policies.fail_on_regression);
    assert_eq!((config.policies.warn_threshold, config.policies.regression_threshold), (0.8, 0.1));
    assert_eq!(config.daemon.script_timeout, Duration::from_secs(60));
}

#[test]
fn every_setting_of_an_op_is_read() {
    let config = read(
        r#"
[project]
name = "p"

[[kernels]]
name = "fused"
source = "fused.ptx"
grid = ["M"]
block = [128]
args = ["out", "a", "b"]

[[ops]]
name = "mine"
kernel = "fused"
signature = "a[M,K] b[K,N] -> out[M,N]"
dims = { M = [1, 7], K = { min = 1, max = 512 }, N = 64 }
shapes = [{ M = 16, K = 16, N = 64 }]
dtypes = ["bf16"]
tolerance = "bound"
values = "regular"
precision = { order = { tile = 32 }, accumulate = "float32", tensor_core = true }
reference_dtype = "native"
kwargs = { eps = 1e-6, causal = true }
timeout = 2.5
"#,
    )
    .unwrap();
    let op = &config.ops[0];
    assert_eq!(op.line, 13);
    assert_eq!(op.source, OpSource::Kernel("fused".to_string()));
    assert_eq!(op.signature.as_ref().unwrap().value, "a[M,K] b[K,N] -> out[M,N]");
    assert_eq!(op.dims["M"], DimensionRange::List(vec![1, 7]));
    assert_eq!(op.dims["K"], DimensionRange::Range(1, 512));
    assert_eq!(op.shapes[0]["N"], 64);
    assert_eq!((op.dtypes.as_slice(), op.values), ([DType::BF16].as_slice(), Strategy::Regular));
    assert_eq!(op.tolerance, Some(ToleranceMode::Bound));
    assert_eq!(op.precision.as_ref().unwrap().order, Some(SummationOrder::Tile(32)));
    assert!(op.precision.as_ref().unwrap().fast_exp, "what is not named keeps its default");
    assert_eq!(op.kwargs["causal"], serde_json::json!(true));
    assert_eq!(op.timeout, Duration::from_millis(2500));
}

#[test]
fn an_unknown_key_is_shown_with_the_nearest_name() {
    let text = "[project]\nname = \"p\"\n\n[[ops]]\nname = \"matmul\"\nreferense = \"scripts/matmul_ref.py\"\n";
    snapbox::assert_data_eq!(
        message(text),
        snapbox::str![[r#"
unknown field `referense`, expected one of [..]
 --> gpuemu.toml:6:1
  |
6 | referense = "scripts/matmul_ref.py"
  | ^^^^^^^^^
  |
  = hint: did you mean `reference`?
"#]]
    );
}

#[test]
fn a_wrong_dtype_is_shown_where_it_stands() {
    let text = format!("{NAMED}[validation]\ndtypes = [\"float32\", \"float99\"]\n");
    snapbox::assert_data_eq!(
        message(&text),
        snapbox::str![[r#"
unknown dtype 'float99'; known dtypes: [..]
 --> gpuemu.toml:4:22
  |
4 | dtypes = ["float32", "float99"]
  |                      ^^^^^^^^^
"#]]
    );
}

#[test]
fn impossible_values_are_named() {
    let cases = [
        ("[policies]\nwarn_threshold = 1.5", "warn_threshold is 1.5, but must be from 0 to 1"),
        ("[ci]\nparallel_jobs = -1", "parallel_jobs is -1, but must be 0 or above"),
        ("[ci]\nthorough_timeout = 0", "thorough_timeout is 0, but must be 1 or above"),
        ("[ci]\nparallel_jobs = 2\nparallel = 4", "parallel and parallel_jobs are one setting, and differ"),
        (
            "[ci]\nquick_dtypes = [\"float32\"]\n[ci.quick]\ndtypes = [\"float16\"]",
            "[ci.quick] dtypes and quick_dtypes are one setting, and differ",
        ),
        ("[validation]\ndtypes = []", "no dtype is left to test"),
        ("[validation]\nseed = -3", "'-3' is not a seed"),
        ("[validation]\nseed = \"many\"", "'many' is not a seed"),
        ("[validation.tolerances]\nfloat32 = { atol = -1.0 }", "atol of float32 is -1, but must be 0 or above"),
        ("[[ops]]\nname = \"a\"\n[[ops]]\nname = \"a\"", "there is a second op 'a'"),
        ("[[ops]]\nname = \" \"", "the name of the op is empty"),
        (
            "[[ops]]\nname = \"relu\\nPASS   softmax\"",
            "the name of the op has the character \\u{a}, which is not printed",
        ),
        ("[[ops]]\nname = \"a\"\nmodule = \"m\"\nscript = \"s.py\"", "op 'a' says more than once where it comes from"),
        ("[[ops]]\nname = \"a\"\nkernel = \"k\"", "there is no kernel 'k'"),
        ("[[ops]]\nname = \"a\"\nlaunches = \"m:f\"", "op 'a' has `launches` and no module"),
        (
            "[[ops]]\nname = \"a\"\nmodule = \"m\"\nlaunches = \"f\"",
            "launches of op 'a' is 'f', which names no function of a module",
        ),
        ("[[ops]]\nname = \"a\"\ntimeout = 0.0", "timeout is 0 seconds, but must be above 0"),
        (
            "[[ops]]\nname = \"a\"\ndims = { M = { min = 4, max = 2 } }",
            "dim 'M' of op 'a' has a min of 4 above its max of 2",
        ),
        ("[[ops]]\nname = \"a\"\ndims = { M = [] }", "dim 'M' of op 'a' has no sizes to choose from"),
        ("[[ops]]\nname = \"a\"\ninvariants = [\"finit\"]", "unknown variant `finit`"),
        (
            "[[expected_failures]]\nop = \"a\"\nreason = \"r\"\nexpires = \"2026-02-30\"\n[[ops]]\nname = \"a\"",
            "'2026-02-30' is not a date",
        ),
        (
            "[[expected_failures]]\nop = \"b\"\nreason = \"r\"\nexpires = \"2026-02-28\"\n[[ops]]\nname = \"a\"",
            "there is no op 'b'",
        ),
    ];
    for (text, expected) in cases {
        let shown = message(&format!("{NAMED}{text}\n"));
        assert!(shown.starts_with(expected), "{text}\n{shown}");
        assert!(shown.contains("--> gpuemu.toml:"), "{shown}");
    }
}

#[test]
fn every_setting_of_a_kernel_is_read() {
    let config = read(
        r#"
[project]
name = "p"

[lint]
architectures = ["sm_80", "sm_90a"]
rule_files = ["rules.toml"]
allow = ["scalar-access"]

[[kernels]]
name = "softmax"
source = "kernels/softmax.py:softmax_kernel"

[kernels.compile]
target = "sm_90"
signature = ["*fp32", "*fp32", "i32"]
constants = { BLOCK = 1024, FAST = true }
num_warps = 8

[kernels.artifact_checks]
max_registers = 96
allow = ["address-overflow"]

[[kernels]]
name = "copy"
source = "copy.cu"
compile = { options = ["-use_fast_math"] }
"#,
    )
    .unwrap();
    assert_eq!(config.lint.architectures, ["sm_80", "sm_90a"]);
    assert_eq!(config.lint.rule_files[0].value, "rules.toml");
    let [softmax, copy] = config.kernels.as_slice() else { panic!("two kernels") };
    assert_eq!((softmax.line, softmax.compile.target.as_deref()), (11, Some("sm_90")));
    assert_eq!(softmax.compile.signature, ["*fp32", "*fp32", "i32"]);
    assert_eq!(softmax.compile.constants["BLOCK"], serde_json::json!(1024));
    assert_eq!((softmax.compile.num_warps, softmax.compile.num_stages), (Some(8), None));
    assert_eq!(softmax.artifact_checks.max_registers, Some(96));
    assert_eq!(softmax.artifact_checks.allow, ["scalar-access", "address-overflow"]);
    assert_eq!(copy.compile.options, ["-use_fast_math"]);
    assert_eq!((copy.artifact_checks.max_registers, copy.artifact_checks.max_spills), (Some(128), Some(0)));
}

#[test]
fn impossible_kernels_are_shown_where_they_stand() {
    let kernel = |lines: &str| message(&format!("{NAMED}[[kernels]]\nname = \"k\"\n{lines}\n"));
    for source in ["k.cubin", "k.py", "k.py:", ":f", ".py:f", "", "k"] {
        let shown = kernel(&format!("source = \"{source}\""));
        assert!(shown.starts_with(&format!("the source '{source}' of kernel 'k' is of no known kind")), "{shown}");
    }
    snapbox::assert_data_eq!(
        kernel("source = \"k.ptx\"\ncompile = { signature = [\"*fp32\"] }"),
        snapbox::str![[r#"
'signature' means nothing to kernel 'k': its source is a .ptx file, which is taken as written
 --> gpuemu.toml:6:25
  |
6 | compile = { signature = ["*fp32"] }
  |                         ^^^^^^^^^
  |
  = hint: remove it
"#]]
    );
    let cases = [
        ("source = \"k.cu\"\ncompile = { num_warps = 4 }", "'num_warps' means nothing to kernel 'k'"),
        ("source = \"k.py:f\"\ncompile = { options = [\"-O3\"] }", "'options' means nothing to kernel 'k'"),
        ("source = \"k.ptx\"\ncompile = { target = \"sm_80\" }", "'target' means nothing to kernel 'k'"),
        ("source = \"k.cu\"\ncompile = { target = \"80\" }", "'80' is not an architecture"),
        ("source = \"k.py:f\"\ncompile = { num_warps = 3 }", "num_warps is 3, but must be 1, 2, 4, 8, 16 or 32"),
        ("source = \"k.ptx\"\n[lint]\narchitectures = [\"sm_80\", \"sm80\"]", "'sm80' is not an architecture"),
        ("source = \"k.ptx\"\n[lint]\narchitectures = [\"sm_8x\"]", "'sm_8x' is not an architecture"),
        ("source = \"k.ptx\"\n[lint]\nseverity = { scalar-access = \"loud\" }", "unknown variant `loud`"),
    ];
    for (lines, expected) in cases {
        let shown = kernel(lines);
        assert!(shown.starts_with(expected), "{lines}\n{shown}");
        assert!(shown.contains("--> gpuemu.toml:"), "{shown}");
    }
}

#[test]
fn both_spellings_may_stand_together_if_they_agree() {
    let config = read(&format!("{NAMED}[ci]\nparallel_jobs = 3\nparallel = 3\n")).unwrap();
    assert_eq!(config.ci.parallel, 3);
}

#[test]
fn seeds_reach_all_64_bits_as_text() {
    let config = read(&format!("{NAMED}[validation]\nseed = \"18446744073709551615\"\n")).unwrap();
    assert_eq!(config.validation.seed, Seed::Fixed(u64::MAX));
    assert_eq!(read(&format!("{NAMED}[validation]\nseed = 0\n")).unwrap().validation.seed, Seed::Random);
}

#[test]
fn the_project_goes_before_the_user_and_the_user_before_the_daemon() {
    let folder = project("[project]\nname = \"p\"\n[validation]\ncheck_nan = false\n");
    let user = folder.path().join(".config/gpuemu");
    let home = folder.path().join(".gpuemu");
    fs::create_dir_all(&user).unwrap();
    fs::create_dir_all(&home).unwrap();
    fs::write(
        user.join("config.toml"),
        "[validation]\ncheck_nan = true\ncheck_inf = false\n[ci]\nparallel = 5\n[[ops]]\nname = \"mine\"\n",
    )
    .unwrap();
    fs::write(
        home.join("daemon.toml"),
        "[validation]\ncheck_inf = true\nseed = 9\n[ci]\nparallel_jobs = 7\n[daemon]\nworkers = 3\nlog_level = \"warn\"\n",
    )
    .unwrap();
    let config = load(folder.path(), &environment(folder.path())).unwrap();
    assert!(!config.validation.check_nan && !config.validation.check_inf);
    assert_eq!(config.validation.seed, Seed::Fixed(9));
    assert_eq!(config.ci.parallel, 5, "the user's spelling wins over the daemon's other one");
    assert_eq!((config.daemon.workers, config.daemon.log_level), (3, LogLevel::Warn));
    assert_eq!(config.ops.len(), 1);
    // A list of one file that names something of another's: the error points into the first.
    fs::write(
        folder.path().join("gpuemu.toml"),
        "[project]\nname = \"ééé\"\n[[expected_failures]]\nop = \"mien\"\nreason = \"r\"\nexpires = \"2030-01-01\"\n",
    )
    .unwrap();
    let error = load(folder.path(), &environment(folder.path())).unwrap_err().to_string();
    assert!(error.contains("there is no op 'mien'") && error.contains("gpuemu.toml:4:6"), "{error}");
    assert!(error.contains("did you mean `mine`?"), "{error}");
    fs::write(folder.path().join("gpuemu.toml"), NAMED).unwrap();
    // An error in a lower file names that file.
    fs::write(home.join("daemon.toml"), "[daemon]\nworkers = -1\n").unwrap();
    let error = load(folder.path(), &environment(folder.path())).unwrap_err().to_string();
    assert!(error.contains("daemon.toml:2:11"), "{error}");
}

#[test]
fn the_file_is_searched_upwards_or_named_by_a_variable() {
    let folder = project(NAMED);
    let deep = folder.path().join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    let config = load(&deep, &environment(folder.path())).unwrap();
    assert_eq!(config.root, folder.path());
    let other = folder.path().join("other.toml");
    fs::write(&other, "[project]\nname = \"other\"\n").unwrap();
    let named = Environment::of(&[
        ("HOME", folder.path().to_str().unwrap()),
        ("GPUEMU_CONFIG", other.to_str().unwrap()),
        ("GPUEMU_LOG_LEVEL", "debug"),
    ]);
    let config = load(&deep, &named).unwrap();
    assert_eq!((config.project.name.as_str(), config.daemon.log_level), ("other", LogLevel::Debug));
    let empty = TempDir::new().unwrap();
    let error = load(empty.path(), &environment(empty.path())).unwrap_err();
    assert!(matches!(error, ConfigError::NotFound { .. }));
    let loud = Environment::of(&[("HOME", folder.path().to_str().unwrap()), ("GPUEMU_LOG_LEVEL", "loud")]);
    assert!(load(&deep, &loud).unwrap_err().to_string().contains("GPUEMU_LOG_LEVEL is 'loud'"));
}

#[test]
fn folders_and_sockets_follow_the_environment() {
    let plain = Environment::of(&[("HOME", "/home/me")]);
    assert_eq!(plain.socket().unwrap(), Path::new("/home/me/.gpuemu/gpuemu.sock"));
    assert_eq!(plain.user_file().unwrap(), Path::new("/home/me/.config/gpuemu/config.toml"));
    let moved = Environment::of(&[("HOME", "/home/me"), ("GPUEMU_HOME", "/data/g"), ("NO_COLOR", "1")]);
    assert_eq!(moved.socket().unwrap(), Path::new("/data/g/gpuemu.sock"));
    assert!(moved.no_color() && !plain.no_color());
}

#[test]
fn a_change_of_any_file_changes_the_digest() {
    let folder = project(NAMED);
    let first = load(folder.path(), &environment(folder.path())).unwrap().digest;
    assert_eq!(load(folder.path(), &environment(folder.path())).unwrap().digest, first);
    fs::write(folder.path().join("gpuemu.toml"), format!("{NAMED}# a note\n")).unwrap();
    assert_ne!(load(folder.path(), &environment(folder.path())).unwrap().digest, first);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "(\\[(project|ops|ci|validation)\\]|name = \"a\"|seed = -?[0-9]{1,22}|dtypes = \\[\\]|[a-z\\[\\]=\" .é\n]{0,12}|\n){0,12}") {
        let _ = read(&text).map_err(|error| error.to_string());
    }
}

#[test]
fn what_is_no_file_or_has_no_end_is_not_read() {
    let folder = TempDir::new().unwrap();
    let message = |path: &Path| load_file(path.to_path_buf(), &Environment::default()).unwrap_err().to_string();
    assert!(message(Path::new("/dev/zero")).contains("it is no file"));
    assert!(message(folder.path()).contains("it is no file"));
    let huge = folder.path().join("huge.toml");
    fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    assert!(message(&huge).contains("at most 16777216 are read"), "{}", message(&huge));
}
