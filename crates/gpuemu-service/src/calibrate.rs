//! Measuring a trusted control of an op: what calibrated tolerances are made of.

use std::collections::BTreeMap;

use gpuemu_config::failure::Failure;
use gpuemu_config::{OpSource, ToleranceMode, TolerancePair};
use gpuemu_engine::case::materialise;
use gpuemu_engine::oracle::calibrate::{CalibrationError, Meter, Readings};
use gpuemu_engine::oracle::envelope::{LEAST_CASES, LEAST_ULPS};
use gpuemu_engine::{Sampler, Subject};
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::nearest::nearest;
use gpuemu_run::configured_op::{ConfiguredOp, StartedOp};
use gpuemu_run::op_definition::float_outputs;
use gpuemu_run::project::Project;
use gpuemu_runners::op_runner::OpRunner;
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;
use gpuemu_wire::protocol::{Calibrate, CalibrationReport, DtypeCalibration, Response};

use super::Service;
use super::run::base_seed;
use crate::jobs::Job;

/// Cases of each dtype where no number is given.
const CASES: u64 = 200;

/// From here on a tolerance is said to be loose.
const LOOSE: f64 = 10.0;

impl Service {
    /// Measures a control of an op. Nothing is stored: that is for whoever asked.
    pub(super) fn calibrate(&self, request: &Calibrate, job: &Job) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let cases = request.config.iterations.unwrap_or(CASES);
        if cases < LEAST_CASES as u64 {
            let message = format!("{cases} cases are too few to calibrate with: a 95th percentile needs {LEAST_CASES}");
            return Err(Failure::invalid(message).hint(format!("{CASES} are drawn where no number is given")));
        }
        let (controlled, itself) = with_control(&project, request)?;
        let op = ConfiguredOp::open(&controlled, &request.op_name, &request.config, &self.pool)?;
        if float_outputs(op.subject.schema(), &op.sampler).is_empty() {
            return Err(Failure::invalid(format!("op '{}' has no float output: nothing has an error", op.name)));
        }
        let (source, reference) = (op.source.clone(), op.reference.clone());
        let StartedOp { op, mut runner } = op.start()?;
        job.plan(cases.saturating_mul(op.sampler.dtypes.len() as u64));
        job.say(&op.name);
        let plan = Measuring { cases, base_seed: base_seed(&project, &request.config) };
        let readings = plan.measure(&op.subject, &op.sampler, &mut runner, job)?;
        let mut report = CalibrationReport {
            op: op.name.clone(),
            control: if itself { format!("itself: {source}") } else { source },
            reference,
            seed: plan.base_seed,
            values: op.sampler.strategy,
            drawn: cases,
            dtypes: Vec::new(),
            warnings: op.warnings.clone(),
        };
        let stored = project.config.ops.iter().find(|known| known.name == op.name).map(|known| &known.calibration);
        for (dtype, readings) in &readings {
            let before = stored.and_then(|stored| stored.get(dtype));
            let before = before.map(|pair| TolerancePair { atol: pair.atol, rtol: pair.rtol });
            let measured = calibrated(*dtype, readings, before, cases)?;
            report.warnings.extend(warnings_of(&measured));
            report.dtypes.push(measured);
        }
        Ok(Response::Calibration { report: Box::new(report) })
    }
}

/// Which cases are measured.
struct Measuring {
    cases: u64,
    base_seed: u64,
}

