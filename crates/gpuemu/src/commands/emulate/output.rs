//! What a launch left in its outputs: in short for people, and as files.

use std::path::{Path, PathBuf};

use gpuemu_machine::POISON;
use gpuemu_tensor::rng::blake2b;
use gpuemu_tensor::{DType, npy};
use serde::Serialize;

use super::launch_argument::BufferForm;
use super::launch_options::LaunchForm;
use crate::expected_error::ExpectedError;

/// Elements that are shown.
const SHOWN: usize = 8;

/// An output in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputSummary {
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// What it holds; nothing of an output that is too large to be kept.
    #[serde(flatten)]
    pub contents: Option<Contents>,
}

/// The contents of an output in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contents {
    pub first: Vec<Number>,
    /// The least number; nothing where there is none.
    pub min: Option<Number>,
    /// The greatest number; nothing where there is none.
    pub max: Option<Number>,
    pub elements: u64,
    /// Elements that are NaN.
    pub nan: u64,
    /// Elements that still hold the poison that nothing has overwritten.
    pub poison: u64,
    /// A fingerprint of all bytes.
    pub fingerprint: String,
}

/// A number that JSON may have no name for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Number(#[serde(with = "gpuemu_model::number_text")] pub f64);

impl OutputSummary {
    /// Of a buffer's bytes.
    pub fn new(form: &BufferForm, bytes: &[u8]) -> Self {
        // What the machine does not keep comes back empty.
        let kept = bytes.len() as u64 == form.bytes;
        let contents = kept.then(|| Contents::new(form.dtype, bytes));
        Self { name: form.name.clone(), dtype: form.dtype, shape: form.shape.clone(), contents }
    }

    pub fn text(&self, width: usize) -> String {
        let shape = self.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let head = format!("  {:width$}  {}[{shape}]", self.name, self.dtype);
        match &self.contents {
            None => format!("{head}  too large to be kept\n"),
            Some(contents) => {
                let (line, first) = contents.text();
                format!("{head}  {line}\n  {:width$}  {first}\n", "")
            }
        }
    }
}

impl Contents {
    fn new(dtype: DType, bytes: &[u8]) -> Self {
        let value =
            |element: &[u8]| dtype.decode(element.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)));
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut nan, mut poison, mut elements) = (0, 0, 0);
        for element in bytes.chunks_exact(dtype.size()) {
            let number = value(element);
            elements += 1;
            nan += u64::from(number.is_nan());
            poison += u64::from(element.iter().all(|byte| *byte == POISON));
            // A comparison with NaN changes neither.
            least = if number < least { number } else { least };
            greatest = if number > greatest { number } else { greatest };
        }
        let some = elements > nan;
        Self {
            first: bytes.chunks_exact(dtype.size()).take(SHOWN).map(|element| Number(value(element))).collect(),
            min: some.then_some(Number(least)),
            max: some.then_some(Number(greatest)),
            elements,
            nan,
            poison,
            fingerprint: blake2b(16).hash(bytes).to_hex().to_string(),
        }
    }

    /// A line about all of it, and one of the first elements.
    fn text(&self) -> (String, String) {
        let range = match (self.min, self.max) {
            (Some(min), Some(max)) => format!("from {} to {}", shown(min.0), shown(max.0)),
            _ => "no number".to_string(),
        };
        let poison = if self.poison > 0 { format!(", {} still poison", self.poison) } else { String::new() };
        let rest = if self.elements > self.first.len() as u64 { " ..." } else { "" };
        let first: Vec<String> = self.first.iter().map(|number| shown(number.0)).collect();
        let line = format!("{range}, {} NaN{poison}, fingerprint {}", self.nan, self.fingerprint);
        (line, format!("{}{rest}", first.join(" ")))
    }
}

fn shown(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude == 0.0 || (1e-4..1e7).contains(&magnitude) || !number.is_finite() {
        round_to_seven(number).to_string()
    } else {
        format!("{number:.6e}")
    }
}

/// A number with seven digits, as many as a float of 32 bits has.
fn round_to_seven(number: f64) -> f64 {
    format!("{number:.6e}").parse().unwrap_or(number)
}

