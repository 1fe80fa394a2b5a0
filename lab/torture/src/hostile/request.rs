//! Requests as JSON, and what answers them, where no Python is started.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use gpuemu_config::Environment;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_service::Service;
use gpuemu_wire::protocol::{Frame, Request, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Target;
use super::workplace::folder;

pub const TARGET: Target = Target {
    name: "request",
    run,
    words: &[
        "\"type\":\"GetTestCase\"",
        "\"type\":\"GetTestBatch\"",
        "\"type\":\"ValidateOp\"",
        "\"type\":\"SubmitOutput\"",
        "\"type\":\"RecordResults\"",
        "\"type\":\"CompareBaseline\"",
        "\"type\":\"SubmitJob\",\"job\":",
        "\"type\":\"ListResults\"",
        "\"op_name\":\"softmax\"",
        "\"op_name\":\"matmul\"",
        "\"op_name\":\"attention\"",
        "\"config\":{",
        "\"max_shape\":[",
        "\"min_shape\":[",
        "\"dtypes\":[\"float16\"]",
        "\"layouts\":[\"strided\"]",
        "\"values\":\"adversarial\"",
        "\"seed\":\"1\"",
        "\"kwargs\":{",
        "\"inputs\":{",
        "\"shape\":[",
        "\"strides\":[",
        "\"data\":\"AAAA\"",
        "\"dtype\":\"bfloat16\"",
        "\"since_hours\":1e308",
        "\"limit\":0",
        "\"encoding\":\"binary\"",
        "\"shard\":{\"index\":1,\"count\":2}",
        "\"eps\":",
        "\"NaN\"",
        "null",
    ],
    thousands: 500,
    thousands_short: 40,
};

/// Requests that one service answers: what it stores is not to grow without end.
const REQUESTS: u64 = 4_000;

/// When a job counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

struct Workplace {
    service: Arc<Service>,
    answered: u64,
    project: TempDir,
    _home: TempDir,
}

static WORKPLACE: LazyLock<Mutex<Option<Workplace>>> = LazyLock::new(Mutex::default);

fn run(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(bytes) else { return };
    // As it was sent; what is answered below is bounded first.
    if serde_json::from_slice::<Request>(frame.header).is_err() {
        return;
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(frame.header) else { return };
    let mut guard = WORKPLACE.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.as_ref().is_none_or(|workplace| workplace.answered >= REQUESTS) {
        *guard = None;
        *guard = open();
    }
    let Some(workplace) = guard.as_mut() else { return };
    workplace.answered += 1;
    bound(&mut value, &workplace.project.path().to_string_lossy());
    let Ok(request) = serde_json::from_value::<Request>(value) else { return };
    let answer = workplace.service.answer(request, frame.payload);
    refuse_faults(&answer.response);
    if let Response::Job { job } = &answer.response
        && let Some(job) = workplace.service.jobs().get(job.job)
    {
        let status = job.status(PATIENCE);
        assert!(status.result.is_some(), "a job did not end: {status:?}");
        status.result.iter().for_each(|response| refuse_faults(response));
    }
    let text = serde_json::to_vec(&answer.response);
    let again = text.map(|text| serde_json::from_slice::<Response>(&text).map(|_| ()));
    assert!(matches!(again, Ok(Ok(()))), "a client cannot understand the answer: {again:?}");
}

/// A fault of gpuemu is an answer, and it is one too many.
fn refuse_faults(response: &Response) {
    if let Response::Error { code: ErrorCode::InternalError, message, .. } = response {
        assert!(!message.contains("internal error: "), "{message}");
    }
}

fn open() -> Option<Workplace> {
    let (home, project) = (folder()?, folder()?);
    let environment = Environment::of(&[("GPUEMU_HOME", &home.path().to_string_lossy())]);
    let service = Service::open(home.path(), "a trial", environment).ok()?;
    Some(Workplace { service, answered: 0, project, _home: home })
}

/// Puts a request into the project that is there, which has no op that could be run, and bounds how many cases it asks for.
fn bound(value: &mut Value, root: &str) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("tools");
            fields.iter_mut().for_each(|(name, field)| bound_field(name, field, root));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| bound(element, root)),
        _ => {}
    }
}

fn bound_field(name: &str, field: &mut Value, root: &str) {
    let most = match name {
        "max_runs" | "count" => 3,
        "wait_ms" => 0,
        "project" if field.is_object() => {
            *field = json!({ "root": root });
            return;
        }
        _ => return bound(field, root),
    };
    if field.as_u64().is_some_and(|number| number > most) {
        *field = json!(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::inputs;

    /// Changes of a seed that is not understood would try the parser alone.
    #[test]
    fn the_seeds_are_understood() {
        for (name, bytes) in inputs(TARGET.name).unwrap() {
            if !name.starts_with("found-") {
                let header = Frame::parse(&bytes).unwrap().header;
                serde_json::from_slice::<Request>(header).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}
