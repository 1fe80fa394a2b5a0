//! Gradients by finite differences against gradients by formula: right ones pass, wrong ones do not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::sync::Arc;

use gpuemu_engine::case::{Layout, Strategy, materialise};
use gpuemu_engine::ops::gradient::GradientError;
use gpuemu_engine::ops::{self, ExcuseKind, GradientOp};
use gpuemu_engine::oracle::measure::measure;
use gpuemu_engine::runner::{Invocation, Runner, RunnerDescription, RunnerError, RunnerKind};
use gpuemu_engine::schema::{Scalar, Schema};
use gpuemu_engine::{Case, Sampler, Subject, judge};
use gpuemu_tensor::rng::case_seed;
use gpuemu_tensor::{DType, Tensor};

/// What a wrong kernel gets wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Bug {
    None,
    Factor,
    Term,
    Sign,
    Scale,
}

/// A gradient by formula, its arithmetic in float32 or, for float64, in float64.
struct Arithmetic {
    dtype: DType,
    bug: Bug,
}

impl Arithmetic {
    /// Rounds to the accumulator.
    fn wide(&self, x: f64) -> f64 {
        if self.dtype == DType::F64 { x } else { f64::from(x as f32) }
    }

    /// Rounds to the dtype of the case, as what is saved between forward and backward.
    fn saved(&self, x: f64) -> f64 {
        self.dtype.decode(self.dtype.encode(x))
    }

    fn dot(&self, terms: impl Iterator<Item = (f64, f64)>) -> f64 {
        terms.fold(0.0, |sum, (x, y)| self.wide(sum + self.wide(x * y)))
    }

    fn softmax(&self, row: &[f64]) -> Vec<f64> {
        let maximum = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exponentials: Vec<f64> = row.iter().map(|x| self.wide(libm::exp(self.wide(x - maximum)))).collect();
        let sum = self.dot(exponentials.iter().map(|e| (*e, 1.0)));
        exponentials.iter().map(|e| self.wide(e / sum)).collect()
    }

    fn kept(&self, bug: Bug, value: f64) -> f64 {
        if self.bug == bug { 0.0 } else { value }
    }

    fn softmax_backward(&self, x: &[f64], g: &[f64], width: usize) -> Vec<Vec<f64>> {
        let mut out = Vec::new();
        for (row, g) in x.chunks_exact(width).zip(g.chunks_exact(width)) {
            let y: Vec<f64> = self.softmax(row).into_iter().map(|y| self.saved(y)).collect();
            let total = self.kept(Bug::Term, self.dot(y.iter().copied().zip(g.iter().copied())));
            out.extend(y.iter().zip(g).map(|(y, g)| self.wide(y * self.wide(g - total))));
        }
        vec![out]
    }

    fn layernorm_backward(&self, x: &[f64], g: &[f64], width: usize, eps: f64) -> Vec<Vec<f64>> {
        let (mut out, count) = (Vec::new(), width as f64);
        for (row, g) in x.chunks_exact(width).zip(g.chunks_exact(width)) {
            let mean = self.wide(self.dot(row.iter().map(|x| (*x, 1.0))) / count);
            let centred: Vec<f64> = row.iter().map(|x| self.wide(x - mean)).collect();
            let variance = self.wide(self.dot(centred.iter().map(|x| (*x, *x))) / count);
            let inverse = self.wide(1.0 / self.wide(self.wide(variance + eps).sqrt()));
            let normal: Vec<f64> = centred.iter().map(|x| self.wide(x * inverse)).collect();
            let first = self.wide(self.dot(g.iter().map(|g| (*g, 1.0))) / count);
            let second = self.wide(self.dot(g.iter().copied().zip(normal.iter().copied())) / count);
            let second = self.kept(Bug::Term, second);
            let element = |(g, n): (&f64, &f64)| {
                let inner = self.wide(self.wide(g - first) - self.wide(n * second));
                if self.bug == Bug::Factor { inner } else { self.wide(inverse * inner) }
            };
            out.extend(g.iter().zip(&normal).map(element));
        }
        vec![out]
    }

    fn gelu_backward(&self, x: &[f64], g: &[f64]) -> Vec<Vec<f64>> {
        let slope = |x: f64| {
            let cumulative = self.wide(0.5 * self.wide(1.0 + self.wide(libm::erf(self.wide(x / 2f64.sqrt())))));
            let density =
                self.wide(libm::exp(self.wide(-0.5 * self.wide(x * x))) / (2.0 * std::f64::consts::PI).sqrt());
            let second = self.kept(Bug::Term, self.wide(x * density));
            self.wide(cumulative + if self.bug == Bug::Sign { -second } else { second })
        };
        vec![x.iter().zip(g).map(|(x, g)| self.wide(g * slope(*x))).collect()]
    }

