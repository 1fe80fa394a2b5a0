//! Arguments of a launch, as they are typed: `f32:in.npy`, `f32:out:128x781`, `i32:781`, `ptr:null`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use gpuemu_machine::execution::program::Parameter;
use gpuemu_machine::{Argument, Buffer, Role};
use gpuemu_tensor::npy::Npy;
use gpuemu_tensor::{DType, DTypeKind};

use crate::expected_error::ExpectedError;

const POINTER_BYTES: u64 = 8;

#[derive(Debug, Clone, PartialEq)]
pub struct TypedArgument {
    text: String,
    /// The name that it was given.
    name: Option<String>,
    what: What,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// The contents of a file.
    File {
        dtype: DType,
        path: PathBuf,
        role: Role,
    },
    /// Memory that nothing has written.
    Output {
        dtype: DType,
        shape: Vec<usize>,
        bytes: u64,
    },
    Value(Vec<u8>),
    Null,
}

const FORMS: &str = "write it as f32:in.npy, f32:inout:x.npy, f32:out:128x781, i32:781, f32:0.5 or ptr:null";

impl FromStr for TypedArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A name goes before the type; there may be '=' in a path.
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) if !name.contains(':') => (Some(name.to_string()), rest),
            _ => (None, text),
        };
        if name.as_deref() == Some("") {
            return Err("the name before '=' is empty".to_string());
        }
        let (kind, value) = rest.split_once(':').ok_or_else(|| format!("it has no type; {FORMS}"))?;
        let what = match (kind, value) {
            (_, "null") if matches!(kind, "ptr" | "u64") => What::Null,
            ("ptr", _) => return Err(format!("'{value}' is no pointer; only ptr:null can be given")),
            ("pred", _) => what(DType::Bool, value)?,
            _ => what(kind.parse().map_err(|_| unknown_type(kind))?, value)?,
        };
        Ok(Self { text: text.to_string(), name, what })
    }
}

fn unknown_type(name: &str) -> String {
    let known = "f16, bf16, f32, f64, fp8e4nv (e4m3), fp8e5 (e5m2), i8 to i64, u8 to u64, bool, ptr";
    format!("'{name}' is no type; there are {known}")
}

fn what(dtype: DType, value: &str) -> Result<What, String> {
    if let Some(shape) = value.strip_prefix("out:") {
        return output(dtype, shape);
    }
    for (prefix, role) in [("inout:", Role::InputOutput), ("in:", Role::Input)] {
        if let Some(path) = value.strip_prefix(prefix) {
            return Ok(What::File { dtype, path: path.into(), role });
        }
    }
    if value.ends_with(".npy") {
        return Ok(What::File { dtype, path: value.into(), role: Role::Input });
    }
    number(dtype, value).map(What::Value)
}

fn output(dtype: DType, text: &str) -> Result<What, String> {
    let sizes = text.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>();
    let shape = sizes.map_err(|_| format!("'{text}' is no shape; write it as 128x781"))?;
    let bytes = shape.iter().try_fold(dtype.size() as u64, |bytes, size| bytes.checked_mul(*size as u64));
    // Addresses have 64 bits, of which chips use 49.
    let bytes = bytes.filter(|bytes| *bytes <= 1 << 48).ok_or_else(|| format!("{text} of {dtype} is too large"))?;
    Ok(What::Output { dtype, shape, bytes })
}

fn number(dtype: DType, text: &str) -> Result<Vec<u8>, String> {
    let refused = || format!("'{text}' is no {dtype}; {FORMS}");
    let bits = match dtype.kind() {
        DTypeKind::Bool => match text {
            "true" | "1" => 1,
            "false" | "0" => 0,
            _ => return Err(refused()),
        },
        DTypeKind::Float => dtype.encode(text.parse::<f64>().map_err(|_| refused())?),
        _ => {
            let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
            let number = match digits.strip_prefix("0x") {
                Some(digits) => i128::from(u64::from_str_radix(digits, 16).map_err(|_| refused())?),
                None => digits.parse::<u64>().map(i128::from).map_err(|_| refused())?,
            };
            let number = if negative { -number } else { number };
            let (least, most) = dtype.integer_range().ok_or_else(refused)?;
            if !(least..=most).contains(&number) {
                return Err(format!("{text} does not fit into {dtype}, which is from {least} to {most}"));
            }
            number as u64
        }
    };
    Ok(bits.to_le_bytes().into_iter().take(dtype.size()).collect())
}

