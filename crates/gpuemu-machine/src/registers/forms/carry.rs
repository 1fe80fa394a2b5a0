//! Sums, differences and products that carry from one instruction to the next.

use std::marker::PhantomData;

use gpuemu_ptx::syntax::ScalarType::{self, *};

use super::lanes::{Carried, CarryFunction};
use super::words::{Found, Words};

/// A width of these.
trait Width {
    type Word: super::lanes::Cell;
    fn sum(a: Self::Word, b: Self::Word, carry: bool) -> (Self::Word, bool);
    fn inverted(word: Self::Word) -> Self::Word;
    fn product(a: Self::Word, b: Self::Word, high: bool, signed: bool) -> Self::Word;
}

macro_rules! width {
    ($name:ident: $word:ty, $signed:ty, $wide:ty, $wide_signed:ty, $bits:literal) => {
        pub(super) struct $name;

        impl Width for $name {
            type Word = $word;

            #[inline(always)]
            fn sum(a: $word, b: $word, carry: bool) -> ($word, bool) {
                let (sum, first) = a.overflowing_add(b);
                let (sum, second) = sum.overflowing_add(carry.into());
                (sum, first || second)
            }

            #[inline(always)]
            fn inverted(word: $word) -> $word {
                !word
            }

            #[inline(always)]
            fn product(a: $word, b: $word, high: bool, signed: bool) -> $word {
                match (high, signed) {
                    (false, _) => a.wrapping_mul(b),
                    (true, false) => (<$wide>::from(a) * <$wide>::from(b) >> $bits) as $word,
                    (true, true) => {
                        (<$wide_signed>::from(a as $signed) * <$wide_signed>::from(b as $signed) >> $bits) as $word
                    }
                }
            }
        }
    };
}

width!(Width32: u32, i32, u64, i64, 32);
width!(Width64: u64, i64, u128, i128, 64);

struct Sum<W, const IN: bool, const OUT: bool>(PhantomData<W>);

impl<W: Width, const IN: bool, const OUT: bool> CarryFunction for Sum<W, IN, OUT> {
    type Sources = (W::Word, W::Word);
    const SOURCES: usize = 2;
    type Cell = W::Word;
    const SETS_CARRY: bool = OUT;

    #[inline(always)]
    fn of((a, b): Self::Sources, carry: bool) -> (W::Word, bool) {
        W::sum(a, b, IN && carry)
    }
}

/// `a - b` as `a + !b + carry`.
struct Difference<W, const IN: bool, const OUT: bool>(PhantomData<W>);

impl<W: Width, const IN: bool, const OUT: bool> CarryFunction for Difference<W, IN, OUT> {
    type Sources = (W::Word, W::Word);
    const SOURCES: usize = 2;
    type Cell = W::Word;
    const SETS_CARRY: bool = OUT;

    #[inline(always)]
    fn of((a, b): Self::Sources, carry: bool) -> (W::Word, bool) {
        W::sum(a, W::inverted(b), !IN || carry)
    }
}

/// Products of the lower half have no sign, so `HIGH` is 0 for those, 1 without and 2 with one.
struct Product<W, const HIGH: u8, const IN: bool, const OUT: bool>(PhantomData<W>);

impl<W: Width, const HIGH: u8, const IN: bool, const OUT: bool> CarryFunction for Product<W, HIGH, IN, OUT> {
    type Sources = (W::Word, W::Word, W::Word);
    const SOURCES: usize = 3;
    type Cell = W::Word;
    const SETS_CARRY: bool = OUT;

    #[inline(always)]
    fn of((a, b, c): Self::Sources, carry: bool) -> (W::Word, bool) {
        W::sum(W::product(a, b, HIGH > 0, HIGH == 2), c, IN && carry)
    }
}

macro_rules! by_width {
    ($words:expr, $scalar:expr, $operands:expr, $name:ident<$($argument:literal),+>) => {
        match $scalar {
            U32 | S32 => $words.carrying::<Carried<$name<Width32, $($argument),+>>>($operands),
            U64 | S64 => $words.carrying::<Carried<$name<Width64, $($argument),+>>>($operands),
            other => $words.refuse(other),
        }
    };
}

/// `add.cc`, `addc`, `addc.cc`: whether a carry comes in, and whether one goes out.
pub fn add(words: &Words<'_>, scalar: ScalarType, carry: (bool, bool)) -> Found {
    match carry {
        (false, _) => by_width!(words, scalar, &[scalar; 3], Sum<false, true>),
        (true, false) => by_width!(words, scalar, &[scalar; 3], Sum<true, false>),
        (true, true) => by_width!(words, scalar, &[scalar; 3], Sum<true, true>),
    }
}

/// `sub.cc`, `subc`, `subc.cc`. Recorded: the chip adds what is inverted, so the carry is set where nothing was borrowed.
pub fn subtract(words: &Words<'_>, scalar: ScalarType, carry: (bool, bool)) -> Found {
    match carry {
        (false, _) => by_width!(words, scalar, &[scalar; 3], Difference<false, true>),
        (true, false) => by_width!(words, scalar, &[scalar; 3], Difference<true, false>),
        (true, true) => by_width!(words, scalar, &[scalar; 3], Difference<true, true>),
    }
}

/// `mad.cc`, `madc`, `madc.cc`
pub fn multiply_add(words: &mut Words<'_>, scalar: ScalarType, carry: (bool, bool)) -> Found {
    let high = match (words.take("lo"), words.take("hi")) {
        (true, false) => 0,
        (false, true) if matches!(scalar, S32 | S64) => 2,
        (false, true) => 1,
        _ => return words.unknown("it needs `.lo` or `.hi`"),
    };
    let operands = &[scalar; 4];
    match (high, carry) {
        (0, (false, _)) => by_width!(words, scalar, operands, Product<0, false, true>),
        (0, (true, false)) => by_width!(words, scalar, operands, Product<0, true, false>),
        (0, (true, true)) => by_width!(words, scalar, operands, Product<0, true, true>),
        (1, (false, _)) => by_width!(words, scalar, operands, Product<1, false, true>),
        (1, (true, false)) => by_width!(words, scalar, operands, Product<1, true, false>),
        (1, (true, true)) => by_width!(words, scalar, operands, Product<1, true, true>),
        (_, (false, _)) => by_width!(words, scalar, operands, Product<2, false, true>),
        (_, (true, false)) => by_width!(words, scalar, operands, Product<2, true, false>),
        (_, (true, true)) => by_width!(words, scalar, operands, Product<2, true, true>),
    }
}
