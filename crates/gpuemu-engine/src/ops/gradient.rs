//! The backward of another op, judged by finite differences of its reference.
//!
//! The inputs are the forward's, then one upstream gradient `grad_<output>` for each float output; the outputs are
//! `grad_<input>` for each input that has a derivative. Optional inputs stay optional and get no gradient; a schema
//! in which they are required demands theirs. Optional outputs have no upstream gradient.

use std::sync::Arc;

use rayon::prelude::*;
use thiserror::Error;

use gpuemu_tensor::{DType, FloatFormat, Tensor};

use super::finite_difference::{Slope, Study};
use super::{Call, Expectation, Op, OpError};
use crate::case::{Case, Sampler, Strategy};
use crate::schema::{Domain, ParameterSpec, Scalar, Schema, TensorSpec};

/// The budget of elements that cases of a gradient should have: its reference evaluates the forward ten to
/// thirty times per element.
pub const GRADIENT_BUDGET: usize = 512;

/// Values that tell the most about a gradient: few elements are undetermined, but for those that nothing depends on.
pub const GRADIENT_STRATEGY: Strategy = Strategy::Regular;

/// Roundings to the dtype of the case, or of declared intermediates, that a backward kernel may make on the way.
const ROUNDINGS: f64 = 12.0;

/// Roundings of the accumulator: the exponentials of vector libraries are off by 40 of them, and flash attention takes
/// the difference of a score and a saved log-sum-exp, both far larger than it.
const ARITHMETIC_ROUNDINGS: f64 = 96.0;

/// How many times the range of its values an input's largest value may be before that range is taken to be lost.
const SHIFTED: f64 = 4.0;

/// The smallest size of a reduced dim: a softmax of one element and a norm of two have a gradient of zero, of which
/// kernels give the rounding errors.
const LEAST_REDUCED: usize = 3;

/// Why an op has no gradient.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GradientError {
    #[error(
        "op '{op}' has no required input with the dtype of the case and real values, so there is nothing to differentiate by"
    )]
    NoInput { op: String },
    #[error("op '{op}' has no required float output to differentiate")]
    NoOutput { op: String },
    /// Two tensors would share a name.
    #[error("the backward of op '{op}' would have two tensors named '{name}': rename an input or an output")]
    Name { op: String, name: String },
}

/// The backward of an op.
pub struct GradientOp {
    op: Arc<dyn Op>,
    forward: Schema,
    schema: Schema,
    differentiable: Vec<usize>,
    /// Whether outputs and required inputs lie index by index, as in elementwise ops and norms.
    aligned: bool,
}

