//! A case from inputs that somebody else made: sizes and dtype are read off the tensors.

use thiserror::Error;

use gpuemu_model::Strategy;
use gpuemu_tensor::{DType, Layout, Tensor};

use super::{Case, CaseDescriptor, CaseError, GIVEN};
use crate::schema::{Parameters, Schema, Sizes, TensorSpec};

/// Why inputs make no case of an op.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GivenError {
    /// An input that the op needs is not there.
    #[error("input '{0}' is missing")]
    Missing(String),
    /// An input that the op does not have.
    #[error("the op has no input '{name}'; it takes {known}")]
    Unknown {
        name: String,
        /// Inputs that the op has.
        known: String,
    },
    /// An input has another number of dims than the signature says.
    #[error("input '{name}' has shape {shape:?}, but the signature gives it {expected}")]
    Rank {
        name: String,
        shape: Vec<usize>,
        /// What the signature says.
        expected: String,
    },
    /// Two places say different things of a dim.
    #[error("input '{name}' has size {found} along dim {axis}, but {expected} elsewhere is {known}")]
    Conflict {
        name: String,
        axis: usize,
        found: usize,
        /// What stands there in the signature.
        expected: String,
        /// The size it has elsewhere.
        known: String,
    },
    /// A dim is smaller than the op allows.
    #[error("dim '{name}' is {size}, but the op needs at least {minimum}")]
    TooSmall { name: String, size: usize, minimum: usize },
    /// Nobody can compute the case.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A dim that cannot be told from the shapes.
    #[error("the size of '{0}' cannot be told from the shapes of the inputs")]
    Unsolved(String),
    /// An input has another dtype.
    #[error("input '{name}' is {found}, expected {expected}")]
    Dtype { name: String, found: DType, expected: DType },
}

/// What a tensor looks like from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

impl Form {
    /// The form of a tensor.
    pub fn of(name: &str, tensor: &Tensor) -> Self {
        Self { name: name.to_string(), dtype: tensor.dtype(), shape: tensor.shape().to_vec() }
    }
}

/// Makes a case of given inputs. Parameters that are not given have their defaults.
pub fn given(
    schema: &Schema,
    fingerprint: &str,
    seed: u64,
    inputs: Vec<(String, Tensor)>,
    parameters: &Parameters,
    wanted_outputs: &[String],
) -> Result<Case, GivenError> {
    let forms: Vec<Form> = inputs.iter().map(|(name, tensor)| Form::of(name, tensor)).collect();
    let descriptor = describe(schema, fingerprint, seed, &forms, parameters, wanted_outputs)?;
    let mut rest = inputs;
    let mut tensors = Vec::new();
    for spec in &schema.inputs {
        let place = rest.iter().position(|(name, _)| *name == spec.name);
        tensors.push(place.map(|place| rest.swap_remove(place).1));
    }
    Ok(Case { descriptor, inputs: tensors })
}

