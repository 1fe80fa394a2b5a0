//! Tiles of 16 by 8 results, which most products of floating-point numbers are made of, and which are computed whole.

use super::element::{E4M3_TO_HALF, Element};
use super::model::TensorCore;
use super::plan::{Plan, Run};
use super::product::{Family, MatrixProduct};
use crate::registers::{LANES, Level, RegisterFile, Slot};

/// The lanes of a register.
pub(super) type Register = [u32; LANES];

/// Registers of the operands of a tile, as `mma.sync` has them. Those that the shape does not need are not looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileOperands<'a> {
    pub(super) a: [&'a Register; 4],
    pub(super) b: [&'a Register; 2],
    pub(super) c: [&'a Register; 4],
}

/// Computes a tile; none if there is something in it that needs the slow way.
pub(super) type Compute = fn(&TileOperands) -> Option<[Register; 4]>;

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
        // Two tiles of half precision, then C. Their own way of adding up makes nothing of this for IEEE arithmetic.
        let by_halves = form.k == 32 && form.d == Element::F32 && model != TensorCore::Ieee;
        let compute = kernel(Element::F16, 16, Element::F32, model, level).filter(|_| by_halves)?;
        return Some(Chosen { tiles, compute, run: run_eight_bits });
    }
    let compute = kernel(form.a, form.k, form.d, model, level)?;
    Some(Chosen { tiles, compute, run: run_tiles })
}

#[cfg(target_arch = "x86_64")]
fn kernel(operand: Element, k: usize, result: Element, model: TensorCore, level: Level) -> Option<Compute> {
    super::tile_x86::kernel(operand, k, result, model, level)
}

#[cfg(not(target_arch = "x86_64"))]
fn kernel(_: Element, _: usize, _: Element, _: TensorCore, _: Level) -> Option<Compute> {
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

fn operands<'a>(file: &'a RegisterFile, slots: &[Slot], tile: &TilePlan) -> TileOperands<'a> {
    let register = |place: u8| file.b32(slots[usize::from(place)]);
    TileOperands { a: tile.a.map(register), b: tile.b.map(register), c: tile.c.map(register) }
}

/// Writes the results of tiles. Registers that a tile does not have come as repetitions of its last, from the back, so
/// that the last is written by itself.
fn write(file: &mut RegisterFile, slots: &[Slot], tile: &TilePlan, results: &[Register; 4]) {
    for (&place, register) in tile.d.iter().zip(results).rev() {
        *file.b32_mut(slots[usize::from(place)]) = *register;
    }
}

fn run_tiles(plan: &Plan, file: &mut RegisterFile, slots: &[Slot]) {
    let Some(compute) = plan.compute_tile else { return (plan.fallback)(plan, file, slots) };
    let mut results = [[[0; LANES]; 4]; MOST_TILES];
    for (result, tile) in results.iter_mut().zip(&plan.tiles) {
        match compute(&operands(file, slots, tile)) {
            Some(computed) => *result = computed,
            None => return (plan.fallback)(plan, file, slots),
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
        match compute(&TileOperands { a: a.each_ref(), b: b.each_ref(), c: sums.each_ref() }) {
            Some(computed) => sums = computed,
            None => return (plan.fallback)(plan, file, slots),
        }
    }
    for (sums, accumulators) in sums.iter_mut().zip(given.c) {
        for (sum, &accumulator) in sums.iter_mut().zip(accumulators) {
            let added = f32::from_bits(*sum) + f32::from_bits(accumulator);
            *sum = if added.is_nan() { super::element::NAN_SINGLE } else { added.to_bits() };
        }
    }
    let tile = *tile;
    write(file, slots, &tile, &sums);
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