impl GradientOp {
    /// The backward of `op`, whose cases come from `schema`: the op's own, or a narrowed one.
    pub fn of(op: Arc<dyn Op>, schema: &Schema) -> Result<Self, GradientError> {
        let name = || schema.name.clone();
        let has_derivative =
            |spec: &TensorSpec| spec.dtype.is_none() && !spec.optional && spec.domain.expressions().is_empty();
        let inputs = schema.inputs.iter().enumerate().filter(|(_, spec)| has_derivative(spec));
        let differentiable: Vec<usize> = inputs.map(|(index, _)| index).collect();
        if differentiable.is_empty() {
            return Err(GradientError::NoInput { op: name() });
        }
        let upstream: Vec<TensorSpec> = float_outputs(schema).map(gradient_of).collect();
        if upstream.is_empty() {
            return Err(GradientError::NoOutput { op: name() });
        }
        let outputs: Vec<TensorSpec> = differentiable.iter().map(|index| gradient_of(&schema.inputs[*index])).collect();
        let alike =
            |left: &TensorSpec, right: &TensorSpec| left.batch == right.batch && left.dimensions == right.dimensions;
        let aligned = upstream.iter().all(|one| outputs.iter().all(|other| alike(one, other)));
        let mut backward = schema.clone();
        backward.name = format!("{}.backward", schema.name);
        backward.aliases = schema.aliases.iter().map(|alias| format!("{alias}.backward")).collect();
        backward.summary = format!("The gradient of {}, given those of its outputs.", schema.name);
        backward.formula = format!("grad_x[i] = sum_j grad_y[j]*dy[j]/dx[i] with y = {}", schema.formula);
        backward.keywords.push("gradient".to_string());
        // The forward's own formula says nothing about it.
        backward.bound =
            "what finite differences of the forward's reference leave open, what moving every input by its \
                          rounding does to the result, and roundings of the arithmetic"
                .to_string();
        backward.inputs.extend(upstream);
        backward.outputs = outputs;
        backward.dtypes.retain(|dtype| dtype.is_float());
        for dimension in backward.dimensions.iter_mut().filter(|dimension| dimension.reduced) {
            dimension.minimum = dimension.minimum.max(LEAST_REDUCED.min(dimension.maximum));
        }
        // What holds for the forward (shift, scale, rows that sum to one) does not hold for its gradient.
        backward.properties.clear();
        backward.usual_bugs =
            ["a factor or a term dropped", "a sign", "sums over the wrong dim"].map(str::to_string).to_vec();
        backward.signature = signature(&backward);
        let mut names: Vec<&str> = backward.inputs.iter().chain(&backward.outputs).map(|spec| &spec.name[..]).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(GradientError::Name { op: name(), name: pair[0].to_string() });
        }
        Ok(Self { op, forward: schema.clone(), schema: backward, differentiable, aligned })
    }

    /// A sampler whose cases are small enough and can be judged; set its strategy to `adversarial` for harder values.
    pub fn sampler() -> Sampler {
        Sampler { budget: GRADIENT_BUDGET, strategy: GRADIENT_STRATEGY, ..Sampler::default() }
    }

    /// The forward's case in the dtype of the gradient's.
    fn forward_case(&self, case: &Case) -> Case {
        let mut descriptor = case.descriptor.clone();
        descriptor.op = self.forward.name.clone();
        let optional_inputs = self.forward.inputs.iter().filter(|spec| spec.optional);
        let optional_inputs: Vec<&String> = optional_inputs.map(|spec| &spec.name).collect();
        descriptor.present.retain(|name| optional_inputs.contains(&name));
        Case { descriptor, inputs: case.inputs.iter().take(self.forward.inputs.len()).cloned().collect() }
    }

    /// Whether another input has far larger values than their range: weights that sum to one make what is common to
    /// them cancel (the keys of attention), and kernels round before it does.
    fn is_shifted(&self, case: &Case, input: usize) -> bool {
        let others = self.differentiable.iter().filter(|other| **other != input && !self.aligned);
        let mut tensors = others.filter_map(|other| case.inputs.get(*other).and_then(Option::as_ref));
        tensors.any(|tensor| {
            let values = tensor.to_f64();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            low.abs().max(high.abs()) > SHIFTED * (high - low)
        })
    }

    /// The same case in float64, which holds every float exactly; one where a value is not finite.
    fn widened(&self, case: &Case) -> Case {
        let mut wide = case.clone();
        wide.descriptor.dtype = DType::F64;
        for (spec, tensor) in self.forward.inputs.iter().zip(&mut wide.inputs) {
            let Some(tensor) = tensor.as_mut().filter(|tensor| tensor.dtype().is_float()) else { continue };
            let finite = |x: f64| if x.is_finite() { x } else { 1.0 };
            let values: Vec<f64> = tensor.to_f64().into_iter().map(finite).collect();
            let dtype = spec.dtype_in(DType::F64);
            if let Ok(widened) = Tensor::from_f64(dtype, tensor.shape().to_vec(), &values) {
                *tensor = widened;
            }
        }
        wide
    }
}

impl Op for GradientOp {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn expect(&self, call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
        let forward_case = self.forward_case(call.case());
        let forward = Call::new(&self.forward, &forward_case, call.precision)?;
        let outputs = Outputs::of(self, call, self.op.expect(&forward)?)?;
        let target = rounding(call) / 4.0;
        let wide = self.widened(&forward_case);
        let study = Study::new((&*self.op, &self.forward), wide, &self.differentiable, &outputs.weights, target)?;
        let mut slopes = Vec::with_capacity(self.differentiable.len());
        let mut curved = false;
        for input in &self.differentiable {
            let values = forward.input(&self.forward.inputs[*input].name)?;
            let elements = (0..values.len()).into_par_iter().map(|element| study.slope(*input, element));
            let found = elements.collect::<Result<Vec<Slope>, OpError>>()?;
            curved |= !is_linear(&found, values);
            slopes.push(found);
        }
        let mut expectations = Vec::with_capacity(slopes.len());
        for (input, slopes) in self.differentiable.iter().zip(&slopes) {
            let shifted = curved && self.is_shifted(&forward_case, *input);
            let mut expectation = Expectation::with_capacity(slopes.len());
            for (element, slope) in slopes.iter().enumerate() {
                let own = self.aligned.then_some(element);
                match outputs.bound(call, slope, own, &study.base.values)? {
                    Ok(_) if shifted => expectation.push_undetermined(slope.value, SHIFTED_INPUT),
                    Ok(delta) => expectation.push(slope.value, delta),
                    Err(reason) => expectation.push_undetermined(slope.value, reason),
                }
            }
            expectations.push(expectation);
        }
        Ok(expectations)
    }
}

const SHIFTED_INPUT: &str = "a common part of an input's values that cancels";

/// Whether an input enters without curvature, as either factor of a product does.
fn is_linear(slopes: &[Slope], values: &[f64]) -> bool {
    let curvature: f64 = slopes.iter().zip(values).map(|(slope, x)| slope.curvature * x.abs()).sum();
    curvature <= 0.1 * slopes.iter().map(|slope| slope.magnitude).sum::<f64>()
}

