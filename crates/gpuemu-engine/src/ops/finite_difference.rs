//! Derivatives of a reference by central differences in fp64, with an estimate of their error.
//!
//! Differences at a step and at twice the step are combined (Richardson); how far they disagree is the error of
//! truncation, and the reference's own fp64 bound over the step is the error of rounding. A kink shows as second
//! differences that do not grow with the step.

use gpuemu_tensor::float_format::{exponent_of, power_of_two};
use gpuemu_tensor::rng::unit;
use gpuemu_tensor::{DType, FloatFormat, Stream, Tensor};

use super::{Call, Op, OpError};
use crate::case::Case;
use crate::schema::{Precision, Schema};

/// Perturbed copies of the inputs, at which the sensitivity of a derivative is measured.
const PROBES: usize = 3;

/// By how much a probe moves every input, relative to it.
const PROBE_DISTANCE: f64 = 1.0 / (1 << 20) as f64;

/// By how much detours move them: enough that what is alike by chance is no longer, and not so much that the op is
/// saturated there.
const DETOUR_DISTANCES: [f64; 3] = [1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0];

/// The largest share of a slope's magnitude that its error may have.
const RESOLVED: f64 = 1.0 / 64.0;

/// Float outputs of one evaluation, one after the other, with the bounds of fp64 arithmetic on them.
#[derive(Clone)]
pub(super) struct Point {
    pub values: Vec<f64>,
    pub delta: Vec<f64>,
}

/// An op with one case of it, whose float outputs are summed up with weights.
pub(super) struct Study<'a> {
    op: &'a dyn Op,
    schema: &'a Schema,
    precision: Precision,
    weights: &'a [f64],
    /// Relative error below which a step is good enough.
    target: f64,
    case: Case,
    /// Outputs of the case.
    pub base: Point,
    generic: Case,
    generic_base: Point,
    probes: Vec<Case>,
    detours: Vec<(Case, Point)>,
}

/// The derivative of the weighted sum of outputs with respect to one element of an input.
#[derive(Default)]
pub(super) struct Slope {
    /// Σ g·∂y/∂x.
    pub value: f64,
    /// Σ |g·∂y/∂x|.
    pub magnitude: f64,
    /// Σ |g·∂²y/∂x²|, or what it may be at most.
    pub curvature: f64,
    /// 1/L, where L is the length over which the derivative varies.
    pub per_length: f64,
    /// `value` from the nearer points alone.
    near: f64,
    /// How far `value` may be from the derivative; infinite where there is none to be found.
    pub error: f64,
    /// How much `value` changes, per relative change of all inputs.
    pub sensitivity: f64,
    /// Outputs that depend on the element, whatever the values are.
    pub dependents: Vec<usize>,
}

impl<'a> Study<'a> {
    /// Evaluates `case`, whose float inputs are float64 and finite. `differentiable` are the inputs that may move.
    pub fn new(
        (op, schema): (&'a dyn Op, &'a Schema),
        case: Case,
        differentiable: &[usize],
        weights: &'a [f64],
        target: f64,
    ) -> Result<Self, OpError> {
        // The precision class of the kernel says nothing about the reference.
        let precision = Precision::default();
        let seed = case.descriptor.seed;
        let mut stream = Stream::new(seed, "gradient/generic");
        // Far from every zero, tie and saturation, and inside of every domain.
        let generic = with_inputs(&case, differentiable, |_| 0.25 + 0.25 * unit(stream.next_word()));
        let beside = |name: &str, (index, distance): (usize, f64)| {
            let mut stream = Stream::new(seed, &format!("gradient/{name}/{index}"));
            let mut sign = move || if stream.chance(1, 2) { distance } else { -distance };
            with_inputs(&case, differentiable, |x| x + x * sign())
        };
        let probes = [PROBE_DISTANCE; PROBES].into_iter().enumerate().map(|one| beside("probe", one)).collect();
        // With a single input, what is alike stays alike in its gradient too.
        let detours = if differentiable.len() > 1 { &DETOUR_DISTANCES[..] } else { &[] };
        let detours: Vec<Case> = detours.iter().copied().enumerate().map(|one| beside("detour", one)).collect();
        let nothing = || Point { values: Vec::new(), delta: Vec::new() };
        let (base, generic_base) = (nothing(), nothing());
        let mut study = Self {
            op,
            schema,
            precision,
            weights,
            target,
            case,
            base,
            generic,
            generic_base,
            probes,
            detours: Vec::new(),
        };
        study.base = study.evaluate(&study.case)?;
        study.generic_base = study.evaluate(&study.generic)?;
        for detour in detours {
            let point = study.evaluate(&detour)?;
            study.detours.push((detour, point));
        }
        Ok(study)
    }

