//! Functions of the system that kernels call: printing and assertions.

use std::cell::Cell;

use gpuemu_model::emulation::AccessFault;

use super::block::Block;
use super::launch::LaunchError;
use super::print::format_text;
use super::warp::Warp;
use super::worker::Worker;
use crate::checks::Sighting;
use crate::decode::instruction::{Frame, SystemCall, SystemFunction};
use crate::memory::Space;
use crate::memory::address::resolve;
use crate::registers::LANES;

/// Most bytes of a text that a kernel names.
const MOST_TEXT: usize = 1 << 16;
/// Most bytes that a block prints; the rest is left out, and a line says so.
pub(super) const MOST_PRINTED: usize = 1 << 20;
/// Instructions that a text counts as, of one lane: it takes as long as many.
const PRINT_STEPS: u64 = 256;

impl Worker<'_, '_> {
    pub(super) fn system(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        call: &SystemCall,
        step: u32,
        active: u32,
    ) -> Result<(), LaunchError> {
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            let argument = |place: usize| {
                let frame = call.arguments.get(place).copied().unwrap_or(Frame { offset: 0, bytes: 0 });
                let mut word = [0; 8];
                let bytes = (frame.bytes as usize).min(8);
                if let Some(from) = warp.local.get(lane, u64::from(frame.offset), bytes) {
                    word[..bytes].copy_from_slice(from);
                }
                u64::from_le_bytes(word)
            };
            match call.function {
                SystemFunction::Print => {
                    self.since_last_end += PRINT_STEPS;
                    if block.printed.len() > MOST_PRINTED {
                        continue;
                    }
                    let format = self.text(block, warp, lane, argument(0));
                    let from = argument(1);
                    let unwritten = Cell::new(None);
                    let read = |offset: u64, bytes: usize| {
                        let address = from.wrapping_add(offset);
                        let (space, there) = resolve(address);
                        if space == Space::Local && !warp.local.is_written(lane, there, bytes) {
                            unwritten.set(Some(there));
                        }
                        self.bytes(block, warp, lane, address, bytes)
                    };
                    let text = format_text(&format, read, |address| self.text(block, warp, lane, address));
                    if let Some(address) = unwritten.get().filter(|_| self.context.checks.init) {
                        self.unwritten_argument(block, warp.number, lane, step, address);
                    }
                    let count = text.len() as u32;
                    block.printed.push_str(&text);
                    if block.printed.len() > MOST_PRINTED {
                        block.printed.push_str("\n(the rest of what this block printed is left out)\n");
                    }
                    if let Some(result) = call.result {
                        warp.local.set(lane, u64::from(result.offset), &count.to_le_bytes());
                    }
                }
                SystemFunction::AssertFail => {
                    let message = self.text(block, warp, lane, argument(0));
                    let file = self.text(block, warp, lane, argument(1));
                    let line = argument(2) as u32;
                    let function = self.text(block, warp, lane, argument(3));
                    return Err(LaunchError::Assertion {
                        message: format!("{message}, at {file}:{line} in {function}"),
                        thread: self.thread_place(block.place, warp.number, lane as u32),
                    });
                }
            }
        }
        Ok(())
    }

    /// Something is printed that nothing wrote.
    fn unwritten_argument(&mut self, block: &Block, warp: u32, lane: usize, step: u32, address: u64) {
        let thread = self.thread_place(block.place, warp, lane as u32);
        self.collector.note(block.number, Some(step), AccessFault::Uninitialised, None, || Sighting {
            fault: AccessFault::Uninitialised,
            message: format!("an argument of printf at {address:#x} of local memory, which nothing has written"),
            step: Some(step),
            thread: Some(thread),
            address: Some(address),
            buffer: Some("local memory".to_string()),
            offset: Some(address as i64),
            other: None,
        });
    }

    /// Bytes at a generic address, as a thread sees them.
    fn bytes(&self, block: &Block, warp: &Warp, lane: usize, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let (space, there) = resolve(address);
        match space {
            Space::Local => warp.local.get(lane, there, bytes).map(<[u8]>::to_vec),
            Space::Shared => {
                let start = usize::try_from(there).ok()?;
                block.shared.get(start..start.checked_add(bytes)?).map(<[u8]>::to_vec)
            }
            _ => {
                let allocation = self.context.memory.near(address)?;
                let offset = allocation.inside(address, bytes as u64)?;
                let mut found = vec![0; bytes];
                allocation.bytes.read(offset, &mut found);
                Some(found)
            }
        }
    }

    fn text(&self, block: &Block, warp: &Warp, lane: usize, address: u64) -> String {
        if resolve(address).0 == Space::Global {
            return self.context.memory.text(address, MOST_TEXT).unwrap_or_else(|| "(null)".to_string());
        }
        let bytes = (0..MOST_TEXT as u64).map_while(|place| {
            self.bytes(block, warp, lane, address.wrapping_add(place), 1).and_then(|byte| byte.first().copied())
        });
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