impl Measuring {
    /// What was measured of float outputs, by their dtype.
    fn measure(
        &self,
        subject: &Subject,
        sampler: &Sampler,
        runner: &mut OpRunner,
        job: &Job,
    ) -> Result<BTreeMap<DType, Readings>, Failure> {
        let mut meter = Meter::new(subject);
        for dtype in &sampler.dtypes {
            let sampler = Sampler { dtypes: vec![*dtype], ..sampler.clone() };
            for index in 0..self.cases {
                if job.is_cancelled() {
                    return Err(Failure::invalid("cancelled before all cases were measured"));
                }
                let descriptor = subject.describe(&sampler, case_seed(self.base_seed, index));
                let case = materialise(subject.schema(), &descriptor)
                    .map_err(|error| Failure::invalid(format!("case {index} cannot be made: {error}")))?;
                let added = meter.add(&case, runner);
                if let Some(error) = runner.error() {
                    return Err(Failure::new(ErrorCode::ConfigError, error.to_string()));
                }
                added.map_err(|error| {
                    let case = format!("{dtype}, {}, {}", descriptor.sizes, descriptor.values.name());
                    let message = format!("{error} ({case})");
                    match error {
                        CalibrationError::Reference { .. } => Failure::new(ErrorCode::ReferenceScriptFailed, message),
                        _ => Failure::invalid(message).hint(WRONG_CONTROL),
                    }
                })?;
                job.advance(false);
            }
        }
        Ok(meter.readings())
    }
}

const WRONG_CONTROL: &str = "a control that fails is no control: nothing was stored; fix it, or give another one";

/// The project with the control in the place of an op, judged by the op's reference and, where that has one, its
/// bound. And whether the control is the op itself.
fn with_control(project: &Project, request: &Calibrate) -> Result<(Project, bool), Failure> {
    let mut controlled = project.clone();
    let name = &request.op_name;
    let Some(op) = controlled.config.ops.iter_mut().find(|op| op.name == *name) else {
        let failure = Failure::new(ErrorCode::OpNotFound, format!("the project has no op '{name}' to calibrate"));
        let known = project.config.ops.iter().map(|op| op.name.as_str());
        return Err(match nearest(name, known) {
            Some(meant) => failure.hint(format!("did you mean '{meant}'?")),
            None => failure.hint("a calibration is kept with an [[ops]] entry of gpuemu.toml: add one"),
        });
    };
    let control = request.control.as_deref().map(|text| control_of(project, text)).transpose()?;
    let itself = control.as_ref().is_none_or(|control| is_same(name, control, &op.source));
    if itself && !request.trust_op {
        let message = format!("calibrating '{name}' on itself would bless its bugs");
        let hint = "give --control, a trusted implementation of the same op, or --trust-op if you mean it";
        return Err(Failure::invalid(message).hint(hint));
    }
    op.source = control.unwrap_or_else(|| op.source.clone());
    op.tolerance = Some(if op.reference.is_some() { ToleranceMode::Fixed } else { ToleranceMode::Bound });
    Ok((controlled, itself))
}

/// What a control is: a kernel of the project, a script, or a callable.
fn control_of(project: &Project, text: &str) -> Result<OpSource, Failure> {
    let kernels = &project.config.kernels;
    if let Some(kernel) = kernels.iter().find(|kernel| kernel.name == text) {
        if kernel.launch.is_none() {
            let message = format!("the control is the kernel '{text}', which has no launch table");
            return Err(Failure::invalid(message).hint("give the kernel grid, block and args"));
        }
        return Ok(OpSource::Kernel(text.to_string()));
    }
    if text.ends_with(".py") {
        return Ok(OpSource::Script(text.to_string()));
    }
    if text.contains(':') {
        return Ok(OpSource::Module(text.to_string()));
    }
    let message = format!("the control '{text}' is no kernel of the project, no script (.py) and no module:function");
    let failure = Failure::invalid(message);
    Err(match nearest(text, kernels.iter().map(|kernel| kernel.name.as_str())) {
        Some(meant) => failure.hint(format!("did you mean the kernel '{meant}'?")),
        None => failure.hint("kernels are [[kernels]] entries of gpuemu.toml"),
    })
}

/// Whether two sources are one. A module without a function means the one that is named like the op.
fn is_same(op: &str, left: &OpSource, right: &OpSource) -> bool {
    let whole = |source: &OpSource| match source {
        OpSource::Module(target) if !target.contains(':') => OpSource::Module(format!("{target}:{op}")),
        OpSource::Script(path) => OpSource::Script(path.trim_start_matches("./").to_string()),
        other => other.clone(),
    };
    whole(left) == whole(right)
}

