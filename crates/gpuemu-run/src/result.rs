//! A verdict as it travels, is stored and is shown.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use gpuemu_config::Failure;
use gpuemu_engine::{Case, Subject, Verdict};
use gpuemu_model::ErrorCode;
use gpuemu_model::finding::Outcome;
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

/// Says beside a verdict where it belongs and how its case is run again.
pub fn complete(subject: &Subject, case: &Case, verdict: &mut Verdict, context: Context<'_>) {
    let inputs = context.inputs(subject, case, verdict);
    let result = &mut verdict.result;
    result.passed = result.outcome == Outcome::Passed;
    result.warnings.clear();
    let share = result.largest.tolerance_share;
    if result.passed && share >= context.warn_threshold {
        result.warnings.push(format!("the error uses {:.0} % of the tolerance", 100.0 * share));
    }
    result.op = context.op.to_string();
    (result.run, result.time) = (context.run, now());
    result.settings = context.settings.clone();
    result.replay = context.replay_line(result.seed);
    result.inputs = inputs;
}

/// The result of a verdict, completed.
pub fn result_of(subject: &Subject, case: &Case, mut verdict: Verdict, context: Context<'_>) -> ValidationResult {
    complete(subject, case, &mut verdict, context);
    verdict.result
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
    let words = || verdict.message.clone().unwrap_or_default();
    failed.then(|| Failure::new(ErrorCode::ReferenceScriptFailed, words()))
}