/// The descriptor of a case whose inputs are given, from what they look like.
pub fn describe(
    schema: &Schema,
    fingerprint: &str,
    seed: u64,
    forms: &[Form],
    parameters: &Parameters,
    wanted_outputs: &[String],
) -> Result<CaseDescriptor, GivenError> {
    for form in forms {
        if !schema.inputs.iter().any(|spec| spec.name == form.name) {
            let known: Vec<&str> = schema.inputs.iter().map(|spec| spec.name.as_str()).collect();
            return Err(GivenError::Unknown { name: form.name.clone(), known: known.join(", ") });
        }
    }
    let mut pairs: Vec<(&TensorSpec, &Form)> = Vec::new();
    for spec in &schema.inputs {
        match forms.iter().find(|form| form.name == spec.name) {
            Some(form) => pairs.push((spec, form)),
            None if spec.optional => {}
            None => return Err(GivenError::Missing(spec.name.clone())),
        }
    }
    let dtype = case_dtype(schema, &pairs)?;
    let mut all = Parameters::default();
    for spec in &schema.parameters {
        all.set(&spec.name, parameters.get(&spec.name).unwrap_or(spec.default));
    }
    let sizes = solve(schema, &pairs, &all)?;
    for dimension in &schema.dimensions {
        // What the op is defined for; the largest sizes of a schema are only those that are sampled.
        let size = sizes.get(&dimension.name).unwrap_or(0);
        if size < dimension.minimum.min(1) {
            let (name, minimum) = (dimension.name.clone(), dimension.minimum);
            return Err(GivenError::TooSmall { name, size, minimum });
        }
    }
    let mut present: Vec<String> =
        pairs.iter().filter(|(spec, _)| spec.optional).map(|(spec, _)| spec.name.clone()).collect();
    let optional_outputs = schema.outputs.iter().filter(|spec| spec.optional && wanted_outputs.contains(&spec.name));
    present.extend(optional_outputs.map(|spec| spec.name.clone()));
    let descriptor = CaseDescriptor {
        generator: GIVEN,
        op: schema.name.clone(),
        schema: fingerprint.to_string(),
        seed,
        dtype,
        sizes,
        layouts: schema.inputs.iter().map(|spec| (spec.name.clone(), Layout::Contiguous)).collect(),
        values: Strategy::Regular,
        parameters: all,
        present,
    };
    schema.check_size(&descriptor)?;
    Ok(descriptor)
}

fn case_dtype(schema: &Schema, pairs: &[(&TensorSpec, &Form)]) -> Result<DType, GivenError> {
    let open = pairs.iter().find(|(spec, _)| spec.dtype.is_none()).map(|(_, form)| form.dtype);
    let case = open.or(schema.dtypes.first().copied()).unwrap_or(DType::F32);
    for (spec, form) in pairs {
        let expected = spec.dtype_in(case);
        if form.dtype != expected {
            return Err(GivenError::Dtype { name: spec.name.clone(), found: form.dtype, expected });
        }
    }
    Ok(case)
}

/// The sizes of all dims, from the shapes of the inputs.
fn solve(schema: &Schema, pairs: &[(&TensorSpec, &Form)], parameters: &Parameters) -> Result<Sizes, GivenError> {
    let mut batch: Option<&[usize]> = None;
    let mut sizes = Sizes::default();
    schema.set_size_parameters(parameters, &mut sizes);
    for (spec, form) in pairs {
        let (shape, rank) = (&form.shape, spec.dimensions.len());
        let leading = shape.len().checked_sub(rank).filter(|leading| spec.batch || *leading == 0);
        let Some(leading) = leading else {
            let expected = describe_dimensions(spec);
            return Err(GivenError::Rank { name: spec.name.clone(), shape: shape.to_vec(), expected });
        };
        if spec.batch {
            match batch {
                None => batch = Some(&shape[..leading]),
                Some(known) if known == &shape[..leading] => {}
                Some(known) => {
                    return Err(GivenError::Conflict {
                        name: spec.name.clone(),
                        axis: 0,
                        found: shape.first().copied().unwrap_or(0),
                        expected: "'...'".to_string(),
                        known: format!("{known:?}"),
                    });
                }
            }
        }
    }
    sizes.batch = batch.unwrap_or_default().to_vec();
    // Each round solves what the rounds before made solvable: products of dims need all but one of them.
    for _ in 0..=schema.dimensions.len() {
        for (spec, form) in pairs {
            let leading = form.shape.len() - spec.dimensions.len();
            for (expression, size) in spec.dimensions.iter().zip(&form.shape[leading..]) {
                if expression.evaluate(&sizes).is_none()
                    && let Some((name, solved)) = expression.solve(*size, &sizes)
                {
                    sizes.set(&name, solved);
                }
            }
        }
    }
    let mut ordered = Sizes { batch: sizes.batch.clone(), named: Vec::new() };
    for dimension in &schema.dimensions {
        let size = sizes.get(&dimension.name).ok_or_else(|| GivenError::Unsolved(dimension.name.clone()))?;
        ordered.set(&dimension.name, size);
    }
    schema.set_size_parameters(parameters, &mut ordered);
    check_against(pairs, &ordered)?;
    Ok(ordered)
}