/// Writes the outputs that are to be kept; the names of the files.
pub fn save(form: &LaunchForm, buffers: &[BufferForm], contents: &[Vec<u8>]) -> Result<Vec<PathBuf>, ExpectedError> {
    let mut files = Vec::new();
    for (name, file) in &form.save {
        let found = buffers.iter().zip(contents).find(|(buffer, _)| is_named(buffer, name));
        let Some((buffer, bytes)) = found else { return Err(unknown(name, buffers)) };
        write(file, buffer, bytes)?;
        files.push(file.clone());
    }
    if let Some(folder) = &form.output {
        let failed = |error: std::io::Error| {
            ExpectedError::plain(format!("the folder {} cannot be made: {error}", folder.display()))
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        for (buffer, bytes) in buffers.iter().zip(contents).filter(|(buffer, _)| buffer.written) {
            let file = folder.join(format!("{}.npy", buffer.name));
            write(&file, buffer, bytes)?;
            files.push(file);
        }
    }
    Ok(files)
}

/// Whether all names to save are those of buffers; asked before the launch, which may take long.
pub fn check_saved(form: &LaunchForm, buffers: &[BufferForm]) -> Result<(), ExpectedError> {
    let wrong = form.save.iter().find(|(name, _)| !buffers.iter().any(|buffer| is_named(buffer, name)));
    wrong.map_or(Ok(()), |(name, _)| Err(unknown(name, buffers)))
}

fn is_named(buffer: &BufferForm, name: &str) -> bool {
    buffer.name == name || name.parse() == Ok(buffer.number)
}

fn unknown(name: &str, buffers: &[BufferForm]) -> ExpectedError {
    let known: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
    ExpectedError::new(format!("there is no buffer '{name}' to save"), format!("there are: {}", known.join(", ")))
}

fn write(file: &Path, buffer: &BufferForm, bytes: &[u8]) -> Result<(), ExpectedError> {
    let refused = |message: String| ExpectedError::plain(format!("{}: {message}", file.display()));
    if bytes.len() as u64 != buffer.bytes {
        let (has, all) = (bytes.len(), buffer.bytes);
        return Err(refused(format!(
            "{} has {all} bytes and only {has} of them are kept; it cannot be saved",
            buffer.name
        )));
    }
    let array = npy::write(buffer.dtype, &buffer.shape, bytes);
    std::fs::write(file, array).map_err(|error| refused(format!("cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(values: &[f32], bytes: u64) -> OutputSummary {
        let contents: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let (name, shape) = ("out".to_string(), vec![2, bytes as usize / 8]);
        let form = BufferForm { name, number: 1, dtype: DType::F32, shape, bytes, written: true };
        OutputSummary::new(&form, &contents)
    }

    #[test]
    fn an_output_is_described_in_short() {
        let poison = f32::from_le_bytes([POISON; 4]);
        let all = summary(&[1.0, -2.5, f32::NAN, poison], 16);
        let contents = all.contents.as_ref().unwrap();
        assert_eq!((contents.nan, contents.poison, contents.elements), (1, 1, 4));
        let text = all.text(4);
        assert!(
            text.starts_with("  out   float32[2, 2]  from -2.5 to 1, 1 NaN, 1 still poison, fingerprint "),
            "{text}"
        );
        assert!(text.contains("\n        1 -2.5 NaN -1.219"), "{text}");
    }

    #[test]
    fn an_output_of_nothing_has_no_range() {
        let none = summary(&[f32::NAN, f32::NAN], 8);
        let contents = none.contents.as_ref().unwrap();
        assert_eq!((contents.min, contents.max), (None, None));
        assert!(none.text(3).contains("no number, 2 NaN"));
    }

    #[test]
    fn an_output_that_is_not_kept_says_so() {
        let large = summary(&[], 8 << 30);
        assert_eq!(large.text(3), "  out  float32[2, 1073741824]  too large to be kept\n");
        assert_eq!(serde_json::to_value(&large).unwrap().get("nan"), None);
    }
}
