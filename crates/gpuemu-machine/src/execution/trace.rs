//! What one thread does, instruction by instruction.

use super::block::Block;
use super::warp::Warp;
use super::worker::Worker;
use crate::registers::{LANES, RegisterWidth};

impl Worker<'_, '_> {
    /// The lane of a warp that is traced, if it is one of this warp's.
    pub(super) fn traced_lane(&self, block: &Block, warp: u32) -> Option<u32> {
        let trace =
            self.context.trace.filter(|trace| trace.block == block.place && self.trace.len() < trace.most_lines)?;
        let [width, height, _] = self.context.block;
        let [x, y, z] = trace.thread;
        let number = x + width * (y + height * z);
        (number / LANES as u32 == warp).then_some(number % LANES as u32)
    }

    /// Notes an instruction that was just done, and what it wrote.
    pub(super) fn trace_step(&mut self, warp: &Warp, step: u32, lane: u32) {
        if self.context.trace.is_none_or(|trace| self.trace.len() >= trace.most_lines) {
            return;
        }
        let places = &self.context.program.places;
        let place = places.place(step);
        let lane = lane as usize % LANES;
        let values = places.written(step).iter().map(|(name, slot, width)| match width {
            RegisterWidth::Predicate => format!("{name} = {}", warp.file.predicate(*slot) >> lane & 1 == 1),
            RegisterWidth::B16 => format!("{name} = {:#06x}", warp.file.b16(*slot)[lane]),
            RegisterWidth::B32 => {
                let bits = warp.file.b32(*slot)[lane];
                format!("{name} = {bits:#010x} ({}, {:e})", bits as i32, f32::from_bits(bits))
            }
            RegisterWidth::B64 => format!("{name} = {:#018x}", warp.file.b64(*slot)[lane]),
        });
        let values: Vec<String> = values.collect();
        let values = if values.is_empty() { String::new() } else { format!("  ; {}", values.join(", ")) };
        self.trace.push(format!("{}: {}{values}", place.ptx_line, place.instruction));
    }
}
