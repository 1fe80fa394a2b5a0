//! Products computed element by element, on every processor.

use super::aligned_sum::{self, LEAST_HALF, LEAST_SINGLE, Number};
use super::element::{Element, NAN_SINGLE, single_to_half};
use super::model::TensorCore;
use super::plan::{Holder, Plan, Run};
use super::product::{Combination, MatrixProduct};
use crate::registers::{Level, RegisterFile, Slot};

/// Most elements of a matrix of floating-point numbers, and registers of any.
const MOST_ELEMENTS: usize = 512;

/// Most columns of a product.
const MOST_COLUMNS: usize = 32;

/// A way to compute a product, compiled for each instruction set.
trait Arithmetic {
    /// Computes it. Must be `#[inline(always)]`.
    fn run(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]);
}

/// The way to compute a product.
pub(super) fn choose(form: &MatrixProduct, model: TensorCore, level: Level) -> Run {
    match (form.a, model) {
        (Element::F64, _) => at_level::<Doubles>(level),
        (Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1, _) => at_level::<Integers>(level),
        (_, TensorCore::Ieee) => at_level::<FusedSingles>(level),
        _ => at_level::<AlignedSums>(level),
    }
}

fn at_level<A: Arithmetic>(level: Level) -> Run {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Avx2 => x86::avx2::<A>,
        _ => A::run,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Arithmetic, Plan, RegisterFile, Slot};

    #[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
    fn with_avx2<A: Arithmetic>(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        A::run(plan, file, slots);
    }

    #[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
    pub(super) fn avx2<A: Arithmetic>(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        // SAFETY: `choose` is given a level that is not above what `Level::detect` found the features for.
        unsafe { with_avx2::<A>(plan, file, slots) }
    }
}

#[inline(always)]
fn read(file: &RegisterFile, slots: &[Slot], holder: Holder) -> u32 {
    file.b32(slots[usize::from(holder.slot)])[usize::from(holder.lane & 31)]
}

/// Floating-point operands as single-precision numbers.
#[inline(always)]
fn singles<'a>(
    file: &RegisterFile,
    slots: &[Slot],
    holders: &[Holder],
    element: Element,
    into: &'a mut [f32; MOST_ELEMENTS],
) -> &'a [f32] {
    let mask = if element.bits() < 32 { (1 << element.bits()) - 1 } else { u32::MAX };
    for (value, &holder) in into.iter_mut().zip(holders) {
        *value = element.single(read(file, slots, holder) >> holder.shift & mask);
    }
    &into[..holders.len().min(MOST_ELEMENTS)]
}

/// Writes floating-point results; halves of a register one after the other.
#[inline(always)]
fn write_singles(file: &mut RegisterFile, slots: &[Slot], holders: &[Holder], element: Element, from: &[f32]) {
    for (&value, &holder) in from.iter().zip(holders) {
        let bits = if element == Element::F16 {
            let kept = read(file, slots, holder) & !(0xFFFF << holder.shift);
            kept | u32::from(single_to_half(value)) << holder.shift
        } else if value.is_nan() {
            NAN_SINGLE
        } else {
            value.to_bits()
        };
        file.b32_mut(slots[usize::from(holder.slot)])[usize::from(holder.lane & 31)] = bits;
    }
}

/// Fused multiply-adds in single precision, k ascending.
struct FusedSingles;

impl Arithmetic for FusedSingles {
    #[inline(always)]
    fn run(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        let (mut a, mut b, mut c) = ([0.0; MOST_ELEMENTS], [0.0; MOST_ELEMENTS], [0.0; MOST_ELEMENTS]);
        let (rows, columns, depth) = (plan.form.m, plan.form.n, plan.depth);
        let a = singles(file, slots, &plan.a, plan.form.a, &mut a);
        let b = singles(file, slots, &plan.b, plan.form.b, &mut b);
        singles(file, slots, &plan.c, plan.form.c, &mut c);
        for product in 0..plan.products {
            // Column by column of A, so that the columns of the result are computed side by side.
            let mut along = [[0.0; MOST_COLUMNS]; MOST_COLUMNS];
            for (column, values) in b[product * columns * depth..].chunks_exact(depth).take(columns).enumerate() {
                for (place, &value) in values.iter().enumerate() {
                    along[place][column] = value;
                }
            }
            for row in 0..rows {
                let of_a = &a[(product * rows + row) * depth..][..depth];
                let sums = &mut c[(product * rows + row) * columns..][..columns];
                for (&left, right) in of_a.iter().zip(&along) {
                    for (sum, &right) in sums.iter_mut().zip(right) {
                        *sum = left.mul_add(right, *sum);
                    }
                }
            }
        }
        write_singles(file, slots, &plan.d, plan.form.d, &c[..plan.d.len()]);
    }
}

/// Blocks of products, added as the chips do.
struct AlignedSums;

