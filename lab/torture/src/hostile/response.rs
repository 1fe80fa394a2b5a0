//! What a client reads of an answer.

use gpuemu_model::tensor_data::NamedTensorData;
use gpuemu_wire::protocol::{Frame, Response};

use super::Target;
use super::tensor::read;

pub const TARGET: Target = Target {
    name: "response",
    run,
    words: &[
        "\"type\":\"Pong\"",
        "\"type\":\"Error\"",
        "\"TestCase\"",
        "\"Results\"",
        "\"Job\"",
        "\"result\":",
        "\"binary\":",
        "\"data\":\"AAAA\"",
        "\"shape\":[",
        "null",
        "\"NaN\"",
    ],
    thousands: 1_000,
    thousands_short: 60,
};

fn run(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(bytes) else { return };
    let Ok(response) = serde_json::from_slice::<Response>(frame.header) else { return };
    match &response {
        Response::TestCase { case } => read_all(&case.inputs, frame.payload),
        Response::TestBatch { cases } => cases.iter().for_each(|case| read_all(&case.inputs, frame.payload)),
        _ => {}
    }
    // What was understood can be said again, and is understood again.
    let again = serde_json::to_vec(&response).map(|text| serde_json::from_slice::<Response>(&text));
    assert!(matches!(again, Ok(Ok(_))), "an answer that was understood is not understood again: {again:?}");
}

fn read_all(tensors: &NamedTensorData, payload: &[u8]) {
    for (_, data) in &tensors.0 {
        let _ = data.length();
        read(data, payload);
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
                serde_json::from_slice::<Response>(header).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}