/// The coarsest unit roundoff that intermediates may have.
fn rounding(call: &Call<'_>) -> f64 {
    let own = call.dtype.float_format().map_or(0.0, FloatFormat::unit_roundoff);
    own.max(call.units.u).max(call.units.mid).max(call.units.input)
}

/// What is known of the forward's float outputs, one after the other.
struct Outputs {
    values: Vec<f64>,
    /// Magnitude of each output's intermediates.
    sizes: Vec<f64>,
    /// Why nothing can be said of what depends on an output.
    excuses: Vec<Option<&'static str>>,
    /// Upstream gradients; 0 where they are not finite.
    weights: Vec<f64>,
    /// Elements that the forward sums up.
    reduced: usize,
    /// The largest input, and at least one.
    largest: f64,
    /// Why nothing can be said of any gradient of the case.
    unjudged: Option<&'static str>,
}

impl Outputs {
    fn of(op: &GradientOp, call: &Call<'_>, expectations: Vec<Expectation>) -> Result<Self, OpError> {
        let reduced = op.forward.dimensions.iter().filter(|dimension| dimension.reduced);
        let reduced = reduced.filter_map(|dimension| call.size(&dimension.name).ok());
        let reduced = reduced.fold(1usize, usize::saturating_mul).max(1);
        // The forward's δ is u times a count of roundings times the magnitude of what is rounded.
        let roundings = call.units.u * (call.summation(reduced)? + 16.0);
        let (largest, unjudged) = survey(op, call);
        let (values, sizes, excuses, weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut outputs = Self { values, sizes, excuses, weights, reduced, largest, unjudged };
        let required = op.forward.outputs.iter().filter(|spec| !spec.optional).zip(expectations);
        for (spec, expectation) in required.filter(|(spec, _)| spec.dtype.is_none_or(DType::is_float)) {
            let upstream = call.input(&gradient_name(spec))?;
            let (found, expected) = (expectation.values.len(), upstream.len());
            if found != expected {
                let (op, output) = (op.forward.name.clone(), spec.name.clone());
                return Err(OpError::Reference { op, output, found, expected });
            }
            let mut excuses = vec![None; expectation.values.len()];
            expectation.excuses.iter().for_each(|excuse| excuses[excuse.index] = Some(excuse.reason));
            let elements = expectation.values.iter().zip(&expectation.delta).zip(upstream).zip(&mut excuses);
            for (((value, delta), weight), excuse) in elements {
                if !weight.is_finite() {
                    *excuse = Some("an upstream gradient that is not finite");
                } else if !value.is_finite() {
                    *excuse = Some("an output that is not finite");
                }
                outputs.sizes.push(value.abs() + if excuse.is_none() { delta / roundings } else { 0.0 });
                outputs.weights.push(if weight.is_finite() { *weight } else { 0.0 });
            }
            outputs.values.extend(expectation.values);
            outputs.excuses.extend(excuses);
        }
        Ok(outputs)
    }

    /// δ of one element of a gradient, or why there is none.
    fn bound(
        &self,
        call: &Call<'_>,
        slope: &Slope,
        own: Option<usize>,
        evaluated: &[f64],
    ) -> Result<Result<f64, &'static str>, OpError> {
        let dependents = || slope.dependents.iter().copied();
        // It may be masked, or cancel in every case, as the queries of a softmax over one key do; kernels give 0 for
        // the one, and the rounding of what cancels for the other.
        if slope.dependents.is_empty() {
            return Ok(Err("no output depends on it"));
        }
        if let Some(reason) = self.unjudged {
            return Ok(Err(reason));
        }
        // A row that sees nothing is NaN whatever the inputs are, and spreads to gradients that it has no part in.
        if evaluated.iter().any(|value| !value.is_finite()) {
            return Ok(Err("an output that is not finite"));
        }
        if let Some(reason) = dependents().find_map(|index| self.excuses[index]) {
            return Ok(Err(reason));
        }
        // An input that is not finite was replaced for the differences.
        if dependents().any(|index| self.values[index] != evaluated[index]) {
            return Ok(Err("an input that is not finite"));
        }
        if !slope.is_resolved() {
            return Ok(Err("not smooth, or lost in the rounding of fp64"));
        }
        let total: f64 = dependents().map(|index| self.weights[index].abs()).sum();
        // An output of size Y that a kernel reads back with a relative error of u moves the derivative by u·Y/L, also
        // where the terms of the derivative cancel, as in 1 − y² and y·(g − Σg·y) of a saturated output.
        let per_length = slope.per_length;
        if per_length.is_infinite() {
            return Ok(Err("saturated, or close to it"));
        }
        let read_back: f64 = match own {
            Some(index) => {
                let largest = dependents().fold(0.0, |most: f64, index| most.max(self.weights[index].abs()));
                self.sizes[index] * largest
            }
            None => dependents().map(|index| self.weights[index].abs() * self.sizes[index]).sum(),
        };
        let cancelled = per_length * read_back;
        let format = call.dtype.float_format().copied().unwrap_or(FloatFormat::F32);
        let terms = slope.magnitude + cancelled;
        let largest = dependents().fold(terms, |most, index| most.max(self.values[index].abs() * per_length.min(1.0)));
        if largest > 0.5 * format.max_value().min(call.units.max) {
            return Ok(Err("terms that may overflow"));
        }
        let relative = ROUNDINGS * rounding(call) + ARITHMETIC_ROUNDINGS * call.units.u;
        if relative * slope.sensitivity > slope.magnitude {
            return Ok(Err("ill-conditioned: rounding the inputs changes all of it"));
        }
        let summation = call.summation((slope.dependents.len() + self.reduced).max(1))?;
        let underflow = (format.min_subnormal() + call.units.tiny) * (1.0 + per_length) * (1.0 + total) * self.largest;
        let delta = relative * (terms + slope.sensitivity) + call.units.u * summation * terms + slope.error + underflow;
        Ok(Ok(delta))
    }
}

