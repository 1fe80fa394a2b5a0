//! Products computed element by element, on every processor.

use super::aligned_sum::{self, LEAST_HALF, LEAST_SINGLE, Number};
use super::element::{Element, NAN_SINGLE, single_to_half};
use super::model::TensorCore;
use super::plan::{Holder, Plan, Run};
use super::product::{Combination, Family, MatrixProduct};
use super::tile::Register;
use crate::registers::{LANES, Level, RegisterFile, Slot};

/// Most elements of a matrix of floating-point numbers, or of an accumulator.
const MOST_ELEMENTS: usize = 512;

/// Most registers of a matrix of integers, those of all lanes together.
const MOST_REGISTERS: usize = 128;

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
        _ if matches!(form.family, Family::MmaQuadPairs { .. }) => at_level::<QuadPairs>(level),
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

/// Most registers of an instruction.
const MOST_SLOTS: usize = 32;

/// The registers of an instruction.
struct Sources<'a>([&'a Register; MOST_SLOTS]);

impl<'a> Sources<'a> {
    #[inline(always)]
    fn new(file: &'a RegisterFile, slots: &[Slot]) -> Self {
        let mut registers = [&[0; LANES]; MOST_SLOTS];
        for (register, &slot) in registers.iter_mut().zip(slots) {
            *register = file.b32(slot);
        }
        Self(registers)
    }

    #[inline(always)]
    fn word(&self, holder: Holder) -> u32 {
        self.0[usize::from(holder.slot) % MOST_SLOTS][usize::from(holder.lane) % LANES]
    }
}

/// Writes a word to where it is held.
#[inline(always)]
fn write(file: &mut RegisterFile, slots: &[Slot], holder: Holder, word: u32) {
    file.b32_mut(slots[usize::from(holder.slot)])[usize::from(holder.lane) % LANES] = word;
}

/// Floating-point operands as single-precision numbers.
#[inline(always)]
fn singles<'a>(
    sources: &Sources,
    holders: &[Holder],
    element: Element,
    into: &'a mut [f32; MOST_ELEMENTS],
) -> &'a [f32] {
    let mask = if element.bits() < 32 { (1 << element.bits()) - 1 } else { u32::MAX };
    for (value, &holder) in into.iter_mut().zip(holders) {
        *value = element.single(sources.word(holder) >> holder.shift & mask);
    }
    &into[..holders.len().min(MOST_ELEMENTS)]
}

/// Writes floating-point results; halves of a register one after the other.
#[inline(always)]
fn write_singles(file: &mut RegisterFile, slots: &[Slot], holders: &[Holder], element: Element, from: &[f32]) {
    for (&value, &holder) in from.iter().zip(holders) {
        let bits = if element == Element::F16 {
            let before = file.b32(slots[usize::from(holder.slot)])[usize::from(holder.lane) % LANES];
            before & !(0xFFFF << holder.shift) | u32::from(single_to_half(value)) << holder.shift
        } else if value.is_nan() {
            NAN_SINGLE
        } else {
            value.to_bits()
        };
        write(file, slots, holder, bits);
    }
}

/// Fused multiply-adds in single precision, k ascending.
struct FusedSingles;

