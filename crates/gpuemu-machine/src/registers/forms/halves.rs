//! Functions of 16-bit numbers, alone in a register or two in a word.

use std::marker::PhantomData;

use gpuemu_ptx::syntax::ScalarType;

use super::lanes::{Each, Function};
use super::words::{Found, Words};

/// A function of up to three 16-bit numbers.
pub trait HalfFunction {
    /// Does it. Must be `#[inline(always)]`.
    fn of(sources: [u16; 3], extra: u32) -> u16;
}

/// A function of so many numbers, each in a register of its own.
pub struct Alone<F, const SOURCES: usize>(PhantomData<F>);

/// The same for both halves of words.
pub struct Both<F, const SOURCES: usize>(PhantomData<F>);

#[inline(always)]
fn both<F: HalfFunction>(words: [u32; 3], extra: u32) -> u32 {
    let low = F::of(words.map(|word| word as u16), extra);
    let high = F::of(words.map(|word| (word >> 16) as u16), extra);
    u32::from(low) | u32::from(high) << 16
}

macro_rules! arities {
    ($($count:literal: $half:ty, $word:ty, $sources:pat => $filled:expr;)+) => {
        $(impl<F: HalfFunction> Function for Alone<F, $count> {
            type Sources = $half;
            type Results = u16;

            #[inline(always)]
            fn of($sources: $half, extra: u32) -> u16 {
                F::of($filled, extra)
            }
        }

        impl<F: HalfFunction> Function for Both<F, $count> {
            type Sources = $word;
            type Results = u32;

            #[inline(always)]
            fn of($sources: $word, extra: u32) -> u32 {
                both::<F>($filled, extra)
            }
        })+
    };
}

arities! {
    1: (u16,), (u32,), (a,) => [a, 0, 0];
    2: (u16, u16), (u32, u32), (a, b) => [a, b, 0];
    3: (u16, u16, u16), (u32, u32, u32), (a, b, c) => [a, b, c];
}

/// The form of a function of one number.
pub fn unary<F: HalfFunction>(words: &Words<'_>, scalar: ScalarType, extra: u32) -> Found {
    match scalar.bytes() {
        Some(2) => words.form::<Each<Alone<F, 1>>>(&[scalar; 2], extra),
        _ => words.form::<Each<Both<F, 1>>>(&[scalar; 2], extra),
    }
}

/// The form of a function of two numbers.
pub fn binary<F: HalfFunction>(words: &Words<'_>, scalar: ScalarType, extra: u32) -> Found {
    match scalar.bytes() {
        Some(2) => words.form::<Each<Alone<F, 2>>>(&[scalar; 3], extra),
        _ => words.form::<Each<Both<F, 2>>>(&[scalar; 3], extra),
    }
}

/// The form of a function of three numbers.
pub fn ternary<F: HalfFunction>(words: &Words<'_>, scalar: ScalarType, extra: u32) -> Found {
    match scalar.bytes() {
        Some(2) => words.form::<Each<Alone<F, 3>>>(&[scalar; 4], extra),
        _ => words.form::<Each<Both<F, 3>>>(&[scalar; 4], extra),
    }
}