/// The largest input of a case, and why the case as a whole says nothing of a gradient.
fn survey(op: &GradientOp, call: &Call<'_>) -> (f64, Option<&'static str>) {
    let (mut largest, mut smallest, mut upstream, mut finite) = (1.0f64, 1.0f64, 0.0f64, true);
    for (index, tensor) in call.case().inputs.iter().enumerate() {
        let Some(tensor) = tensor.as_ref().filter(|tensor| tensor.dtype().is_float()) else { continue };
        let values = tensor.to_f64();
        finite &= values.iter().all(|value| value.is_finite());
        let most = values.iter().filter(|value| value.is_finite()).fold(0.0, |most: f64, value| most.max(value.abs()));
        if index >= op.forward.inputs.len() {
            upstream = upstream.max(most);
        } else {
            largest = largest.max(most);
            smallest = if most > 0.0 { smallest.min(most) } else { smallest };
        }
    }
    let format = call.dtype.float_format().copied().unwrap_or(FloatFormat::F32);
    // The cube: norms have r³ in their gradient, and its reciprocal.
    if largest * upstream > format.max_value() || largest.powi(3) * upstream.max(1.0) > call.units.max {
        return (largest, Some("products of inputs and upstream gradients that may overflow"));
    }
    if upstream > 0.0 && smallest * upstream < 16.0 * format.min_normal() {
        return (largest, Some("products of inputs and upstream gradients that may underflow"));
    }
    // Behind a mask, 0 times a value that is not finite is NaN in some kernels and skipped in others.
    (largest, (!finite && !op.aligned).then_some("a value that is not finite"))
}

fn float_outputs(schema: &Schema) -> impl Iterator<Item = &TensorSpec> {
    schema.outputs.iter().filter(|spec| !spec.optional && spec.dtype.is_none_or(DType::is_float))
}

fn gradient_name(spec: &TensorSpec) -> String {
    format!("grad_{}", spec.name)
}

fn gradient_of(spec: &TensorSpec) -> TensorSpec {
    TensorSpec { name: gradient_name(spec), domain: Domain::Real, optional: false, ..spec.clone() }
}

/// The signature of a schema, as it would be written.
fn signature(schema: &Schema) -> String {
    let inputs = schema.inputs.iter().map(tensor_text);
    let parameters = schema.parameters.iter().map(parameter_text);
    let outputs = schema.outputs.iter().map(tensor_text);
    let items: Vec<String> = inputs.chain(parameters).chain(std::iter::once("->".to_string())).chain(outputs).collect();
    items.join(" ")
}

fn tensor_text(spec: &TensorSpec) -> String {
    let optional = if spec.optional { "?" } else { "" };
    let dtype = spec.dtype.map_or(String::new(), |dtype| format!(":{dtype}"));
    let leading = spec.batch.then(|| "...".to_string());
    let dimensions: Vec<String> = leading.into_iter().chain(spec.dimensions.iter().map(ToString::to_string)).collect();
    let domain = if spec.domain == Domain::Real { String::new() } else { format!(" in {}", spec.domain) };
    format!("{}{optional}{dtype}[{}]{domain}", spec.name, dimensions.join(","))
}

fn parameter_text(parameter: &ParameterSpec) -> String {
    let kind = match parameter.default {
        Scalar::Bool(_) => "bool",
        Scalar::Int(_) => "int",
        Scalar::Float(_) => "float",
    };
    format!("{}:{kind}={}", parameter.name, parameter.default)
}