impl Arithmetic for FusedSingles {
    #[inline(always)]
    fn run(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        let (mut a, mut b, mut c) = ([0.0; MOST_ELEMENTS], [0.0; MOST_ELEMENTS], [0.0; MOST_ELEMENTS]);
        let (rows, columns, depth) = (plan.form.m, plan.form.n, plan.depth);
        let sources = Sources::new(file, slots);
        let a = singles(&sources, &plan.a, plan.form.a, &mut a);
        let b = singles(&sources, &plan.b, plan.form.b, &mut b);
        singles(&sources, &plan.c, plan.form.c, &mut c);
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

/// `mma.m8n8k4` of half precision. Only the first chips have it: for those that are known here the compiler makes fused
/// multiply-adds of it, in an order of its own.
struct QuadPairs;

impl Arithmetic for QuadPairs {
    #[inline(always)]
    fn run(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        let (mut a, mut b, mut c) = ([0.0; MOST_ELEMENTS], [0.0; MOST_ELEMENTS], [0.0; MOST_ELEMENTS]);
        let (rows, columns, depth) = (plan.form.m, plan.form.n, plan.depth);
        let sources = Sources::new(file, slots);
        let a = singles(&sources, &plan.a, plan.form.a, &mut a).as_chunks::<4>().0;
        let b = singles(&sources, &plan.b, plan.form.b, &mut b).as_chunks::<4>().0;
        singles(&sources, &plan.c, plan.form.c, &mut c);
        debug_assert_eq!(depth, 4);
        let in_half = plan.form.d == Element::F16;
        for (index, sum) in c[..plan.d.len()].iter_mut().enumerate() {
            let (product, row, column) = (index / (rows * columns), index / columns % rows, index % columns);
            let (a, b) = (a[product * rows + row], b[product * columns + column]);
            *sum = if in_half {
                let pair = |first: usize| a[first + 1].mul_add(b[first + 1], a[first] * b[first]);
                (*sum + pair(0)) + pair(2)
            } else {
                *sum + a.iter().zip(b).fold(0.0, |sum: f32, (left, right)| left.mul_add(right, sum))
            };
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
        let sources = Sources::new(file, slots);
        let mut numbers = [[Number::ZERO; MOST_ELEMENTS]; 2];
        let [left, right] = &mut numbers;
        for (number, &value) in left.iter_mut().zip(singles(&sources, &plan.a, plan.form.a, &mut a)) {
            *number = Number::new(value, least_exponent(plan.form.a));
        }
        for (number, &value) in right.iter_mut().zip(singles(&sources, &plan.b, plan.form.b, &mut b)) {
            *number = Number::new(value, least_exponent(plan.form.b));
        }
        singles(&sources, &plan.c, plan.form.c, &mut c);
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
            f64::from_bits(file.b64(slots[usize::from(holder.slot)])[usize::from(holder.lane) % LANES])
        };
        let mut results = [0.0; MOST_ELEMENTS];
        for (index, (result, &holder)) in results.iter_mut().zip(&plan.c).enumerate() {
            let (row, column) = (index / plan.form.n, index % plan.form.n);
            *result = value(file, holder);
            for place in 0..plan.depth {
                let left = value(file, plan.a[row * plan.depth + place]);
                *result = fused_double(left, value(file, plan.b[column * plan.depth + place]), *result);
            }
        }
        for (result, &holder) in results.iter().zip(&plan.d) {
            file.b64_mut(slots[usize::from(holder.slot)])[usize::from(holder.lane) % LANES] = result.to_bits();
        }
    }
}

/// A fused multiply-add with the NaNs of the chips: one that comes in goes out, made quiet. That of B comes first, then
/// that of the sum so far.
#[inline(always)]
fn fused_double(left: f64, right: f64, addend: f64) -> f64 {
    let result = left.mul_add(right, addend);
    if !result.is_nan() {
        return result;
    }
    let first = [right, addend, left].into_iter().find(|value| value.is_nan());
    f64::from_bits(first.map_or(NAN_DOUBLE, |value| value.to_bits() | QUIET_DOUBLE))
}

/// The NaN of a double-precision operation that has no result.
const NAN_DOUBLE: u64 = 0xFFF8_0000_0000_0000;

/// The bit of NaNs that are quiet.
const QUIET_DOUBLE: u64 = 0x0008_0000_0000_0000;

/// Integers, and counts of bits. No sum of products leaves 32 bits: the longest, of 32 products of 8 bits, has 22.
struct Integers;

impl Arithmetic for Integers {
    #[inline(always)]
    fn run(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
        match (plan.form.combination, plan.form.a.bits()) {
            (Combination::DifferentBits, _) => {
                integers(plan, file, slots, |word| word, |word| word, |a, b| (a ^ b).count_ones() as i32);
            }
            (Combination::CommonBits, _) => {
                integers(plan, file, slots, |word| word, |word| word, |a, b| (a & b).count_ones() as i32);
            }
            (_, 4) => {
                let (left, right) = (parts_of::<4, 8>(plan.form.a), parts_of::<4, 8>(plan.form.b));
                integers(plan, file, slots, left, right, dot);
            }
            _ => {
                let (left, right) = (parts_of::<8, 4>(plan.form.a), parts_of::<8, 4>(plan.form.b));
                integers(plan, file, slots, left, right, dot);
            }
        }
    }
}

/// Products of what registers are unpacked to.
#[inline(always)]
fn integers<T: Copy + Default>(
    plan: &Plan,
    file: &mut RegisterFile,
    slots: &[Slot],
    unpack_a: impl Fn(u32) -> T,
    unpack_b: impl Fn(u32) -> T,
    product: impl Fn(T, T) -> i32,
) {
    let sources = Sources::new(file, slots);
    let (mut a, mut b) = ([T::default(); MOST_REGISTERS], [T::default(); MOST_REGISTERS]);
    for (value, &holder) in a.iter_mut().zip(&plan.a) {
        *value = unpack_a(sources.word(holder));
    }
    for (value, &holder) in b.iter_mut().zip(&plan.b) {
        *value = unpack_b(sources.word(holder));
    }
    let mut results = [0; MOST_ELEMENTS];
    let held = plan.c.chunks_exact(plan.form.n);
    for ((results, held), left) in results.chunks_exact_mut(plan.form.n).zip(held).zip(a.chunks_exact(plan.depth)) {
        for ((result, &held), right) in results.iter_mut().zip(held).zip(b.chunks_exact(plan.depth)) {
            let sum: i32 = left.iter().zip(right).map(|(&left, &right)| product(left, right)).sum();
            let accumulator = sources.word(held) as i32;
            let added =
                if plan.form.saturate { accumulator.saturating_add(sum) } else { accumulator.wrapping_add(sum) };
            *result = added as u32;
        }
    }
    for (&result, &holder) in results.iter().zip(&plan.d) {
        write(file, slots, holder, result);
    }
}

/// The elements of a register, each of so many bits.
#[inline(always)]
fn parts_of<const BITS: u32, const COUNT: usize>(element: Element) -> impl Fn(u32) -> [i16; COUNT] {
    let sign: i16 = if matches!(element, Element::S8 | Element::S4) { 1 << (BITS - 1) } else { 0 };
    move |word| {
        std::array::from_fn(|part| {
            let bits = (word >> (part as u32 * BITS)) as i16 & ((1 << BITS) - 1);
            (bits ^ sign) - sign
        })
    }
}

#[inline(always)]
fn dot<const COUNT: usize>(left: [i16; COUNT], right: [i16; COUNT]) -> i32 {
    let mut sum = 0;
    for part in 0..COUNT {
        sum += i32::from(left[part]) * i32::from(right[part]);
    }
    sum
}