    fn evaluate(&self, case: &Case) -> Result<Point, OpError> {
        let expectations = self.op.expect(&Call::new(self.schema, case, &self.precision)?)?;
        let mut point = Point { values: Vec::new(), delta: Vec::new() };
        let outputs = self.schema.outputs.iter().filter(|spec| spec.is_in(&case.descriptor));
        for (spec, expectation) in outputs.zip(expectations) {
            if spec.dtype_in(case.descriptor.dtype).is_float() {
                point.values.extend(expectation.values);
                point.delta.extend(expectation.delta);
            }
        }
        let (found, expected) = (point.values.len(), self.weights.len());
        if found != expected || point.delta.len() != expected {
            let (op, output) = (self.schema.name.clone(), "all outputs".to_string());
            return Err(OpError::Reference { op, output, found, expected });
        }
        Ok(point)
    }

    /// The outputs with one element of an input moved; `None` where that leaves the input's domain.
    fn moved(&self, case: &mut Case, at: (usize, usize), to: f64) -> Result<Option<Point>, OpError> {
        set_element(case, at, to);
        match self.evaluate(case) {
            Ok(point) => Ok(Some(point)),
            Err(OpError::Domain { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The derivative with respect to one element, at the step that gives it best.
    pub fn slope(&self, input: usize, element: usize) -> Result<Slope, OpError> {
        let dependents = self.dependents((input, element))?;
        let Some(tensor) = self.case.inputs.get(input).and_then(Option::as_ref) else { return Ok(Slope::default()) };
        let values = tensor.to_f64();
        let x = values[element];
        let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let mut best = Slope { error: f64::INFINITY, ..Slope::default() };
        let mut best_step = 0.0;
        for step in steps(x, largest) {
            let Some(slope) = self.at_step((&self.case, &self.base), (input, element), step, &dependents)? else {
                continue;
            };
            if slope.error < best.error {
                (best, best_step) = (slope, step);
            }
            if best.error <= self.target * best.magnitude {
                break;
            }
        }
        if best_step > 0.0 {
            best.per_length = self.per_length((input, element), best_step, &best, &dependents)?;
            best.sensitivity = self.sensitivity((input, element), best_step, best.near, &dependents)?;
        }
        best.dependents = dependents;
        Ok(best)
    }

    /// Outputs that change when an element moves at a generic point. At the case itself a zero weight, a tie or a
    /// larger summand may hide that.
    fn dependents(&self, at: (usize, usize)) -> Result<Vec<usize>, OpError> {
        let mut case = self.generic.clone();
        let x = element_of(&case, at);
        let all = || (0..self.weights.len()).collect();
        let Some(moved) = self.moved(&mut case, at, x + 0.45)? else { return Ok(all()) };
        let changed = |index: &usize| moved.values[*index].to_bits() != self.generic_base.values[*index].to_bits();
        Ok((0..self.weights.len()).filter(changed).collect())
    }

    fn at_step(
        &self,
        (case, base): (&Case, &Point),
        at: (usize, usize),
        step: f64,
        dependents: &[usize],
    ) -> Result<Option<Slope>, OpError> {
        let (mut case, x) = (case.clone(), element_of(case, at));
        let mut points = Vec::with_capacity(4);
        for multiple in [-2.0, -1.0, 1.0, 2.0] {
            let Some(point) = self.moved(&mut case, at, x + multiple * step)? else { return Ok(None) };
            points.push(point);
        }
        let width = |multiple: f64| (x + multiple * step) - (x - multiple * step);
        let mut slope = Slope::default();
        for index in dependents {
            let (weight, middle) = (self.weights[*index], base.values[*index]);
            let [below, under, over, above] = [0, 1, 2, 3].map(|point| points[point].values[*index]);
            let near = (over - under) / width(1.0);
            let far = (above - below) / width(2.0);
            if !(near.is_finite() && far.is_finite() && middle.is_finite()) {
                return Ok(None);
            }
            let derivative = (4.0 * near - far) / 3.0;
            let near_bend = (over - middle) + (under - middle);
            let far_bend = (above - middle) + (below - middle);
            let changed = [below, under, over, above].iter().any(|value| *value != middle);
            let bound = points.iter().fold(base.delta[*index], |bound: f64, point| bound.max(point.delta[*index]));
            // A reference without a bound of its own still rounds.
            let unbounded = if changed { 2.0 * FloatFormat::F64.unit_roundoff() * middle.abs() } else { 0.0 };
            let rounding = 1.5 * bound.max(unbounded) / step;
            // A kink bends by its jump times the step at every step; a smooth function by the step's square.
            let kink = (2.0 * near_bend / step - far_bend / (2.0 * step)).abs();
            slope.value += weight * derivative;
            slope.magnitude += (weight * derivative).abs();
            // Where rounding hides the curvature, it may be as large as what rounding hides.
            slope.curvature += weight.abs() * (far_bend.abs() / 4.0 + bound.max(unbounded)) / (step * step);
            slope.near += weight * near;
            slope.error += weight.abs() * ((near - far).abs() + kink + rounding);
        }
        Ok(Some(slope))
    }

    /// The largest ratio of curvature and slope, here and at the detours; infinite where one of those cannot be
    /// resolved: nothing is known then of what cancels here.
    fn per_length(&self, at: (usize, usize), step: f64, here: &Slope, dependents: &[usize]) -> Result<f64, OpError> {
        let mut largest = here.curvature_ratio();
        for (case, point) in &self.detours {
            let there = self.at_step((case, point), at, step, dependents)?.filter(Slope::is_resolved);
            largest = largest.max(there.map_or(f64::INFINITY, |there| there.curvature_ratio()));
        }
        Ok(largest)
    }

    fn sensitivity(&self, at: (usize, usize), step: f64, unmoved: f64, dependents: &[usize]) -> Result<f64, OpError> {
        let mut largest = 0.0f64;
        for probe in &self.probes {
            let mut case = probe.clone();
            let x = element_of(&case, at);
            let Some(under) = self.moved(&mut case, at, x - step)? else { continue };
            let Some(over) = self.moved(&mut case, at, x + step)? else { continue };
            let width = (x + step) - (x - step);
            let rise = |index: &usize| self.weights[*index] * (over.values[*index] - under.values[*index]) / width;
            let moved: f64 = dependents.iter().map(rise).sum();
            largest = largest.max((moved - unmoved).abs() / PROBE_DISTANCE);
        }
        Ok(largest)
    }
}

impl Slope {
    /// Whether there is a derivative, and one that fp64 can see.
    pub fn is_resolved(&self) -> bool {
        self.error <= RESOLVED * self.magnitude
    }

    fn curvature_ratio(&self) -> f64 {
        if self.magnitude > 0.0 { self.curvature / self.magnitude } else { 0.0 }
    }
}

/// Steps to try. Functions vary over lengths of about one (exponentials), of about the element (powers), of a
/// share of the largest element (a row that is normalised), or not at all (linear ones).
fn steps(x: f64, largest: f64) -> impl Iterator<Item = f64> {
    let lengths = [(1.0, -16), (x.abs(), -16), (largest, -24), (largest, -8), (largest, -36)];
    let steps = lengths.into_iter().filter(|(length, _)| *length > 0.0);
    let steps = steps.map(|(length, shift)| power_of_two((exponent_of(length) + shift).max(-1000)));
    // Below that, the sum with the element keeps too few bits of the step.
    steps.filter(move |step| *step >= x.abs() * power_of_two(-40))
}

fn with_inputs(case: &Case, inputs: &[usize], mut change: impl FnMut(f64) -> f64) -> Case {
    let mut changed = case.clone();
    for index in inputs {
        let Some(Some(tensor)) = changed.inputs.get_mut(*index) else { continue };
        let values: Vec<f64> = tensor.to_f64().into_iter().map(&mut change).collect();
        if let Ok(moved) = Tensor::from_f64(DType::F64, tensor.shape().to_vec(), &values) {
            *tensor = moved;
        }
    }
    changed
}

fn element_of(case: &Case, (input, element): (usize, usize)) -> f64 {
    let tensor = case.inputs.get(input).and_then(Option::as_ref);
    tensor.and_then(|tensor| tensor.to_f64().get(element).copied()).unwrap_or(f64::NAN)
}

fn set_element(case: &mut Case, (input, element): (usize, usize), to: f64) {
    let Some(Some(tensor)) = case.inputs.get_mut(input) else { return };
    let mut values = tensor.to_f64();
    if let Some(value) = values.get_mut(element) {
        *value = to;
    }
    if let Ok(moved) = Tensor::from_f64(DType::F64, tensor.shape().to_vec(), &values) {
        *tensor = moved;
    }
}
