//! Configuration files: read, checked, evaluated and edited.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gpuemu_config::expression::{Expression, LaunchContext, TensorFacts, Value};
use gpuemu_config::{
    Calibration, Environment, Kernel, TolerancePair, kernels_of, load_daemon, load_text, with_calibrations,
    with_tolerance,
};
use gpuemu_model::Strategy;
use gpuemu_tensor::DType;
use tempfile::TempDir;

use super::Target;
use super::workplace::folder;

/// The target. A text is a configuration, and an expression.
pub const TARGET: Target = Target {
    name: "config",
    run,
    words: &[
        "[[ops]]\n",
        "name = \"relu\"\n",
        "[ops.tolerances]\n",
        "float32 = { atol = 1e-5, rtol = 0 }\n",
        "[[kernels]]\n",
        "[kernels.launch]\n",
        "grid = [\"",
        "ceil_div(",
        "numel(input)",
        "stride(input, ",
        "dtype == 'float16'",
        "&&",
        "||",
        "!(",
        "min(",
        "[daemon]\n",
        "[validation]\n",
        "[lint]\n",
        "[ci]\n",
        "seed = ",
        "dims = { ",
        "reference = \"",
        "[ops.calibration.float32]\n",
        "\r\n",
        "\"\"\"",
        "{}",
        "= ",
        "9223372036854775807",
        "-9223372036854775808",
    ],
    thousands: 1_000,
    thousands_short: 30,
};

/// A folder whose `daemon.toml` is written anew each time.
static HOME: LazyLock<Option<TempDir>> = LazyLock::new(folder);

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    evaluate(text);
    if let Ok(kernels) = kernels_of("kernels.toml", text) {
        kernels.iter().for_each(launch);
    }
    let path = PathBuf::from("/project/gpuemu.toml");
    match load_text(path.clone(), text.to_string(), &Environment::default()) {
        Ok(config) => {
            config.kernels.iter().for_each(launch);
            config.ops.iter().for_each(|op| edit(&path, text, &op.name));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some(home) = HOME.as_ref()
        && bytes.len().is_multiple_of(8)
        && std::fs::write(home.path().join("daemon.toml"), bytes).is_ok()
    {
        let _ = load_daemon(&Environment::of(&[("GPUEMU_HOME", &home.path().to_string_lossy())]));
    }
}

fn edit(path: &Path, text: &str, op: &str) {
    let tolerance = TolerancePair { atol: 1e-6, rtol: 0.5 };
    if let Ok(edited) = with_tolerance(path, text, op, DType::BF16, tolerance) {
        let again = with_tolerance(path, &edited, op, DType::BF16, tolerance);
        assert_eq!(again.as_ref().ok(), Some(&edited), "a second edit says something else: {again:?}");
    }
    let (control, values) = ("c".to_string(), Strategy::Adversarial);
    let calibration = Calibration { atol: 1e-9, rtol: 0.0, control, cases: 1, seed: 1, values };
    let _ = with_calibrations(path, text, op, &BTreeMap::from([(DType::F16, calibration)]));
}

fn launch(kernel: &Kernel) {
    if let Some(table) = &kernel.launch
        && let Ok(Some(covering)) = table.covering(&Case)
    {
        let _ = covering.launch(&Case);
    }
}

fn evaluate(text: &str) {
    let Ok(expression) = text.parse::<Expression>() else { return };
    let _ = (expression.evaluate(&Case), expression.integer(&Case), expression.holds(&Case), expression.names());
}

/// A case with a few names, sizes at limits among them.
struct Case;

impl LaunchContext for Case {
    fn value(&self, name: &str) -> Option<Value> {
        match name {
            "N" => Some(Value::Integer(1024)),
            "H" => Some(Value::Integer(0)),
            "M" => Some(Value::Integer(i64::MAX)),
            "L" => Some(Value::Integer(i64::MIN)),
            "eps" => Some(Value::Float(f64::NAN)),
            "causal" => Some(Value::Boolean(true)),
            _ => None,
        }
    }

    fn tensor(&self, name: &str) -> Option<TensorFacts<'_>> {
        match name {
            "huge" => Some(TensorFacts { shape: &[usize::MAX, 3], strides: &[isize::MIN, 1], dtype: DType::F16 }),
            "input" | "output" => Some(TensorFacts { shape: &[4, 0, 3], strides: &[3, 3, 1], dtype: DType::F16 }),
            _ => None,
        }
    }

    fn dtype(&self) -> DType {
        DType::F16
    }
}