fn check_against(pairs: &[(&TensorSpec, &Form)], sizes: &Sizes) -> Result<(), GivenError> {
    for (spec, form) in pairs {
        let leading = form.shape.len() - spec.dimensions.len();
        for (index, (expression, size)) in spec.dimensions.iter().zip(&form.shape[leading..]).enumerate() {
            let known = expression.evaluate(sizes);
            if known != Some(*size) {
                return Err(GivenError::Conflict {
                    name: spec.name.clone(),
                    axis: leading + index,
                    found: *size,
                    expected: format!("'{expression}'"),
                    known: known.map_or("not a size".to_string(), |known| known.to_string()),
                });
            }
        }
    }
    Ok(())
}

fn describe_dimensions(spec: &TensorSpec) -> String {
    let mut parts: Vec<String> = if spec.batch { vec!["...".to_string()] } else { Vec::new() };
    parts.extend(spec.dimensions.iter().map(ToString::to_string));
    format!("[{}]", parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize]) -> Tensor {
        let count = shape.iter().product();
        Tensor::from_f64(DType::F32, shape.to_vec(), &vec![0.0; count]).unwrap()
    }

    fn sizes_of(signature: &str, shapes: &[(&str, &[usize])]) -> Result<String, String> {
        let schema = Schema::from_signature("op", signature).unwrap();
        let inputs = shapes.iter().map(|(name, shape)| (name.to_string(), tensor(shape))).collect();
        let case = given(&schema, "", 0, inputs, &Parameters::default(), &[]);
        case.map(|case| case.descriptor.sizes.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_are_read_off_the_inputs() {
        let matmul = "a[M,K] b[K,N] -> out[M,N]";
        assert_eq!(sizes_of(matmul, &[("b", &[3, 4]), ("a", &[2, 3])]), Ok("M=2 K=3 N=4".into()));
        assert_eq!(
            sizes_of("q[...,H*G,2*P] k[...,H,2*P] -> o[...,H*G,2*P]", &[("q", &[5, 6, 8]), ("k", &[5, 2, 8])]),
            Ok("...=5 H=2 G=3 P=4".into())
        );
        assert_eq!(sizes_of("x[...] -> o[...]", &[("x", &[])]), Ok(String::new()));
        assert_eq!(sizes_of("x[M,K] w?[K] -> o[M]", &[("x", &[0, 2])]), Ok("M=0 K=2".into()));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let matmul = "a[M,K] b[K,N] -> out[M,N]";
        for (shapes, part) in [
            (vec![("a", &[2usize, 3][..])], "input 'b' is missing"),
            (vec![("a", &[2, 3]), ("b", &[4, 5])], "'b' has size 4 along dim 0, but 'K' elsewhere is 3"),
            (vec![("a", &[2, 3]), ("b", &[3])], "'b' has shape [3], but the signature gives it [K,N]"),
            (vec![("a", &[2, 3]), ("b", &[3, 4]), ("c", &[1])], "no input 'c'; it takes a, b"),
        ] {
            let error = sizes_of(matmul, &shapes).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let huge = Form { name: "x".to_string(), dtype: DType::F32, shape: vec![1 << 40, 0] };
        let rows = Schema::from_signature("op", "x[...,N] -> o[...]").unwrap();
        let error = describe(&rows, "", 0, &[huge], &Parameters::default(), &[]).unwrap_err().to_string();
        assert!(error.contains("is too large"), "{error}");
        let error = sizes_of("x[M/2] -> o[M]", &[("x", &[3])]).unwrap_err();
        assert!(error.contains("'M' cannot be told"), "{error}");
        let schema = Schema::from_signature("op", matmul).unwrap();
        let b = Tensor::from_f64(DType::F64, vec![3, 1], &[0.0; 3]).unwrap();
        let inputs = vec![("a".to_string(), tensor(&[2, 3])), ("b".to_string(), b)];
        let error = given(&schema, "", 0, inputs, &Parameters::default(), &[]).unwrap_err();
        assert_eq!(error.to_string(), "input 'b' is float64, expected float32");
    }
}
