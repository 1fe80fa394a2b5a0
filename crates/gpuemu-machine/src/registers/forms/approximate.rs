//! Approximated functions: `ex2`, `lg2`, `sin`, `cos`, `tanh`, `rcp`, `rsqrt`, `sqrt`, `div`.

use std::marker::PhantomData;

use gpuemu_ptx::syntax::ScalarType::{self, *};

use super::halves::{self, HalfFunction};
use super::lanes::{Each, functions};
use super::words::{Found, Words};
use crate::approximations::correct::{self, Function};
use crate::approximations::single::SingleFunction;
use crate::approximations::unit::answers;
use crate::approximations::{Approximation, double, narrow, single};
use crate::numerics::{FloatKind, FloatRules, Rounding};
use crate::registers::file::{LANES, RegisterFile};
use crate::registers::pure::Pure;
use crate::registers::simd::{Level, Operation};

/// An instruction of f32 with one operand.
struct One<S>(PhantomData<S>);

impl<S: SingleFunction> Operation for One<S> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let a = file.b32(pure.slots[1]);
        let results = results::<S>(a, &[0; LANES]);
        file.set_b32(pure.slots[0], &results, mask);
    }
}

/// An instruction of f32 with two.
struct Two<S>(PhantomData<S>);

impl<S: SingleFunction> Operation for Two<S> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let (a, b) = (file.b32(pure.slots[1]), file.b32(pure.slots[2]));
        let results = results::<S>(a, b);
        file.set_b32(pure.slots[0], &results, mask);
    }
}

#[inline(always)]
fn results<S: SingleFunction>(a: &[u32; LANES], b: &[u32; LANES]) -> [u32; LANES] {
    let (mut arguments, mut results) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        arguments[lane] = S::before(a[lane], b[lane]);
    }
    let answers = answers::<S::Unit>(&arguments);
    for lane in 0..LANES {
        results[lane] = S::after(a[lane], b[lane], answers[lane]);
    }
    results
}

functions! {
    Rcp64(a: u64) -> u64 = double::rcp(a);
    Rsqrt64Flushed(a: u64) -> u64 = double::rsqrt_flushed(a);
    Rsqrt64(a: u64) -> u64 = double::rsqrt(a);
    Correct32[extra](a: u32) -> u32 = correctly(a.into(), extra) as u32;
    Correct64[extra](a: u64) -> u64 = correctly(a, extra);
    CorrectQuotient[extra](a: u32, b: u32) -> u32 = FloatRules::unpack(extra).quotient(a.into(), b.into()) as u32;
}

/// The function is in the lowest bits, then the format and whether to flush.
fn correctly(bits: u64, extra: u32) -> u64 {
    let function = Function::ALL[extra as usize & 7];
    correct::correct(function, FloatKind::ALL[extra as usize >> 3 & 3], extra >> 5 & 1 == 1, bits)
}

macro_rules! narrow {
    ($($name:ident = $function:path;)+) => {
        $(struct $name;

        impl HalfFunction for $name {
            #[inline(always)]
            fn of([a, ..]: [u16; 3], _: u32) -> u16 {
                $function(a)
            }
        })+
    };
}

narrow! {
    Ex2F16 = narrow::ex2_f16;
    Ex2Bf16 = narrow::ex2_bf16;
    TanhF16 = narrow::tanh_f16;
    TanhBf16 = narrow::tanh_bf16;
}

struct Correct16;

impl HalfFunction for Correct16 {
    #[inline(always)]
    fn of([a, ..]: [u16; 3], extra: u32) -> u16 {
        correctly(a.into(), extra) as u16
    }
}

fn function(base: &str) -> Option<Function> {
    Some(match base {
        "ex2" => Function::Ex2,
        "lg2" => Function::Lg2,
        "sin" => Function::Sin,
        "cos" => Function::Cos,
        "tanh" => Function::Tanh,
        "rcp" => Function::Rcp,
        "sqrt" => Function::Sqrt,
        "rsqrt" => Function::Rsqrt,
        _ => return None,
    })
}