/// What is known of a buffer beside its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferForm {
    /// Its name, in findings and for `--save`.
    pub name: String,
    /// Its number among the arguments, from 0.
    pub number: usize,
    /// The type of its elements.
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bytes: u64,
    /// Whether the kernel may write it.
    pub written: bool,
}

/// The arguments of a launch, and what its buffers are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LaunchArguments {
    pub arguments: Vec<Argument>,
    /// The buffers among them, in order.
    pub buffers: Vec<BufferForm>,
    /// Those that are null, by the names of their parameters.
    pub null: Vec<String>,
}

/// Fits arguments to the parameters of a kernel.
pub fn fit(entry: &str, typed: &[TypedArgument], parameters: &[Parameter]) -> Result<LaunchArguments, ExpectedError> {
    if typed.len() != parameters.len() {
        let listed = parameters.iter().map(described).collect::<Vec<_>>().join(", ");
        let message = format!("{entry} takes {} arguments, but {} were given", parameters.len(), typed.len());
        let mut hint = format!("its parameters are: {}", if listed.is_empty() { "none" } else { &listed });
        if typed.len() + 2 == parameters.len() && parameters.iter().rev().take(2).all(is_pointer) {
            hint.push_str("; Triton adds the last two, which are given `--arg ptr:null` each");
        }
        return Err(ExpectedError::new(message, hint));
    }
    let mut fitted = LaunchArguments::default();
    for (number, (typed, parameter)) in typed.iter().zip(parameters).enumerate() {
        let argument = argument(number, typed, parameter, &mut fitted)?;
        fitted.arguments.push(argument);
    }
    Ok(fitted)
}

fn described(parameter: &Parameter) -> String {
    match parameter.scalar.bytes() {
        Some(bytes) if bytes == parameter.bytes => format!("{} ({})", parameter.name, parameter.scalar),
        _ => format!("{} ({} bytes)", parameter.name, parameter.bytes),
    }
}

fn is_pointer(parameter: &Parameter) -> bool {
    parameter.bytes == POINTER_BYTES && !parameter.scalar.is_float()
}

fn argument(
    number: usize,
    typed: &TypedArgument,
    parameter: &Parameter,
    fitted: &mut LaunchArguments,
) -> Result<Argument, ExpectedError> {
    let place = format!("argument {} ({})", number + 1, typed.text);
    let fits = |bytes: u64| {
        if bytes == parameter.bytes {
            return Ok(());
        }
        let message =
            format!("{place} has {bytes} bytes, but the parameter {} has {}", described(parameter), parameter.bytes);
        Err(ExpectedError::new(message, "give it in the type of the parameter"))
    };
    let name = typed.name.clone().unwrap_or_else(|| parameter.name.clone());
    let (dtype, shape, bytes, contents, role) = match &typed.what {
        What::Value(bytes) => {
            fits(bytes.len() as u64)?;
            return Ok(Argument::Value(bytes.clone()));
        }
        What::Null => {
            fits(POINTER_BYTES)?;
            fitted.null.push(name);
            return Ok(Argument::Value(vec![0; POINTER_BYTES as usize]));
        }
        What::Output { dtype, shape, bytes } => (*dtype, shape.clone(), *bytes, Vec::new(), Role::Output),
        What::File { dtype, path, role } => {
            let (shape, contents) = read(path, *dtype)?;
            (*dtype, shape, contents.len() as u64, contents, *role)
        }
    };
    fits(POINTER_BYTES)?;
    let written = role != Role::Input;
    fitted.buffers.push(BufferForm { name: name.clone(), number, dtype, shape, bytes, written });
    Ok(Argument::Buffer(Buffer {
        name,
        role,
        bytes,
        contents,
        offset: 0,
        pointer: 0,
        element_bytes: dtype.size() as u32,
    }))
}

fn read(path: &Path, dtype: DType) -> Result<(Vec<usize>, Vec<u8>), ExpectedError> {
    let refused = |message: String| ExpectedError::plain(format!("{}: {message}", path.display()));
    let file = std::fs::read(path).map_err(|error| refused(format!("cannot be read: {error}")))?;
    let array = Npy::read(&file).map_err(|error| refused(error.to_string()))?;
    let contents = array.bits_of(dtype).map_err(|error| refused(error.to_string()))?.to_vec();
    Ok((array.shape, contents))
}

#[cfg(test)]
mod tests {
    use gpuemu_ptx::syntax::ScalarType;

    use super::*;

    fn typed(text: &str) -> TypedArgument {
        text.parse().unwrap()
    }

    fn refused(text: &str) -> String {
        text.parse::<TypedArgument>().unwrap_err()
    }

