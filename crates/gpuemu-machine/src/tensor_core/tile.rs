//! Tiles of 16 by 8 results, which most products of floating-point numbers are made of, and which are computed whole.

use super::element::{E4M3_TO_HALF, Element, NAN_SINGLE, half_to_single, single_to_half};
use super::model::TensorCore;
use super::plan::{Plan, Run};
use super::product::{Family, MatrixProduct};
use crate::registers::{LANES, Level, RegisterFile, Slot};

pub(super) type Register = [u32; LANES];

/// Registers of the operands of a tile, as `mma.sync` has them. Those that the shape does not need are not looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileOperands<'a> {
    pub(super) a: [&'a Register; 4],
    pub(super) b: [&'a Register; 2],
    pub(super) c: [&'a Register; 4],
}

/// Computes a tile. False if there is something in it that needs the slow way; what it has written is then of no use.
pub(super) type Compute = fn(&TileOperands, &mut [Register; 4]) -> bool;

/// What computes tiles of a type and a depth.
pub(super) struct Kernel {
    pub(super) compute: Compute,
    /// A product of one, and of two.
    pub(super) run: [Run; MOST_TILES],
}

/// Places of the registers of a tile among the slots of the instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct TilePlan {
    a: [u8; 4],
    b: [u8; 2],
    c: [u8; 4],
    d: [u8; 4],
}

/// Tiles, and how they are computed.
pub(super) struct Chosen {
    pub(super) tiles: Vec<TilePlan>,
    pub(super) compute: Compute,
    pub(super) run: Run,
}

/// Most tiles of an instruction.
const MOST_TILES: usize = 2;

/// The way to compute a product by tiles, if there is one.
pub(super) fn choose(form: &MatrixProduct, model: TensorCore, level: Level) -> Option<Chosen> {
    let (m, n) = (form.m.max(form.n), form.m.min(form.n));
    let whole_tiles = m.is_multiple_of(16) && matches!(form.family, Family::Mma | Family::Wmma);
    if !whole_tiles || form.d != form.c {
        return None;
    }
    let eight_bits = matches!(form.a, Element::E4m3 | Element::E5m2);
    let tiles = tiles(form, m / 16, n / 8);
    if eight_bits {
        // Two tiles of half precision, then C; not so in IEEE arithmetic.
        let block = model.rule()?.block(form);
        let Kernel { compute, .. } = kernel(Element::F16, form.k / 2, form.d, model, block, level)?;
        return Some(Chosen { tiles, compute, run: run_eight_bits });
    }
    let block = model.rule().map_or(form.k, |rule| rule.block(form));
    let Kernel { compute, run } = kernel(form.a, form.k, form.d, model, block, level)?;
    let run = *run.get(tiles.len().checked_sub(1)?)?;
    Some(Chosen { tiles, compute, run })
}

#[cfg(target_arch = "x86_64")]
fn kernel(
    operand: Element,
    k: usize,
    result: Element,
    model: TensorCore,
    block: usize,
    level: Level,
) -> Option<Kernel> {
    super::tile_x86::kernel(operand, k, result, model, block, level)
}

#[cfg(not(target_arch = "x86_64"))]
fn kernel(_: Element, _: usize, _: Element, _: TensorCore, _: usize, _: Level) -> Option<Kernel> {
    None
}

/// Registers of each tile, as `fragment` lays the matrices out.
fn tiles(form: &MatrixProduct, high: usize, wide: usize) -> Vec<TilePlan> {
    let registers = form.registers();
    let first_a = registers.d.count;
    let first_b = first_a + registers.a.count;
    let first_c = first_b + registers.b.count;
    // A product that is wider than high is computed transposed.
    let (first_left, first_right) = if form.n > form.m { (first_b, first_a) } else { (first_a, first_b) };
    let of_left = 16 * form.k / (LANES * form.a.in_register());
    let of_right = of_left / 2;
    let of_result = 128 / (LANES * form.d.in_register());
    (0..high * wide)
        .map(|tile| {
            let (row, column) = (tile / wide, tile % wide);
            TilePlan {
                a: places(first_left + row * of_left, of_left),
                b: places(first_right + column * of_right, of_right),
                c: places(first_c + tile * of_result, of_result),
                d: places(tile * of_result, of_result),
            }
        })
        .collect()
}

/// Places from the first on; beyond those of the tile the last is repeated, and not looked at.
fn places<const N: usize>(first: usize, count: usize) -> [u8; N] {
    std::array::from_fn(|index| (first + index.min(count.saturating_sub(1))) as u8)
}

#[inline(always)]
fn operands<'a>(file: &'a RegisterFile, slots: &[Slot], tile: &TilePlan) -> TileOperands<'a> {
    let register = |place: u8| file.b32(slots[usize::from(place)]);
    let (a, b, c) = (tile.a, tile.b, tile.c);
    TileOperands {
        a: [register(a[0]), register(a[1]), register(a[2]), register(a[3])],
        b: [register(b[0]), register(b[1])],
        c: [register(c[0]), register(c[1]), register(c[2]), register(c[3])],
    }
}