fn calibrated(
    dtype: DType,
    readings: &Readings,
    before: Option<TolerancePair>,
    drawn: u64,
) -> Result<DtypeCalibration, Failure> {
    let measured = readings.errors.len();
    let envelope = readings.envelope().filter(|_| measured >= LEAST_CASES).ok_or_else(|| {
        let message = format!(
            "only {measured} of {drawn} cases gave a finite number of {dtype} to measure, but {LEAST_CASES} are needed"
        );
        Failure::invalid(message).hint("draw more with --cases")
    })?;
    let (atol, rtol) = envelope.kept(dtype);
    Ok(DtypeCalibration {
        dtype,
        cases: measured as u64,
        p95: envelope.p95,
        largest: envelope.largest,
        beyond: readings.errors.iter().filter(|error| **error > envelope.size()).count() as u64,
        atol,
        rtol,
        before,
        over_bound: readings.looseness(atol),
    })
}

/// What must not happen in silence: a tolerance that grows, or that is loose.
fn warnings_of(measured: &DtypeCalibration) -> Vec<String> {
    let mut warnings = Vec::new();
    let dtype = measured.dtype;
    if let Some(before) = measured.before.filter(|pair| measured.atol > pair.atol || measured.rtol > pair.rtol) {
        warnings.push(format!(
            "{dtype} is looser than before: atol {:e} was {:e}, rtol {:e} was {:e}",
            measured.atol, before.atol, measured.rtol, before.rtol
        ));
    }
    if let Some(times) = measured.over_bound.filter(|times| *times > LOOSE) {
        warnings.push(format!(
            "{dtype} is {times:.1} times as loose as the rigorous bound at a typical element: tolerance = \"bound\" sees more"
        ));
    }
    if measured.largest == 0.0 {
        warnings.push(format!("the control is exact in {dtype}: {LEAST_ULPS} ulp are allowed all the same"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(errors: Vec<f64>) -> Readings {
        Readings { bounds: vec![1e-6; errors.len()], errors }
    }

    #[test]
    fn a_tolerance_never_grows_in_silence() {
        let before = Some(TolerancePair { atol: 1e-6, rtol: 1e-6 });
        let words = |error: f64| warnings_of(&calibrated(DType::F32, &readings(vec![error; 30]), before, 30).unwrap());
        assert_eq!(words(5e-7), Vec::<String>::new());
        let looser = words(2e-6);
        assert_eq!(looser.len(), 1);
        assert!(looser[0].contains("float32 is looser than before: atol 3e-6 was 1e-6"), "{looser:?}");
        assert!(words(2e-5)[1].contains("30.0 times as loose as the rigorous bound"), "{:?}", words(2e-5));
        assert!(words(0.0)[0].contains("the control is exact in float32"));
    }

    #[test]
    fn too_few_measured_cases_are_an_error() {
        let error = calibrated(DType::F32, &readings(vec![1e-7; 19]), None, 200).unwrap_err();
        assert!(error.message.contains("only 19 of 200 cases gave a finite number of float32"), "{error:?}");
        assert!(calibrated(DType::F32, &readings(vec![1e-7; 20]), None, 200).is_ok());
    }

    #[test]
    fn a_module_and_its_function_are_one_source() {
        let module = |text: &str| OpSource::Module(text.to_string());
        assert!(is_same("relu", &module("code"), &module("code:relu")));
        assert!(!is_same("relu", &module("code:other"), &module("code")));
        let script = |text: &str| OpSource::Script(text.to_string());
        assert!(is_same("relu", &script("./relu.py"), &script("relu.py")));
        assert!(!is_same("relu", &OpSource::Kernel("relu".to_string()), &module("relu")));
    }
}