    fn matmul_backward(&self, a: &[f64], b: &[f64], g: &[f64], (m, k, n): (usize, usize, usize)) -> Vec<Vec<f64>> {
        let factor =
            [1.0, 2.0, -1.0][[Bug::Factor, Bug::Sign].iter().position(|bug| *bug == self.bug).map_or(0, |at| at + 1)];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for row in 0..m {
            for inner in 0..k {
                left.push(factor * self.dot((0..n).map(|column| (g[row * n + column], b[inner * n + column]))));
            }
        }
        for inner in 0..k {
            for column in 0..n {
                right.push(self.dot((0..m).map(|row| (a[row * k + inner], g[row * n + column]))));
            }
        }
        vec![left, right]
    }

    /// One head per batch entry, no mask.
    fn attention_backward(&self, [q, k, v, g]: [&[f64]; 4], [b, m, n, d]: [usize; 4]) -> Vec<Vec<f64>> {
        let scale = 1.0 / (d as f64).sqrt();
        let (mut dq, mut dk, mut dv) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]);
        for (batch, row) in (0..b).flat_map(|batch| (0..m).map(move |row| (batch, row))) {
            let at = (batch * m + row) * d..(batch * m + row + 1) * d;
            let (q, g, key) = (&q[at.clone()], &g[at.clone()], |key: usize| (batch * n + key) * d);
            let with = |x: &[f64], tensor: &[f64], start: usize| {
                self.dot(x.iter().copied().zip(tensor[start..start + d].iter().copied()))
            };
            let scores: Vec<f64> = (0..n).map(|j| self.wide(scale * with(q, k, key(j)))).collect();
            let p: Vec<f64> = self.softmax(&scores).into_iter().map(|p| self.saved(p)).collect();
            let dp: Vec<f64> = (0..n).map(|j| with(g, v, key(j))).collect();
            let total = self.kept(Bug::Term, self.dot(p.iter().copied().zip(dp.iter().copied())));
            let scale = if self.bug == Bug::Scale { 1.0 } else { scale };
            for j in 0..n {
                let ds = self.wide(scale * self.saved(self.wide(p[j] * self.wide(dp[j] - total))));
                for (c, index) in at.clone().enumerate() {
                    dq[index] = self.wide(dq[index] + self.wide(ds * k[key(j) + c]));
                    dk[key(j) + c] = self.wide(dk[key(j) + c] + self.wide(ds * q[c]));
                    dv[key(j) + c] = self.wide(dv[key(j) + c] + self.wide(p[j] * g[c]));
                }
            }
        }
        vec![dq, dk, dv]
    }

    fn run(&self, op: &str, case: &Case) -> Vec<Vec<f64>> {
        let inputs: Vec<Vec<f64>> = case.inputs.iter().flatten().map(Tensor::to_f64).collect();
        let size = |name: &str| case.descriptor.sizes.get(name).unwrap_or(1);
        let (x, g) = (&inputs[0], inputs.last().unwrap());
        match op {
            "softmax" => self.softmax_backward(x, g, size("H")),
            "layernorm" => {
                let eps = case.descriptor.parameters.float("eps").unwrap();
                self.layernorm_backward(x, g, size("H"), eps)
            }
            "gelu" => self.gelu_backward(x, g),
            "matmul" => self.matmul_backward(x, &inputs[1], g, (size("M"), size("K"), size("N"))),
            "attention" => self.attention_backward([x, &inputs[1], &inputs[2], g], ["B", "M", "N", "D"].map(size)),
            "sum" => {
                let factor = if self.bug == Bug::Factor { 1.0 / size("H") as f64 } else { 1.0 };
                vec![(0..x.len()).map(|index| factor * g[index / size("H")]).collect()]
            }
            _ => vec![
                x.iter().zip(g).map(|(x, g)| if (*x > 0.0) != (self.bug == Bug::Sign) { *g } else { 0.0 }).collect(),
            ],
        }
    }
}

fn backward(op: &str) -> Subject {
    let op = ops::find(op).unwrap();
    let gradient = GradientOp::of(op.clone(), op.schema()).unwrap();
    Subject::new(Arc::new(gradient))
}

fn sampler(dtype: DType, strategy: Strategy) -> Sampler {
    let mut sampler = Sampler { dtypes: vec![dtype], strategy, budget: 192, ..GradientOp::sampler() };
    sampler.layouts = vec![Layout::Contiguous];
    sampler.absent = ["weight", "bias", "mask"].map(str::to_string).to_vec();
    // For attention: one head, and a width whose root is not one.
    let shape = |[b, m, n, d]: [usize; 4]| {
        [("B", b), ("H", 1), ("G", 1), ("M", m), ("N", n), ("D", d)]
            .map(|(name, size)| (name.to_string(), size))
            .to_vec()
    };
    sampler.shapes = [[1, 3, 5, 4], [2, 2, 3, 3], [1, 1, 17, 2], [1, 5, 4, 8]].map(shape).to_vec();
    for (name, value) in [("causal", Scalar::Bool(false)), ("window", Scalar::Int(0)), ("softcap", Scalar::Float(0.0))]
    {
        sampler.parameters.set(name, value);
    }
    sampler
}

