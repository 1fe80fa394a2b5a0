//! Launch tables of compiled kernels, as people write them and get them wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;

use gpuemu_config::expression::{LaunchContext, TensorFacts, Value};
use gpuemu_config::launch::{CaseLaunch, LaunchArgument, LaunchTable};
use gpuemu_config::{Config, ConfigError, Environment, load};
use gpuemu_tensor::DType;
use tempfile::TempDir;

fn read(text: &str) -> Result<Config, ConfigError> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("gpuemu.toml"), format!("[project]\nname = \"p\"\n{text}")).unwrap();
    load(folder.path(), &Environment::of(&[("HOME", folder.path().to_str().unwrap())]))
}

fn kernel(lines: &str) -> Result<Option<LaunchTable>, String> {
    let config = read(&format!("[[kernels]]\nname = \"k\"\nsource = \"k.ptx\"\n{lines}\n"));
    let mut config = config.map_err(|error| error.to_string())?;
    Ok(config.kernels.remove(0).launch)
}

/// The error as printed, with the file's folder left out.
fn message(lines: &str) -> String {
    let error = kernel(lines).unwrap_err();
    let place = error.find(" --> ").unwrap() + 5;
    let file = error[place..].find("gpuemu.toml").unwrap();
    format!("{}{}", &error[..place], &error[place + file..])
}

/// A softmax of some rows and columns.
struct Softmax {
    shape: [usize; 2],
    dtype: DType,
}

impl LaunchContext for Softmax {
    fn value(&self, name: &str) -> Option<Value> {
        match name {
            "H" => i64::try_from(self.shape[1]).ok().map(Value::Integer),
            "scale" => Some(Value::Float(0.5)),
            _ => None,
        }
    }
    fn tensor(&self, name: &str) -> Option<TensorFacts<'_>> {
        let known = ["input", "out"].contains(&name);
        known.then_some(TensorFacts { shape: &self.shape, strides: &[1024, 1], dtype: self.dtype })
    }
    fn dtype(&self) -> DType {
        self.dtype
    }
}

const SOFTMAX: &str = r#"
entry = "softmax"
grid = ["rows(input)", 1, 1]
block = [128, 1, 1]
shared = "next_pow2(H) * 4"
args = ["out", "input", "stride(input,0)", "H", "scale", 7, "null", "null"]
variants = [
    { when = "next_pow2(H) == 256 && dtype == 'float16'", ptx = "softmax_256.ptx", shared = 16 },
    { when = "next_pow2(H) == 512", ptx = "softmax_512.ptx", entry = "softmax_wide", block = [256] },
]
"#;

fn launch(table: &LaunchTable, case: &Softmax) -> String {
    match table.covering(case).unwrap() {
        None => "not covered".to_string(),
        Some(covering) => covering.launch(case).map_or_else(|error| error.to_string(), |launch| shown(&launch)),
    }
}

fn shown(launch: &CaseLaunch<'_>) -> String {
    let arguments = launch.args.iter().map(|argument| match argument {
        LaunchArgument::Tensor(name) => format!("*{name}"),
        LaunchArgument::Value(value) => value.to_string(),
        LaunchArgument::Null => "null".to_string(),
    });
    let arguments: Vec<String> = arguments.collect();
    let CaseLaunch { ptx, entry, grid, block, shared, .. } = launch;
    format!("{ptx:?} {entry:?} {grid:?} {block:?} {} ({})", shared.unwrap_or(0), arguments.join(", "))
}

#[test]
fn a_case_is_launched_by_the_first_variant_that_covers_it() {
    let table = kernel(SOFTMAX).unwrap().unwrap();
    let case = |columns: usize, dtype: DType| launch(&table, &Softmax { shape: [33, columns], dtype });
    assert_eq!(
        case(200, DType::F16),
        r#"Some("softmax_256.ptx") Some("softmax") [33, 1, 1] [128, 1, 1] 16 (*out, *input, 1024, 200, 0.5, 7, null, null)"#
    );
    assert_eq!(
        case(500, DType::F32),
        r#"Some("softmax_512.ptx") Some("softmax_wide") [33, 1, 1] [256, 1, 1] 2048 (*out, *input, 1024, 500, 0.5, 7, null, null)"#
    );
    assert_eq!(case(200, DType::F32), "not covered");
    assert_eq!(
        launch(&table, &Softmax { shape: [0, 200], dtype: DType::F16 }),
        r#"Some("softmax_256.ptx") Some("softmax") [0, 1, 1] [128, 1, 1] 16 (*out, *input, 1024, 200, 0.5, 7, null, null)"#
    );
}

#[test]
fn without_variants_the_source_is_launched_for_every_case() {
    let table = kernel("grid = [\"ceil_div(numel(input), 1024)\"]\nblock = [32, \"min(H, 4)\"]\nargs = [\"input\"]");
    let table = table.unwrap().unwrap();
    let case = Softmax { shape: [9, 300], dtype: DType::I8 };
    assert_eq!(launch(&table, &case), "None None [3, 1, 1] [32, 4, 1] 0 (*input)");
    assert_eq!(kernel(""), Ok(None));
}

