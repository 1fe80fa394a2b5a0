//! A product whose every choice is made: which registers hold which element, and what computes it.

use super::element::Element;
use super::fragment::{Layout, Matrix};
use super::model::TensorCore;
use super::product::{Family, MatrixProduct};
use super::scalar;
use super::tile::{self, TilePlan};
use crate::registers::{LANES, Level, RegisterFile, Slot};

/// A product of matrices, ready to be executed.
#[derive(Debug, Clone)]
pub struct PreparedProduct {
    run: Run,
    plan: Plan,
}

pub(super) type Run = fn(&Plan, &mut RegisterFile, &[Slot]);

/// Where an element, or a register full of them, lies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Holder {
    /// The place of the register's slot among all slots of the instruction.
    pub(super) slot: u8,
    pub(super) lane: u8,
    pub(super) shift: u8,
}

/// What a computation needs to know.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) form: MatrixProduct,
    /// Products that are computed side by side.
    pub(super) products: usize,
    /// Columns of A and rows of B, in units of what a holder holds.
    pub(super) depth: usize,
    /// Elements of A, row by row.
    pub(super) a: Vec<Holder>,
    /// Elements of B, column by column.
    pub(super) b: Vec<Holder>,
    /// Elements of C, row by row.
    pub(super) c: Vec<Holder>,
    /// Elements of D, row by row.
    pub(super) d: Vec<Holder>,
    /// Places along k that are added at once, one block after the other.
    pub(super) blocks: Vec<Vec<usize>>,
    /// Bits that addends keep below single precision.
    pub(super) extra_bits: u32,
    /// Whether C is added at the end, and does not take part in the first block.
    pub(super) accumulator_last: bool,
    /// Tiles of 16 by 8 results that a faster way computes, where there is one.
    pub(super) tiles: Vec<TilePlan>,
    pub(super) compute_tile: Option<tile::Compute>,
    /// What computes it when that way cannot.
    pub(super) fallback: Run,
}

impl PreparedProduct {
    pub(super) fn new(form: MatrixProduct, model: TensorCore, level: Level) -> Self {
        let level = level.min(Level::detect());
        let fallback = scalar::choose(&form, model, level);
        let mut plan = Plan::new(form, model, fallback);
        let run = match tile::choose(&form, model, level) {
            Some(chosen) => {
                plan.tiles = chosen.tiles;
                plan.compute_tile = Some(chosen.compute);
                chosen.run
            }
            None => fallback,
        };
        Self { run, plan }
    }

    /// Computes it: `slots` are the registers of D, A, B and C, in this order. D may lie in the registers of the others.
    /// All lanes take part. Slots that are missing or lie outside of the file are a mistake of the decoder and panic.
    #[inline]
    pub fn execute(&self, file: &mut RegisterFile, slots: &[Slot]) {
        (self.run)(&self.plan, file, slots);
    }
}

impl Plan {
    fn new(form: MatrixProduct, model: TensorCore, fallback: Run) -> Self {
        let layouts = [Matrix::D, Matrix::A, Matrix::B, Matrix::C].map(|matrix| form.layout(matrix));
        let mut first = 0;
        let [d, a, b, c] = layouts.map(|layout| {
            // Integers are taken a register at a time: those of one register follow one another along k.
            let together = if is_integer(layout.element) { layout.element.in_register() } else { 1 };
            let held = holders(&layout, first, together);
            first += layout.registers();
            held
        });
        let together = if is_integer(form.a) { form.a.in_register() } else { 1 };
        let products = d.len() / (form.m * form.n);
        let (blocks, extra_bits) = blocks(&form, model);
        let accumulator_last = matches!(form.a, Element::E4m3 | Element::E5m2);
        Self {
            form,
            products,
            depth: form.k / together,
            a,
            b,
            c,
            d,
            blocks,
            extra_bits,
            accumulator_last,
            tiles: Vec::new(),
            compute_tile: None,
            fallback,
        }
    }
}

fn is_integer(element: Element) -> bool {
    matches!(element, Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1)
}

/// Who holds each element, or each run of `together` elements along k; those of B column by column.
fn holders(layout: &Layout, first_slot: usize, together: usize) -> Vec<Holder> {
    let (rows, columns) = layout.extent();
    let products = match layout.family {
        Family::MmaQuadPairs { .. } => 4,
        _ => 1,
    };
    let mut held = vec![Holder::default(); products * rows * columns / together];
    let bits = layout.element.bits() as usize;
    // Of elements that lie in several registers the chips take the first.
    for register in (0..layout.registers()).rev() {
        for lane in 0..LANES {
            for part in (0..layout.element.in_register()).step_by(together) {
                let place = layout.place(lane, register, part);
                let index = match layout.matrix {
                    Matrix::B => (place.product * columns + place.column) * (rows / together) + place.row / together,
                    _ => (place.product * rows + place.row) * (columns / together) + place.column / together,
                };
                if let Some(holder) = held.get_mut(index) {
                    *holder =
                        Holder { slot: (first_slot + register) as u8, lane: lane as u8, shift: (part * bits) as u8 };
                }
            }
        }
    }
    held
}

/// Which places along k are added at once.
fn blocks(form: &MatrixProduct, model: TensorCore) -> (Vec<Vec<usize>>, u32) {
    let Some(rule) = model.rule() else { return (Vec::new(), 0) };
    // The compiler makes two products of half precision of one of 8 bits: of the first two of every four elements, and of
    // the others. A100 has none; here it computes them as it would those of half precision.
    let eight_bits = matches!(form.a, Element::E4m3 | Element::E5m2);
    let (first, second): (Vec<_>, Vec<_>) = (0..form.k).partition(|place| !eight_bits || place % 4 < 2);
    let blocks = [first, second].iter().flat_map(|half| half.chunks(rule.block(form))).map(<[usize]>::to_vec).collect();
    (blocks, rule.extra_bits)
}