#[derive(Debug, Default)]
struct Tally {
    judged: usize,
    rejected: usize,
    /// Largest share of the allowed error.
    share: f64,
    compared: usize,
    undetermined: usize,
}

fn tally(op: &str, dtype: DType, bug: Bug, strategy: Strategy, cases: u64) -> Tally {
    let subject = backward(op);
    let mut sampler = sampler(dtype, strategy);
    if op != "attention" {
        sampler.shapes.clear();
    }
    let mut tally = Tally::default();
    for index in 0..cases {
        let case = materialise(subject.schema(), &subject.describe(&sampler, case_seed(11, index))).unwrap();
        let expectations = subject.expect(&case).unwrap();
        let rule = subject.rule(dtype);
        let (mut compared, mut mismatched) = (0, 0);
        for (expectation, output) in expectations.iter().zip(Arithmetic { dtype, bug }.run(op, &case)) {
            let bytes = Tensor::from_f64(dtype, vec![output.len()], &output).unwrap().to_contiguous_bytes();
            let comparison = rule.compare(&bytes, expectation);
            compared += comparison.compared;
            mismatched += comparison.mismatched;
            tally.undetermined += comparison.undetermined;
            tally.share = tally.share.max(measure(&rule, &bytes, expectation).tolerance_share);
        }
        tally.compared += compared;
        tally.judged += usize::from(compared > 0);
        tally.rejected += usize::from(mismatched > 0);
    }
    tally
}

const OPS: [&str; 7] = ["attention", "gelu", "layernorm", "matmul", "relu", "softmax", "sum"];

#[test]
fn gradients_by_formula_pass_in_every_dtype() {
    for op in OPS {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let found = tally(op, dtype, Bug::None, Strategy::Regular, 1000);
            println!("{op:10} {dtype:9} largest error/allowed {:.3}, {found:?}", found.share);
            assert_eq!(found.rejected, 0, "{op} {dtype} {found:?}");
            assert!(found.judged > 800 && found.undetermined * 4 < found.compared, "{op} {dtype} {found:?}");
        }
    }
}

#[test]
fn exact_gradients_agree_with_the_differences_within_their_bound() {
    for op in OPS {
        let found = tally(op, DType::F64, Bug::None, Strategy::Regular, 200);
        println!("{op:10} float64 largest error/allowed {:.3}", found.share);
        assert!(found.rejected == 0 && found.judged > 150, "{op} {found:?}");
    }
}

#[test]
fn hard_values_are_judged_too_and_right_gradients_pass() {
    for op in OPS {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let found = tally(op, dtype, Bug::None, Strategy::Adversarial, 300);
            println!("{op:10} {dtype:9} adversarial, largest error/allowed {:.3}, {found:?}", found.share);
            assert_eq!(found.rejected, 0, "{op} {dtype} {found:?}");
            assert!(found.judged > 150, "{op} {dtype} {found:?}");
        }
    }
}

#[test]
fn wrong_gradients_are_rejected_in_most_cases() {
    let wrong = [
        ("softmax", Bug::Term),
        ("layernorm", Bug::Term),
        ("layernorm", Bug::Factor),
        ("gelu", Bug::Term),
        ("gelu", Bug::Sign),
        ("matmul", Bug::Factor),
        ("matmul", Bug::Sign),
        ("attention", Bug::Scale),
        ("attention", Bug::Term),
        ("sum", Bug::Factor),
        ("relu", Bug::Sign),
    ];
    for (op, bug) in wrong {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let found = tally(op, dtype, bug, Strategy::Regular, 150);
            println!("{op:10} {bug:?} {dtype:9} rejected {} of {}", found.rejected, found.judged);
            // Where a softmax is saturated, bfloat16 cannot tell a small gradient from a smaller one.
            let least = if dtype == DType::BF16 { 0.5 } else { 0.8 };
            assert!(found.rejected as f64 > least * found.judged as f64, "{op} {bug:?} {dtype} {found:?}");
        }
    }
}

/// A softmax backward through the whole of the oracle.
struct SoftmaxBackward {
    description: RunnerDescription,
    bug: Bug,
}