    fn parameters(scalars: &[ScalarType]) -> Vec<Parameter> {
        let named = scalars.iter().enumerate();
        let named = named.map(|(number, scalar)| Parameter {
            name: format!("p{number}"),
            bytes: scalar.bytes().unwrap(),
            scalar: *scalar,
            offset: 0,
        });
        named.collect()
    }

    #[test]
    fn arguments_are_read_as_typed() {
        let file = |path: &str, role| What::File { dtype: DType::F32, path: path.into(), role };
        assert_eq!(typed("f32:in.npy").what, file("in.npy", Role::Input));
        assert_eq!(typed("f32:in:a.bin").what, file("a.bin", Role::Input));
        assert_eq!(typed("f32:inout:x.npy").what, file("x.npy", Role::InputOutput));
        let named = typed("y=f16:out:128x781");
        assert_eq!(named.name.as_deref(), Some("y"));
        assert_eq!(named.what, What::Output { dtype: DType::F16, shape: vec![128, 781], bytes: 199_936 });
        let far = What::Output { dtype: DType::F32, shape: vec![2_200_000_000], bytes: 8_800_000_000 };
        assert_eq!(typed("f32:out:2200000000").what, far);
        assert_eq!(typed("i32:-2").what, What::Value(vec![0xfe, 0xff, 0xff, 0xff]));
        assert_eq!(typed("u16:0x1F").what, What::Value(vec![0x1f, 0]));
        assert_eq!(typed("f32:0.5").what, What::Value(0.5f32.to_le_bytes().to_vec()));
        assert_eq!(typed("f16:-inf").what, What::Value(vec![0, 0xfc]));
        assert_eq!(typed("bool:true").what, What::Value(vec![1]));
        assert_eq!((typed("u64:null").what, typed("ptr:null").what), (What::Null, What::Null));
        assert_eq!(typed("f32:a=b.npy").name, None);
    }

    #[test]
    fn what_is_no_argument_is_refused_in_words() {
        for (text, expected) in [
            ("781", "it has no type; write it as f32:in.npy"),
            ("float99:1", "'float99' is no type; there are f16"),
            ("i8:300", "300 does not fit into int8, which is from -128 to 127"),
            ("u32:-1", "-1 does not fit into uint32"),
            ("i64:99999999999999999999", "'99999999999999999999' is no int64"),
            ("i32:1.5", "'1.5' is no int32"),
            ("f32:half", "'half' is no float32"),
            ("f32:out:8x", "'8x' is no shape; write it as 128x781"),
            ("f32:out:99999999999x99999999999", "99999999999x99999999999 of float32 is too large"),
            ("ptr:0x10", "'0x10' is no pointer; only ptr:null can be given"),
            ("=f32:1", "the name before '=' is empty"),
            ("bool:maybe", "'maybe' is no bool"),
        ] {
            assert!(refused(text).starts_with(expected), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn arguments_have_to_fit_the_parameters() {
        let parameters = parameters(&[ScalarType::U64, ScalarType::U32, ScalarType::U64, ScalarType::U64]);
        let error = fit("k", &[typed("f32:out:4"), typed("i32:4")], &parameters).unwrap_err();
        assert_eq!(error.message, "k takes 4 arguments, but 2 were given");
        assert_eq!(
            error.hint.unwrap(),
            "its parameters are: p0 (.u64), p1 (.u32), p2 (.u64), p3 (.u64); Triton adds the last two, which are given \
             `--arg ptr:null` each"
        );
        let all = ["o=f32:out:4", "i64:4", "ptr:null", "ptr:null"].map(typed);
        let error = fit("k", &all, &parameters).unwrap_err();
        assert_eq!(error.message, "argument 2 (i64:4) has 8 bytes, but the parameter p1 (.u32) has 4");
        let all = ["f32:out:4", "f32:out:4", "ptr:null", "ptr:null"].map(typed);
        let error = fit("k", &all, &parameters).unwrap_err();
        assert_eq!(error.message, "argument 2 (f32:out:4) has 8 bytes, but the parameter p1 (.u32) has 4");
        let all = ["o=f32:out:4", "i32:4", "ptr:null", "ptr:null"].map(typed);
        let fitted = fit("k", &all, &parameters).unwrap();
        assert_eq!((fitted.buffers[0].name.as_str(), fitted.buffers[0].written), ("o", true));
        assert_eq!((fitted.arguments.len(), fitted.null), (4, vec!["p2".to_string(), "p3".to_string()]));
    }
}
