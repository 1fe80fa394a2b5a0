//! The approximated functions rounded correctly, to show whether a verdict hangs on the last bit of the chip's.
//!
//! Quotients and roots are computed exactly and rounded once. The others are computed in f64, of which 2^-49 is taken
//! to be wrong; where that leaves two numbers to choose from, about 104 bits decide.

use gpuemu_tensor::FloatFormat;

use super::extended::{self, Extended};
use crate::numerics::exact::{Exact, Value};
use crate::numerics::rounding::round;
use crate::numerics::{FloatKind, FloatRules, Rounding};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// 2^x
    Ex2,
    /// log2 x
    Lg2,
    Sin,
    Cos,
    Tanh,
    /// 1/x
    Rcp,
    /// √x
    Sqrt,
    /// 1/√x
    Rsqrt,
}

impl Function {
    /// All of them; the place of each is its number in packed modifiers.
    pub const ALL: [Function; 8] = [
        Function::Ex2,
        Function::Lg2,
        Function::Sin,
        Function::Cos,
        Function::Tanh,
        Function::Rcp,
        Function::Sqrt,
        Function::Rsqrt,
    ];

    /// In f64, to about its last bit.
    fn near(self, x: f64) -> f64 {
        match self {
            Function::Ex2 => x.exp2(),
            Function::Lg2 => x.log2(),
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Tanh => x.tanh(),
            Function::Rcp => x.recip(),
            Function::Sqrt => x.sqrt(),
            Function::Rsqrt => x.sqrt().recip(),
        }
    }

    /// To about 104 bits, for arguments of f32 whose result is finite and not zero.
    fn extended(self, x: f64) -> Extended {
        match self {
            Function::Ex2 => extended::power(x),
            Function::Lg2 => extended::logarithm(x),
            Function::Sin => extended::sine(x as f32),
            Function::Cos => extended::cosine(x as f32),
            Function::Tanh => {
                let Extended(high, low) = extended::hyperbolic_tangent(x.abs());
                if x < 0.0 { Extended(-high, -low) } else { Extended(high, low) }
            }
            Function::Rcp | Function::Sqrt | Function::Rsqrt => Extended(self.near(x), 0.0),
        }
    }
}

/// The number of a format that is nearest to a function of another one of the same format.
///
/// Of f64 only reciprocals are asked; that of a root is within 2^-20 of its last bit of being rounded correctly there.
pub fn correct(function: Function, kind: FloatKind, flush: bool, bits: u64) -> u64 {
    let rules = FloatRules { kind, rounding: Rounding::Nearest, flush, saturate: false, relu: false };
    let bits = if flush { kind.flushed(bits) } else { bits };
    match function {
        Function::Rcp => rules.reciprocal(bits),
        Function::Sqrt => rules.root(bits),
        Function::Rsqrt => reciprocal_root(rules, bits),
        _ => rules.finished(transcendental(function, kind, bits)),
    }
}

fn reciprocal_root(rules: FloatRules, bits: u64) -> u64 {
    let format = rules.kind.format();
    let sign = bits & format.sign_bit();
    match Value::read(format, bits) {
        Value::Finite(exact) if exact.is_zero() => sign | format.overflow_bits(),
        Value::Finite(exact) if !exact.negative => {
            let one = Exact { negative: false, exponent: 0, significand: 1 };
            rules.finished(round(&one.over(exact).root(), format, Rounding::Nearest))
        }
        Value::Infinite(false) => 0,
        Value::Nan => rules.kind.nan_of(&[bits]),
        _ => rules.kind.nan(),
    }
}

fn transcendental(function: Function, kind: FloatKind, bits: u64) -> u64 {
    let format = kind.format();
    let x = format.decode(bits);
    let near = function.near(x);
    if near.is_nan() {
        return kind.nan();
    }
    let margin = (near * f64::from_bits(0x3CE0_0000_0000_0000)).abs();
    let (below, above) = (rounded(format, near - margin), rounded(format, near + margin));
    if below == above || !near.is_finite() || near == 0.0 {
        return rounded(format, near);
    }
    rounded(format, function.extended(x).odd())
}

fn rounded(format: &FloatFormat, value: f64) -> u64 {
    match Value::read(&FloatFormat::F64, value.to_bits()) {
        Value::Finite(exact) => round(&exact, format, Rounding::Nearest),
        Value::Infinite(negative) => format.overflow_bits() | if negative { format.sign_bit() } else { 0 },
        Value::Nan => format.nan_bits(),
    }
}

#[cfg(test)]
mod tests;