/// An approximated function of one number; `.approx` has been taken.
pub fn unary(words: &mut Words<'_>, base: &str, scalar: ScalarType, approximation: Approximation) -> Found {
    let Some(function) = function(base) else { return words.unknown("it is not approximated") };
    let flush = words.take("ftz");
    let exists = match (function, scalar) {
        (Function::Ex2, F16 | F16x2) | (Function::Tanh, F32 | F16 | F16x2 | Bf16 | Bf16x2) => !flush,
        (Function::Ex2, Bf16 | Bf16x2) | (Function::Rcp, F64) => flush,
        (Function::Tanh, _) => false,
        (_, F32) | (Function::Rsqrt, F64) => true,
        _ => false,
    };
    if !exists {
        let with = if flush { " with `.ftz`" } else { "" };
        return words.unknown(&format!("there is no approximation for `{scalar}`{with}"));
    }
    if approximation == Approximation::Correct {
        return correct_form(words, function, scalar, flush);
    }
    let types = &[scalar; 2];
    match (function, scalar, flush) {
        (Function::Ex2, F32, true) => words.form::<One<single::Ex2Flushed>>(types, 0),
        (Function::Ex2, F32, false) => words.form::<One<single::Ex2Approximate>>(types, 0),
        (Function::Ex2, F16 | F16x2, _) => halves::unary::<Ex2F16>(words, scalar, 0),
        (Function::Ex2, ..) => halves::unary::<Ex2Bf16>(words, scalar, 0),
        (Function::Lg2, _, true) => words.form::<One<single::Lg2Flushed>>(types, 0),
        (Function::Lg2, _, false) => words.form::<One<single::Lg2Approximate>>(types, 0),
        (Function::Sin, ..) => words.form::<One<single::SinApproximate>>(types, 0),
        (Function::Cos, ..) => words.form::<One<single::CosApproximate>>(types, 0),
        (Function::Tanh, F32, _) => words.form::<One<single::TanhApproximate>>(types, 0),
        (Function::Tanh, F16 | F16x2, _) => halves::unary::<TanhF16>(words, scalar, 0),
        (Function::Tanh, ..) => halves::unary::<TanhBf16>(words, scalar, 0),
        (Function::Rcp, F64, _) => words.slow::<Each<Rcp64>>(types, 0),
        (Function::Rcp, _, true) => words.form::<One<single::RcpFlushed>>(types, 0),
        (Function::Rcp, _, false) => words.form::<One<single::RcpApproximate>>(types, 0),
        (Function::Rsqrt, F64, true) => words.slow::<Each<Rsqrt64Flushed>>(types, 0),
        (Function::Rsqrt, F64, false) => words.slow::<Each<Rsqrt64>>(types, 0),
        (Function::Rsqrt, _, true) => words.form::<One<single::RsqrtFlushed>>(types, 0),
        (Function::Rsqrt, _, false) => words.form::<One<single::RsqrtApproximate>>(types, 0),
        (Function::Sqrt, _, true) => words.form::<One<single::SqrtFlushed>>(types, 0),
        (Function::Sqrt, _, false) => words.form::<One<single::SqrtApproximate>>(types, 0),
    }
}

fn correct_form(words: &mut Words<'_>, function: Function, scalar: ScalarType, flush: bool) -> Found {
    let Some(kind) = super::float::kind(scalar) else { return words.refuse(scalar) };
    let place = |found: Option<usize>| found.unwrap_or(0) as u32;
    let extra = place(Function::ALL.iter().position(|other| *other == function))
        | place(FloatKind::ALL.iter().position(|other| *other == kind)) << 3
        | u32::from(flush) << 5;
    words.level = Level::Baseline;
    match kind {
        FloatKind::F16 | FloatKind::Bf16 => halves::unary::<Correct16>(words, scalar, extra),
        FloatKind::F32 => words.form::<Each<Correct32>>(&[F32; 2], extra),
        FloatKind::F64 => words.form::<Each<Correct64>>(&[F64; 2], extra),
    }
}

/// `div.full`, `div.approx`: which one has been taken.
pub fn divide(words: &mut Words<'_>, scalar: ScalarType, full: bool, approximation: Approximation) -> Found {
    if scalar != F32 {
        return words.refuse(scalar);
    }
    let flush = words.take("ftz");
    let types = &[F32; 3];
    if approximation == Approximation::Correct {
        let rules =
            FloatRules { kind: FloatKind::F32, rounding: Rounding::Nearest, flush, saturate: false, relu: false };
        return words.slow::<Each<CorrectQuotient>>(types, rules.pack());
    }
    match (full, flush) {
        (true, false) => words.form::<Two<single::DivideFull>>(types, 0),
        (true, true) => words.form::<Two<single::DivideFullFlushed>>(types, 0),
        (false, false) => words.form::<Two<single::DivideApproximate>>(types, 0),
        (false, true) => words.form::<Two<single::DivideApproximateFlushed>>(types, 0),
    }
}
