//! The two JSON documents of a script: what it reads and what it prints.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gpuemu_process::fault;
use gpuemu_tensor::dtype::UnknownDType;
use gpuemu_tensor::{DType, Tensor};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;

use super::{Arguments, ExecutorError, NamedTensors};

/// Bytes of stdout that are shown of its start and of its end.
const SHOWN: usize = 1000;

/// What a script reads: `{"inputs": {name: {"data", "dtype", "shape"}}, "kwargs": {...}}`.
pub(super) fn request(arguments: &Arguments<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let bytes: usize = arguments.inputs.iter().map(|(_, tensor)| tensor.len() * tensor.dtype().size()).sum();
    let mut text = String::with_capacity(bytes / 3 * 4 + 1024);
    text.push_str("{\"inputs\": {");
    for (index, (name, tensor)) in arguments.inputs.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(&serde_json::to_string(name)?);
        text.push_str(": {\"data\": \"");
        STANDARD.encode_string(tensor.to_contiguous_bytes(), &mut text);
        text.push_str("\", \"dtype\": \"");
        text.push_str(tensor.dtype().name());
        text.push_str("\", \"shape\": ");
        text.push_str(&serde_json::to_string(tensor.shape())?);
        text.push('}');
    }
    text.push_str("}, \"kwargs\": ");
    text.push_str(&serde_json::to_string(arguments.parameters)?);
    text.push('}');
    Ok(text.into_bytes())
}

/// Reads what a script printed. `stderr` is only asked for where that is wrong.
pub(super) fn outputs(
    what: &str,
    stdout: &[u8],
    stderr: impl FnOnce() -> String,
) -> Result<NamedTensors, ExecutorError> {
    if stdout.trim_ascii().is_empty() {
        return Err(ExecutorError::NoOutput { what: what.to_string(), stderr: stderr() });
    }
    fault!("script.decode", "injected".to_string(), parse(stdout)).map_err(|message| ExecutorError::BadOutput {
        what: what.to_string(),
        message,
        stdout: excerpt(stdout),
        stderr: stderr(),
    })
}

fn parse(stdout: &[u8]) -> Result<NamedTensors, String> {
    let document: Document = serde_json::from_slice(stdout).map_err(|error| match error.classify() {
        Category::Data => error.to_string(),
        _ => format!("stdout is not one JSON document ({error}); print everything else to stderr"),
    })?;
    let outputs = document.outputs.ok_or("the document has no \"outputs\"")?.0;
    outputs
        .into_iter()
        .map(|(name, value)| match tensor(&value) {
            Ok(tensor) => Ok((name, tensor)),
            Err(message) => Err(format!("output '{name}': {message}")),
        })
        .collect()
}

fn tensor(value: &Value) -> Result<Tensor, String> {
    let text = |key: &str| {
        let found = value.get(key).ok_or_else(|| format!("\"{key}\" is missing"))?;
        found.as_str().ok_or_else(|| format!("\"{key}\" has to be a string"))
    };
    let dtype: DType = text("dtype")?.parse().map_err(|error: UnknownDType| error.to_string())?;
    let shape = value.get("shape").ok_or("\"shape\" is missing")?;
    let sizes = shape.as_array().ok_or("\"shape\" has to be a list")?;
    let sizes: Option<Vec<usize>> = sizes.iter().map(|size| usize::try_from(size.as_u64()?).ok()).collect();
    let sizes = sizes.ok_or_else(|| format!("the shape {shape} is not a list of sizes"))?;
    let bytes = STANDARD.decode(text("data")?).map_err(|error| format!("\"data\" is not base64: {error}"))?;
    Tensor::contiguous(dtype, sizes, &bytes).map_err(|error| error.to_string())
}

/// The start and the end of a text.
fn excerpt(stdout: &[u8]) -> String {
    if stdout.len() <= 2 * SHOWN {
        return String::from_utf8_lossy(stdout).into_owned();
    }
    let (start, end) = (&stdout[..SHOWN], &stdout[stdout.len() - SHOWN..]);
    let left_out = stdout.len() - 2 * SHOWN;
    let (start, end) = (String::from_utf8_lossy(start), String::from_utf8_lossy(end));
    format!("{start} ... ({left_out} bytes left out) ... {end}")
}

/// What a script prints. JSON allows a name to occur twice; here it is an error, not the loss of an output.
struct Document {
    outputs: Option<Outputs>,
}

struct Outputs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Document;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with \"outputs\"")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut document = Document { outputs: None };
                while let Some(key) = map.next_key::<String>()? {
                    if key != "outputs" {
                        map.next_value::<IgnoredAny>()?;
                    } else if document.outputs.replace(map.next_value()?).is_some() {
                        return Err(A::Error::custom("\"outputs\" occurs twice"));
                    }
                }
                Ok(document)
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

impl<'de> Deserialize<'de> for Outputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Outputs;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of outputs by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outputs, A::Error> {
                let mut outputs: Vec<(String, Value)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if outputs.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(format_args!("output '{name}' occurs twice")));
                    }
                    outputs.push((name, value));
                }
                Ok(Outputs(outputs))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(stdout: &str) -> String {
        parse(stdout.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_document_is_read_whatever_surrounds_its_outputs() {
        let text = r#" {"time": [1, {}], "outputs": {"y": {"data": "AACAPw==", "dtype": "float32", "shape": [1]},
            "empty": {"data": "", "dtype": "bfloat16", "shape": [3, 0]}}, "note": null}  "#;
        let outputs = parse(text.as_bytes()).unwrap();
        assert_eq!(outputs[0], ("y".to_string(), Tensor::from_f64(DType::F32, vec![1], &[1.0]).unwrap()));
        assert_eq!((outputs[1].0.as_str(), outputs[1].1.shape()), ("empty", &[3, 0][..]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(message("loading\n{}").contains("not one JSON document"));
        assert!(message("{\"outputs\": {}} done").contains("not one JSON document"));
        assert!(message("[]").contains("expected an object with \"outputs\""), "{}", message("[]"));
        assert!(message("{\"output\": {}}").contains("no \"outputs\""));
        assert!(message("{\"outputs\": [1]}").contains("an object of outputs by name"));
        let with = |output: &str| message(&format!("{{\"outputs\": {{\"y\": {output}}}}}"));
        assert!(with("3").contains("output 'y'"));
        assert!(with(r#"{"dtype": "float32", "shape": []}"#).contains("output 'y': \"data\" is missing"));
        assert!(
            with(r#"{"data": "!", "dtype": "float32", "shape": []}"#).contains("output 'y': \"data\" is not base64")
        );
        assert!(with(r#"{"data": "", "dtype": "float99", "shape": []}"#).contains("unknown dtype 'float99'"));
        assert!(with(r#"{"data": "", "dtype": "float32", "shape": [-1]}"#).contains("the shape [-1]"));
        assert!(with(r#"{"data": "", "dtype": "float32", "shape": 1}"#).contains("\"shape\" has to be a list"));
        assert!(with(r#"{"data": "AAAA", "dtype": "float32", "shape": [1]}"#).contains("takes 4 bytes, but 3"));
        let twice = r#"{"outputs": {"y": {}, "y": {}}}"#;
        assert!(message(twice).contains("output 'y' occurs twice"));
        assert!(message(r#"{"outputs": {}, "outputs": {}}"#).contains("\"outputs\" occurs twice"));
    }

    #[test]
    fn a_long_text_is_shown_at_both_ends() {
        let shown = excerpt(format!("start{}end", "x".repeat(5000)).as_bytes());
        assert!(shown.starts_with("start") && shown.ends_with("end") && shown.contains("3008 bytes left out"));
    }
}
