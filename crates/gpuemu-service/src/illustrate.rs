//! What is wrong with a failing case, for a report: the errors of its output as a picture, and its smallest form.
//! Nothing is stored: who reads a report has found nothing new.

use std::time::Duration;

use gpuemu_config::failure::Failure;
use gpuemu_engine::Verdict;
use gpuemu_engine::case::materialise;
use gpuemu_engine::minimise::{self, Budget, MinimiseStrategy, Minimised, minimise_case};
use gpuemu_engine::oracle::judge::run_case;
use gpuemu_engine::oracle::picture::Drawn;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::picture::ErrorPicture;
use gpuemu_run::configured_op::StartedOp;
use gpuemu_wire::protocol::{Illustrate, Illustration, Neighbour, Response, SmallestCase};

use super::Service;
use super::replay::Found;
use crate::jobs::Job;

/// What may be spent on the smallest form of one failure: a report shows several of them.
const SEARCH: Budget = Budget { runs: 400, time: Duration::from_secs(10) };

impl Service {
    /// Runs a failing case again and says where in its output the errors are.
    pub(super) fn illustrate(&self, request: &Illustrate, job: &Job) -> Result<Response, Failure> {
        job.say(&request.op_name);
        let mut found = self.find(&request.project, Some(&request.op_name), request.seed, &request.config, false)?;
        if request.case.as_ref().is_some_and(|asked| *asked != found.case.descriptor) {
            let message = "its seed stands for another case now: the op's definition or the settings have changed";
            return Err(Failure::new(ErrorCode::NotFound, message));
        }
        let verdict = found.judge()?;
        let mut illustration = Illustration {
            result: found.result(verdict.clone()),
            picture: None,
            without_picture: None,
            smallest: None,
        };
        if verdict.failed() {
            let smallest = if request.minimize { shrink(&mut found)? } else { None };
            let neighbour = smallest.as_ref().and_then(|smallest| smallest.neighbour.as_ref());
            match picture(&mut found, &verdict, neighbour) {
                Ok(picture) => illustration.picture = Some(picture),
                Err(reason) => illustration.without_picture = Some(reason),
            }
            illustration.smallest = smallest.map(|smallest| SmallestCase {
                result: found.result(smallest.verdict),
                neighbour: smallest.neighbour.map(|neighbour| Neighbour {
                    dimension: neighbour.dimension,
                    fails: neighbour.fails,
                    passes: neighbour.passes,
                }),
                runs: smallest.runs,
                values_edited: smallest.edited,
            });
        }
        Ok(Response::Illustration { illustration: Box::new(illustration) })
    }
}

fn shrink(found: &mut Found) -> Result<Option<Minimised>, Failure> {
    let StartedOp { op, runner } = &mut found.started;
    let smallest = minimise_case(&op.subject, found.case.clone(), runner, MinimiseStrategy::default(), SEARCH);
    runner.error().map_or(Ok(smallest), |error| Err(error.clone().into()))
}

/// The picture of the output that the gravest finding is about, or why there is none.
fn picture(
    found: &mut Found,
    verdict: &Verdict,
    neighbour: Option<&minimise::Neighbour>,
) -> Result<ErrorPicture, String> {
    let StartedOp { op, runner } = &mut found.started;
    let subject = &op.subject;
    let extra = match &verdict.failing_case {
        Some(failing) => Some(materialise(subject.schema(), failing).map_err(|error| error.to_string())?),
        None => None,
    };
    let case = extra.as_ref().unwrap_or(&found.case);
    let outputs = run_case(subject, case, runner).map_err(|error| format!("there is no output to draw: {error}"))?;
    let expectations = subject.expect(case).map_err(|error| error.to_string())?;
    let concerned = verdict.finding().map_or("", |finding| finding.tensor.as_str());
    let specs = subject.schema().outputs.iter().filter(|spec| spec.is_in(&case.descriptor));
    let mut pictures = Vec::new();
    for ((spec, buffer), expectation) in specs.zip(&outputs).zip(&expectations) {
        let shape = spec.shape(&case.descriptor.sizes).unwrap_or_default();
        let rule = subject.rule(spec.dtype_in(case.descriptor.dtype));
        if buffer.shape() != shape || buffer.dtype() != rule.dtype {
            let (found_shape, dtype) = (buffer.shape(), buffer.dtype());
            return Err(format!("there is nothing to draw: output '{}' is {dtype}{found_shape:?}", spec.name));
        }
        let bytes = buffer.contiguous_bytes();
        let drawn = Drawn { spec, shape: &shape, rule: &rule, bytes: &bytes, expectation };
        pictures.extend(drawn.picture(neighbour));
    }
    let place = pictures.iter().position(|picture| picture.tensor == concerned).unwrap_or(0);
    if pictures.is_empty() {
        return Err("every element of the output was right when the case was run for the picture".to_string());
    }
    Ok(pictures.swap_remove(place))
}
