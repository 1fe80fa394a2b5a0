//! A recorded launch, as the machine is given it.

use gpuemu_tensor::DType;
use serde_json::Value;

use super::manifest::{Arrays, Entry, Parameter, RecordedBuffer, RecordedRole, RecordedScalar, element_bytes};
use super::pack::PackError;
use crate::{Argument, Buffer, Launch, Role};

const POINTER_BYTES: usize = 8;

pub(super) fn launch(entry: &Entry, arrays: &mut Arrays<'_>) -> Result<Launch, PackError> {
    let arguments = arguments(entry, arrays)?;
    Ok(Launch { grid: entry.grid, block: entry.block, shared_bytes: entry.shared, arguments })
}

pub(super) fn arguments(entry: &Entry, arrays: &mut Arrays<'_>) -> Result<Vec<Argument>, PackError> {
    let wrong = |name: &str, message: String| PackError {
        path: entry.id.clone().into(),
        message: format!("the parameter {name}: {message}"),
    };
    let mut arguments = Vec::with_capacity(entry.params.len());
    for parameter in &entry.params {
        arguments.push(match parameter {
            Parameter::Buffer(recorded) => Argument::Buffer(
                buffer(recorded, arrays.before(recorded)?).map_err(|message| wrong(&recorded.name, message))?,
            ),
            Parameter::Scalar(recorded) => {
                Argument::Value(scalar(recorded).map_err(|message| wrong(&recorded.name, message))?)
            }
            Parameter::Struct(recorded) => {
                Argument::Value(digits(&recorded.bytes).map_err(|message| wrong(&recorded.name, message))?)
            }
            Parameter::Scratch(_) => Argument::Value(vec![0; POINTER_BYTES]),
        });
    }
    Ok(arguments)
}

fn buffer(recorded: &RecordedBuffer, contents: Option<Vec<u8>>) -> Result<Buffer, String> {
    let element_bytes =
        element_bytes(&recorded.dtype).ok_or_else(|| format!("the dtype '{}' is not known", recorded.dtype))?;
    let bytes = recorded.elems.checked_mul(u64::from(element_bytes)).ok_or("more elements than can be addressed")?;
    Ok(Buffer {
        name: recorded.name.clone(),
        role: match recorded.role {
            RecordedRole::In => Role::Input,
            RecordedRole::Out => Role::Output,
            RecordedRole::InOut => Role::InputOutput,
        },
        bytes,
        contents: contents.unwrap_or_default(),
        offset: recorded.offset_bytes,
        pointer: 0,
        element_bytes,
    })
}

fn scalar(recorded: &RecordedScalar) -> Result<Vec<u8>, String> {
    let (dtype, value) = (&recorded.dtype, &recorded.value);
    let bytes = element_bytes(dtype).ok_or_else(|| format!("the dtype '{dtype}' is not known"))? as usize;
    let bits = match recorded.bits {
        Some(bits) => bits,
        None => bits_of(dtype, value).ok_or_else(|| format!("{value} is no value of {dtype}"))?,
    };
    let all = bits.to_le_bytes();
    let (taken, rest) = all.split_at(bytes.min(all.len()));
    // A negative number has ones above it.
    let fits = rest.iter().all(|byte| *byte == 0) || rest.iter().all(|byte| *byte == 0xff);
    if fits { Ok(taken.to_vec()) } else { Err(format!("{bits} does not fit into {dtype}")) }
}

fn bits_of(dtype: &str, value: &Value) -> Option<u64> {
    let float = dtype.parse::<DType>().ok().filter(|dtype| dtype.is_float());
    match (value, float) {
        (Value::Bool(truth), None) => Some(u64::from(*truth)),
        (Value::Number(number), None) => number.as_u64().or_else(|| number.as_i64().map(i64::cast_unsigned)),
        (Value::Number(number), Some(dtype)) => number.as_f64().map(|number| dtype.encode(number)),
        _ => None,
    }
}

fn digits(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("'{text}' is not an even number of hexadecimal digits");
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let pair = |index: usize| text.get(index..index + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..text.len()).step_by(2).map(|index| pair(index).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(dtype: &str, value: Value, bits: Option<u64>) -> Result<Vec<u8>, String> {
        scalar(&RecordedScalar { name: "n".to_string(), dtype: dtype.to_string(), value, bits })
    }

    #[test]
    fn numbers_have_the_bytes_of_their_type() {
        assert_eq!(number("i32", json!(781), None), Ok(vec![13, 3, 0, 0]));
        assert_eq!(number("i32", json!(-2), None), Ok(vec![0xfe, 0xff, 0xff, 0xff]));
        assert_eq!(number("u64", json!(u64::MAX), None), Ok(vec![0xff; 8]));
        assert_eq!(number("f32", json!(0.5), None), Ok(0.5f32.to_le_bytes().to_vec()));
        assert_eq!(number("f32", json!(1e-5), Some(0x3727_c5ac)), Ok(0x3727_c5acu32.to_le_bytes().to_vec()));
        assert_eq!(number("f16", json!(1), None), Ok(vec![0, 0x3c]));
        assert_eq!(number("i8", json!(300), None), Err("300 does not fit into i8".to_string()));
        assert_eq!(number("i32", json!(0.5), None), Err("0.5 is no value of i32".to_string()));
        assert_eq!(number("f128", json!(0.5), None), Err("the dtype 'f128' is not known".to_string()));
    }

    #[test]
    fn structures_are_hexadecimal() {
        assert_eq!(digits("20ff0a"), Ok(vec![0x20, 0xff, 0x0a]));
        for wrong in ["2", "zz", "é1", "+1"] {
            assert!(digits(wrong).is_err(), "{wrong}");
        }
    }
}
