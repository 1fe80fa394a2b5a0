//! A verdict as it travels, is stored and is shown.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use gpuemu_config::Failure;
use gpuemu_engine::{Case, Subject, Verdict};
use gpuemu_model::ErrorCode;
use gpuemu_model::finding::Outcome;
use gpuemu_model::json::ToJson;
use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};

/// Milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}

/// What a result says beside its verdict.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The op's name in the project.
    pub op: &'a str,
    /// The run it belongs to.
    pub run: Option<u64>,
    /// What its case was drawn from.
    pub settings: &'a FuzzConfig,
    /// Share of the tolerance from which a warning is given.
    pub warn_threshold: f64,
    /// How the case is run again, `{seed}` standing for its seed; none where the command line does it.
    pub replay: Option<&'a str>,
    /// A failure's result holds its inputs if they have no more bytes in all; none where it never does.
    pub inputs_up_to: Option<u64>,
}

impl<'a> Context<'a> {
    /// For a case of a project, replayed by the command line and kept apart from its inputs.
    pub fn new(op: &'a str, run: Option<u64>, settings: &'a FuzzConfig, warn_threshold: f64) -> Self {
        Self { op, run, settings, warn_threshold, replay: None, inputs_up_to: None }
    }

    fn replay_line(&self, seed: u64) -> String {
        match self.replay {
            Some(line) => line.replace("{seed}", &seed.to_string()),
            None => replay_line(self.op, seed, self.settings),
        }
    }

    fn inputs(&self, subject: &Subject, case: &Case, verdict: &Verdict) -> Option<NamedTensorData> {
        let most = self.inputs_up_to.filter(|_| verdict.failed())?;
        let tensors = case.named_inputs(subject.schema());
        let bytes: u64 = tensors.iter().map(|(_, tensor)| tensor.storage().len() as u64).sum();
        let written = tensors.iter().map(|(name, tensor)| (name.clone(), TensorData::base64_as_it_lies(tensor)));
        let mut inputs = NamedTensorData::default();
        inputs.0.extend(written);
        (bytes <= most && !tensors.is_empty()).then_some(inputs)
    }
}

pub fn result_of(subject: &Subject, case: &Case, verdict: &Verdict, context: Context<'_>) -> ValidationResult {
    let descriptor = &verdict.case;
    let inputs = subject.schema().inputs.iter().filter(|spec| descriptor.has(spec));
    let shapes = inputs.filter_map(|spec| Some((spec.name.clone(), spec.shape(&descriptor.sizes)?)));
    let mut warnings = Vec::new();
    if verdict.outcome == Outcome::Passed && verdict.errors.share >= context.warn_threshold {
        warnings.push(format!("the error uses {:.0} % of the tolerance", 100.0 * verdict.errors.share));
    }
    ValidationResult {
        op: context.op.to_string(),
        outcome: verdict.outcome,
        passed: verdict.outcome == Outcome::Passed,
        seed: descriptor.seed,
        dtype: descriptor.dtype,
        sizes: descriptor.sizes.to_string(),
        shapes: shapes.collect(),
        layout: descriptor.layout_summary(subject.schema()),
        values: descriptor.strategy.to_string(),
        parameters: descriptor.parameters.to_string(),
        failures: verdict.findings.clone(),
        message: verdict.undetermined.clone(),
        warnings,
        max_abs_diff: verdict.errors.absolute,
        max_rel_diff: verdict.errors.relative,
        max_ulp_diff: verdict.errors.ulps,
        tolerance_share: verdict.errors.share,
        tolerance: verdict.tolerance.describe(),
        elements: verdict.elements,
        runner: verdict.runner.name.clone(),
        not_checked: verdict.not_checked.iter().map(ToString::to_string).collect(),
        case: descriptor.to_json_value().unwrap_or_default(),
        failing_case: verdict.failing_case.as_ref().and_then(|case| case.to_json_value().ok()),
        run: context.run,
        time: now(),
        minimized: false,
        client_side: false,
        settings: context.settings.clone(),
        inputs: context.inputs(subject, case, verdict),
        replay: context.replay_line(descriptor.seed),
    }
}

/// The command that runs a case again, on any machine that has the project.
pub fn replay_line(op: &str, seed: u64, settings: &FuzzConfig) -> String {
    let mut line = format!("gpuemu reproduce {seed} --op {op}");
    let list = |sizes: &[usize]| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    // Writing to a string cannot fail.
    if settings.quick {
        line.push_str(" --quick");
    }
    if let Some(dtypes) = &settings.dtypes {
        let _ = write!(line, " --dtypes {}", dtypes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    }
    if let Some(values) = settings.values {
        let _ = write!(line, " --values {values}");
    }
    if let Some(layouts) = &settings.layouts {
        let _ = write!(line, " --layouts {}", layouts.join(","));
    }
    if !settings.min_shape.is_empty() {
        let _ = write!(line, " --min-shape {}", list(&settings.min_shape));
    }
    if !settings.max_shape.is_empty() {
        let _ = write!(line, " --max-shape {}", list(&settings.max_shape));
    }
    line
}

/// A reference that gave no answer, in its own words.
pub fn reference_failure(verdict: &Verdict) -> Option<Failure> {
    let failed = verdict.outcome == Outcome::Error;
    let words = || verdict.undetermined.clone().unwrap_or_default();
    failed.then(|| Failure::new(ErrorCode::ReferenceScriptFailed, words()))
}
