//! Accesses to a thread's own memory, and to the parameters of the entry.

use gpuemu_model::emulation::AccessFault;

use super::block::Block;
use super::launch::POISON;
use super::transfer::{Access, Run, aligned, verb};
use super::warp::Warp;
use super::worker::Worker;
use crate::checks::Sighting;
use crate::memory::Space;
use crate::registers::LANES;

impl Worker<'_, '_> {
    pub(super) fn read_own(
        &mut self,
        block: &Block,
        warp: &mut Warp,
        space: Space,
        all: &[u64; LANES],
        access: Access,
        active: u32,
    ) {
        let bytes = access.lane_bytes;
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            let parameters = self.context.parameters.as_slice();
            let from = match space {
                Space::Parameter => {
                    usize::try_from(all[lane]).ok().and_then(|start| parameters.get(start..start.checked_add(bytes)?))
                }
                _ => warp.local.get(lane, all[lane], bytes),
            };
            let stage: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
            let into = &mut stage[lane * bytes..][..bytes];
            let run = Run { first: lane, lanes: 1, start: all[lane] };
            match from {
                Some(from) if aligned(all[lane], Access { alignment: access.alignment.min(16), ..access }) => {
                    into.copy_from_slice(from);
                    if space == Space::Local
                        && self.context.checks.init
                        && !warp.local.is_written(lane, all[lane], bytes)
                    {
                        self.own_fault(block, warp, run, access, space, AccessFault::Uninitialised);
                    }
                }
                Some(_) => {
                    into.fill(POISON);
                    self.own_fault(block, warp, run, access, space, AccessFault::Misaligned);
                }
                None => {
                    into.fill(POISON);
                    self.own_fault(block, warp, run, access, space, AccessFault::OutOfBounds);
                }
            }
        }
    }

    pub(super) fn write_own(
        &mut self,
        block: &Block,
        warp: &mut Warp,
        space: Space,
        all: &[u64; LANES],
        access: Access,
        active: u32,
    ) {
        let bytes = access.lane_bytes;
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            let run = Run { first: lane, lanes: 1, start: all[lane] };
            if space == Space::Parameter {
                self.own_fault(block, warp, run, access, space, AccessFault::ReadOnly);
                continue;
            }
            let from = &bytemuck::cast_slice::<u64, u8>(self.stage.as_slice())[lane * bytes..][..bytes];
            if !aligned(all[lane], Access { alignment: access.alignment.min(16), ..access }) {
                self.own_fault(block, warp, run, access, space, AccessFault::Misaligned);
            } else if !warp.local.set(lane, all[lane], from) {
                self.own_fault(block, warp, run, access, space, AccessFault::OutOfBounds);
            }
        }
    }

    fn own_fault(&mut self, block: &Block, warp: &Warp, run: Run, access: Access, space: Space, fault: AccessFault) {
        let thread = self.thread_place(block.place, warp.number, run.first as u32);
        let (verb, bytes, address) = (verb(access.write), access.lane_bytes, run.start);
        let size = if space == Space::Local { warp.local.frame() } else { self.context.parameters.len() };
        let name = space.name();
        let message = match fault {
            AccessFault::Uninitialised => format!("read of {name} memory at {address:#x}, which nothing has written"),
            AccessFault::Misaligned => {
                format!("{verb} of {bytes} bytes of {name} memory at {address:#x}, which is not a multiple of {bytes}")
            }
            AccessFault::ReadOnly => format!("{verb} of {name} memory, which may only be read"),
            _ => format!("{verb} of {bytes} bytes of {name} memory at {address:#x}; the thread has {size} bytes of it"),
        };
        self.collector.note(block.number, Some(access.step), fault, None, || Sighting {
            fault,
            message,
            step: Some(access.step),
            thread: Some(thread),
            address: Some(address),
            buffer: Some(format!("{name} memory")),
            offset: Some(address as i64),
            other: None,
        });
    }
}