impl Runner for SoftmaxBackward {
    fn description(&self) -> &RunnerDescription {
        &self.description
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        let read = |name: &str| invocation.input(name).unwrap().to_tensor().unwrap().to_f64();
        let (x, g) = (read("input"), read("grad_out"));
        let arithmetic = Arithmetic { dtype: invocation.dtype, bug: self.bug };
        let out = arithmetic.softmax_backward(&x, &g, invocation.sizes.get("H").unwrap()).remove(0);
        let shape = invocation.outputs[0].shape().to_vec();
        invocation.replace_output(0, &Tensor::from_f64(invocation.dtype, shape, &out).unwrap());
        Ok(())
    }
}

#[test]
fn the_oracle_judges_a_backward_kernel_like_any_other() {
    let subject = backward("softmax");
    let sampler = GradientOp::sampler();
    let verdicts = |bug: Bug| -> Vec<bool> {
        let description = RunnerDescription {
            inputs_watched: true,
            refills: false,
            remembers: false,
            name: "softmax.backward".to_string(),
            kind: RunnerKind::StandIn,
            layouts: true,
            writes_into_buffers: false,
        };
        let mut runner = SoftmaxBackward { description, bug };
        let judged = (0..40).map(|index| {
            let case = materialise(subject.schema(), &subject.describe(&sampler, case_seed(5, index))).unwrap();
            judge(&subject, &case, &mut runner).failed()
        });
        judged.collect()
    };
    assert!(verdicts(Bug::None).iter().all(|failed| !failed));
    assert!(verdicts(Bug::Term).iter().filter(|failed| **failed).count() > 30);
}

fn expectation_of(op: &str, shape: Vec<usize>, values: &[f64]) -> Vec<gpuemu_engine::ops::Expectation> {
    let subject = backward(op);
    let mut descriptor = subject.describe(&sampler(DType::F32, Strategy::Regular), 1);
    descriptor.sizes.batch = shape.clone();
    let input = Tensor::from_f64(DType::F32, shape.clone(), values).unwrap();
    let upstream = Tensor::from_f64(DType::F32, shape, &vec![2.0; values.len()]).unwrap();
    subject.expect(&Case { descriptor, inputs: vec![Some(input), Some(upstream)] }).unwrap()
}

#[test]
fn relu_has_no_gradient_at_zero_and_a_definite_one_elsewhere() {
    let expectation = &expectation_of("relu", vec![5], &[-1.0, 0.0, -0.0, 1e-30, 3.0])[0];
    let undetermined: Vec<usize> = expectation.excuses.iter().map(|excuse| excuse.index).collect();
    assert_eq!(undetermined, [1, 2]);
    assert!(expectation.excuses.iter().all(|excuse| excuse.kind == ExcuseKind::Undetermined));
    assert_eq!([0, 3, 4].map(|index| expectation.values[index].round()), [0.0, 2.0, 2.0]);
}

#[test]
fn values_that_are_not_finite_concern_only_what_depends_on_them() {
    let expectation = &expectation_of("tanh", vec![4], &[0.5, f64::NAN, f64::INFINITY, -0.5])[0];
    let undetermined: Vec<usize> = expectation.excuses.iter().map(|excuse| excuse.index).collect();
    assert_eq!(undetermined, [1, 2]);
}

#[test]
fn a_backward_schema_has_the_tensors_of_a_gradient() {
    let subject = backward("attention");
    let schema = subject.schema();
    assert_eq!(schema.name, "attention.backward");
    let names = |specs: &[gpuemu_engine::schema::TensorSpec]| -> Vec<String> {
        specs.iter().map(|spec| spec.name.clone()).collect()
    };
    assert_eq!(names(&schema.inputs), ["q", "k", "v", "mask", "grad_out"]);
    assert_eq!(names(&schema.outputs), ["grad_q", "grad_k", "grad_v"]);
    for op in ops::builtin() {
        // Indices, flags and tensors written in place have none.
        let Ok(gradient) = GradientOp::of(op.clone(), op.schema()) else { continue };
        let schema = gpuemu_engine::Op::schema(&gradient);
        let parsed = Schema::from_signature(&schema.name, &schema.signature).unwrap();
        assert_eq!((&parsed.inputs, &parsed.outputs), (&schema.inputs, &schema.outputs));
    }
}

#[test]
fn ops_without_a_gradient_say_why() {
    let of = |signature: &str| {
        let schema = Schema::from_signature("odd", signature).unwrap();
        GradientOp::of(ops::find("relu").unwrap(), &schema).err().unwrap()
    };
    assert!(matches!(of("i:int64[N] -> out[N]"), GradientError::NoInput { .. }));
    assert!(matches!(of("x[N] -> out:int64[N]"), GradientError::NoOutput { .. }));
    assert!(matches!(of("x[N] -> x[N]"), GradientError::Name { .. }));
}