impl Arithmetic for AlignedSums {
    #[inline(always)]
    fn run(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        let (mut a, mut b, mut c) = ([0.0; MOST_ELEMENTS], [0.0; MOST_ELEMENTS], [0.0; MOST_ELEMENTS]);
        let (rows, columns, depth) = (plan.form.m, plan.form.n, plan.depth);
        let mut numbers = [[Number::ZERO; MOST_ELEMENTS]; 2];
        let [left, right] = &mut numbers;
        for (number, &value) in left.iter_mut().zip(singles(file, slots, &plan.a, plan.form.a, &mut a)) {
            *number = Number::new(value, least_exponent(plan.form.a));
        }
        for (number, &value) in right.iter_mut().zip(singles(file, slots, &plan.b, plan.form.b, &mut b)) {
            *number = Number::new(value, least_exponent(plan.form.b));
        }
        singles(file, slots, &plan.c, plan.form.c, &mut c);
        let in_half = (plan.form.c, plan.form.d) == (Element::F16, Element::F16);
        let least = if in_half { LEAST_HALF } else { LEAST_SINGLE };
        for product in 0..plan.products {
            for row in 0..rows {
                let left = &left[(product * rows + row) * depth..][..depth];
                for column in 0..columns {
                    let right = &right[(product * columns + column) * depth..][..depth];
                    let accumulator = &mut c[(product * rows + row) * columns + column];
                    let mut sum = if plan.accumulator_last { 0.0 } else { *accumulator };
                    for block in &plan.blocks {
                        let pairs = block.iter().map(|&place| (left[place], right[place]));
                        let added = aligned_sum::add(pairs, Number::new(sum, least), plan.extra_bits);
                        sum = if in_half { added.half() } else { added.single() };
                    }
                    *accumulator = if plan.accumulator_last { sum + *accumulator } else { sum };
                }
            }
        }
        write_singles(file, slots, &plan.d, plan.form.d, &c[..plan.d.len()]);
    }
}

/// Where the exponents of a type end. Elements of 8 bits are made numbers of half precision first.
fn least_exponent(element: Element) -> i32 {
    match element {
        Element::F16 | Element::E4m3 | Element::E5m2 => LEAST_HALF,
        _ => LEAST_SINGLE,
    }
}

/// Fused multiply-adds in double precision, k ascending.
struct Doubles;

impl Arithmetic for Doubles {
    #[inline(always)]
    fn run(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        let value = |file: &RegisterFile, holder: Holder| {
            f64::from_bits(file.b64(slots[usize::from(holder.slot)])[usize::from(holder.lane & 31)])
        };
        let mut results = [0.0; MOST_ELEMENTS];
        for (index, (result, &holder)) in results.iter_mut().zip(&plan.c).enumerate() {
            let (row, column) = (index / plan.form.n, index % plan.form.n);
            *result = value(file, holder);
            for place in 0..plan.depth {
                let left = value(file, plan.a[row * plan.depth + place]);
                *result = left.mul_add(value(file, plan.b[column * plan.depth + place]), *result);
            }
        }
        for (result, &holder) in results.iter().zip(&plan.d) {
            let bits = if result.is_nan() { NAN_DOUBLE } else { result.to_bits() };
            file.b64_mut(slots[usize::from(holder.slot)])[usize::from(holder.lane & 31)] = bits;
        }
    }
}

/// The NaN that double-precision arithmetic gives on the chips.
const NAN_DOUBLE: u64 = 0xFFF8_0000_0000_0000;

/// Integers, and counts of bits. Sums are exact until they are brought into 32 bits.
struct Integers;

impl Arithmetic for Integers {
    #[inline(always)]
    fn run(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        let (mut a, mut b) = ([0; MOST_ELEMENTS], [0; MOST_ELEMENTS]);
        let mut results = [0; MOST_ELEMENTS];
        for (words, holders) in [(&mut a, &plan.a), (&mut b, &plan.b), (&mut results, &plan.c)] {
            for (word, &holder) in words.iter_mut().zip(holders) {
                *word = read(file, slots, holder);
            }
        }
        for (index, result) in results.iter_mut().enumerate().take(plan.c.len()) {
            let (row, column) = (index / plan.form.n, index % plan.form.n);
            let left = &a[row * plan.depth..][..plan.depth];
            let right = &b[column * plan.depth..][..plan.depth];
            let sum = match (plan.combination(), plan.form.a) {
                (Combination::DifferentBits, _) => count(left, right, |left, right| left ^ right),
                (Combination::CommonBits, _) => count(left, right, |left, right| left & right),
                (Combination::Product, Element::S4 | Element::U4) => dot::<4>(left, right, plan),
                (Combination::Product, _) => dot::<8>(left, right, plan),
            };
            let (sum, accumulator) = (sum, *result as i32);
            // No sum of products reaches 32 bits: the longest, of 64 products of 4 bits or 32 of 8, has 21.
            *result = match plan.form.saturate {
                true => accumulator.saturating_add(sum),
                false => accumulator.wrapping_add(sum),
            } as u32;
        }
        for (&result, &holder) in results.iter().zip(&plan.d) {
            file.b32_mut(slots[usize::from(holder.slot)])[usize::from(holder.lane & 31)] = result;
        }
    }
}

#[inline(always)]
fn count(left: &[u32], right: &[u32], combine: impl Fn(u32, u32) -> u32) -> i32 {
    left.iter().zip(right).map(|(&left, &right)| combine(left, right).count_ones() as i32).sum()
}

/// The sum of products of elements of so many bits.
#[inline(always)]
fn dot<const BITS: u32>(left: &[u32], right: &[u32], plan: &Plan) -> i32 {
    let (left_sign, right_sign) = (sign::<BITS>(plan.form.a), sign::<BITS>(plan.form.b));
    let mut sum = 0;
    for (&left, &right) in left.iter().zip(right) {
        for part in 0..32 / BITS {
            sum += part_of::<BITS>(left, part, left_sign) * part_of::<BITS>(right, part, right_sign);
        }
    }
    sum
}

/// The bit of the sign; none for elements that have no sign.
#[inline(always)]
fn sign<const BITS: u32>(element: Element) -> i32 {
    if matches!(element, Element::S8 | Element::S4) { 1 << (BITS - 1) } else { 0 }
}

#[inline(always)]
fn part_of<const BITS: u32>(word: u32, part: u32, sign: i32) -> i32 {
    let bits = (word >> (part * BITS) & ((1 << BITS) - 1)) as i32;
    (bits ^ sign) - sign
}