/// Writes the results of tiles. Registers that a tile does not have come as repetitions of its last, from the back, so
/// that the last is written by itself.
#[inline(always)]
fn write(file: &mut RegisterFile, slots: &[Slot], tile: &TilePlan, results: &[Register; 4]) {
    for (&place, register) in tile.d.iter().zip(results).rev() {
        *file.b32_mut(slots[usize::from(place)]) = *register;
    }
}

/// Computes a product of so many tiles. What `compute` may use of the processor, the copying of registers uses as well.
#[inline(always)]
pub(super) fn run_tiles<const MOST: usize>(
    plan: &Plan,
    file: &mut RegisterFile,
    slots: &[Slot],
    compute: impl Fn(&TileOperands, &mut [Register; 4]) -> bool,
) {
    let mut results = [[[0; LANES]; 4]; MOST];
    for (result, tile) in results.iter_mut().zip(&plan.tiles) {
        if !compute(&operands(file, slots, tile), result) {
            return (plan.fallback)(plan, file, slots);
        }
    }
    for (result, tile) in results.iter().zip(&plan.tiles) {
        write(file, slots, tile, result);
    }
}

/// A tile of elements of 8 bits: the first two of every four along k make one tile of half precision, the others another
/// that goes on from it, and C is added to that.
fn run_eight_bits(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
    let (Some(compute), Some(tile)) = (plan.compute_tile, plan.tiles.first()) else {
        return (plan.fallback)(plan, file, slots);
    };
    let given = operands(file, slots, tile);
    let mut sums = [[0; LANES]; 4];
    for half in 0..2 {
        let a = given.a.map(|register| halves(register, plan.form.a, half));
        let b = given.b.map(|register| halves(register, plan.form.b, half));
        let so_far = sums;
        if !compute(&TileOperands { a: a.each_ref(), b: b.each_ref(), c: so_far.each_ref() }, &mut sums) {
            return (plan.fallback)(plan, file, slots);
        }
    }
    for (sums, accumulators) in sums.iter_mut().zip(given.c) {
        for (sum, &accumulator) in sums.iter_mut().zip(accumulators) {
            *sum = match plan.form.d {
                Element::F16 => add_halves(*sum, accumulator) | add_halves(*sum >> 16, accumulator >> 16) << 16,
                _ => add_singles(*sum, accumulator),
            };
        }
    }
    let tile = *tile;
    write(file, slots, &tile, &sums);
}

fn add_singles(left: u32, right: u32) -> u32 {
    let sum = f32::from_bits(left) + f32::from_bits(right);
    if sum.is_nan() { NAN_SINGLE } else { sum.to_bits() }
}

/// The sum of two numbers of half precision, in the low half; single precision has enough bits to round it once more.
fn add_halves(left: u32, right: u32) -> u32 {
    single_to_half(half_to_single(left as u16) + half_to_single(right as u16)).into()
}

/// Two of the four elements of 8 bits in each lane, as half precision.
fn halves(register: &Register, element: Element, half: u32) -> Register {
    let table = &E4M3_TO_HALF;
    register.map(|word| {
        let two = word >> (16 * half);
        match element {
            Element::E5m2 => (two & 0xFF) << 8 | (two & 0xFF00) << 16,
            _ => u32::from(table[(two & 0xFF) as usize]) | u32::from(table[(two >> 8 & 0xFF) as usize]) << 16,
        }
    })
}