#[test]
fn a_wrong_expression_is_shown_where_it_stands() {
    snapbox::assert_data_eq!(
        message("grid = [\"rosw(input)\", 1]\nblock = [128]\nargs = []"),
        snapbox::str![[r#"
there is no function 'rosw' (did you mean 'rows'?) in the expression "rosw(input)"
 --> gpuemu.toml:6:9
  |
6 | grid = ["rosw(input)", 1]
  |         ^^^^^^^^^^^^^
"#]]
    );
    snapbox::assert_data_eq!(
        message(
            "grid = [1]\nblock = [128]\nargs = []\nvariants = [{ when = \"dtype == 'float61'\", ptx = \"k.ptx\" }]"
        ),
        snapbox::str![[r#"
unknown dtype 'float61'; known dtypes: [..]
 --> gpuemu.toml:9:22
  |
9 | variants = [{ when = "dtype == 'float61'", ptx = "k.ptx" }]
  |                      ^^^^^^^^^^^^^^^^^^^^
"#]]
    );
}

#[test]
fn an_incomplete_table_says_what_is_missing() {
    snapbox::assert_data_eq!(
        message("grid = [1]\nblock = [128]"),
        snapbox::str![[r#"
the launch table of kernel 'k' has no 'args'
 --> gpuemu.toml:6:8
  |
6 | grid = [1]
  |        ^^^
  |
  = hint: a launch needs grid, block and args, of the kernel or of every variant
"#]]
    );
    let missing = |lines: &str, key: &str| {
        let shown = message(lines);
        assert!(shown.starts_with(&format!("the launch table of kernel 'k' has no '{key}'")), "{shown}");
    };
    missing("entry = \"k\"", "grid");
    missing("args = []\ngrid = [1]", "block");
    let one = "{ when = \"H == 1\", ptx = \"a.ptx\", block = [32] }";
    missing(&format!("grid = [1]\nargs = []\nvariants = [{one}, {{ when = \"true\", ptx = \"b.ptx\" }}]"), "block");
    assert!(kernel(&format!("grid = [1]\nargs = []\nvariants = [{one}]")).unwrap().is_some());
}

#[test]
fn impossible_launches_are_shown_where_they_stand() {
    let rest = "\nargs = []";
    for (lines, expected) in [
        ("grid = []\nblock = [1]", "grid of kernel 'k' has 0 sizes, but must have one to three"),
        ("grid = [1, 1, 1, 1]\nblock = [1]", "grid of kernel 'k' has 4 sizes, but must have one to three"),
        ("grid = [0]\nblock = [1]", "a size of grid of kernel 'k' is 0, but must be from 1 to 4294967295"),
        ("grid = [1.5]\nblock = [1]", "a size of grid of kernel 'k' is 1.5, but must be from 1"),
        ("grid = [4294967296]\nblock = [1]", "a size of grid of kernel 'k' is 4294967296"),
        ("grid = [1]\nblock = [\"-1\"]", "a size of block of kernel 'k' is -1"),
        ("grid = [1]\nblock = [1024, 2]", "a block of kernel 'k' has 2048 threads, but may have at most 1024"),
        ("grid = [1]\nblock = [1]\nshared = -1", "shared of kernel 'k' is -1, but must be a number of bytes"),
        ("grid = [1]\nblock = [1]\nshared = \"'much'\"", "shared of kernel 'k' is 'much'"),
        ("grid = [1]\nblock = [1]\nentry = \" \"", "the entry of kernel 'k' is empty"),
        ("grid = [1]\nblock = [1]\nvariants = []", "kernel 'k' has an empty list of variants"),
        (
            "grid = [1]\nblock = [1]\nvariants = [{ when = \"1\", ptx = \"a.ptx\" }]",
            "'when' of a variant of kernel 'k' is 1",
        ),
        (
            "grid = [1]\nblock = [1]\nvariants = [{ when = \"true\", ptx = \"a.cu\" }]",
            "the variant 'a.cu' of kernel 'k' is no .ptx",
        ),
        ("grid = [1]\nblock = [1]\nvariants = [{ when = \"true\", pxt = \"a.ptx\" }]", "unknown field `pxt`"),
        ("grid = \"rows(input)\"\nblock = [1]", "invalid type: string"),
    ] {
        let shown = message(&format!("{lines}{rest}"));
        assert!(shown.starts_with(expected), "{lines}\n{shown}");
        assert!(shown.contains("--> gpuemu.toml:"), "{shown}");
    }
}

#[test]
fn an_op_needs_a_kernel_that_can_be_launched() {
    let kernel = "[[kernels]]\nname = \"k\"\nsource = \"k.ptx\"\n";
    let op = "[[ops]]\nname = \"softmax\"\nkernel = \"k\"\n";
    let error = read(&format!("{kernel}{op}")).unwrap_err().to_string();
    assert!(error.starts_with("op 'softmax' is the kernel 'k', which has no launch table"), "{error}");
    assert!(error.contains("gpuemu.toml:8:10") && error.contains("give the kernel grid, block and args"), "{error}");
    let launched = format!("{kernel}grid = [1]\nblock = [1]\nargs = [\"out\"]\n{op}");
    assert_eq!(read(&launched).unwrap().ops.len(), 1);
}
