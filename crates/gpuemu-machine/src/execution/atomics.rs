//! Atomic operations, lane by lane.

use gpuemu_model::emulation::AccessFault;

use super::block::Block;
use super::shared_access::shared_run;
use super::transfer::{Access, Run, addresses, lanes_of, record_of, set_lanes};
use super::warp::Warp;
use super::worker::Worker;
use crate::checks::Sighting;
use crate::checks::shared_shadow::Stamp;
use crate::decode::instruction::Atomic;
use crate::memory::address::resolve;
use crate::memory::{Allocation, Space};
use crate::registers::LANES;

impl Worker<'_, '_> {
    pub(super) fn atomic(&mut self, block: &mut Block, warp: &mut Warp, atomic: &Atomic, step: u32, active: u32) {
        let bytes = usize::from(atomic.element_bytes);
        let count = atomic.operands.len();
        let all = addresses(warp, &atomic.address);
        let access = Access {
            step,
            lane_bytes: bytes * count,
            alignment: (bytes * count) as u64,
            write: true,
            ordering: atomic.ordering,
        };
        let operands: Vec<[u64; LANES]> =
            atomic.operands.iter().map(|(slot, width)| lanes_of(&warp.file, *slot, *width)).collect();
        let swap = atomic.swap.map_or([0; LANES], |(slot, width)| lanes_of(&warp.file, slot, width));
        let mut old: Vec<[u64; LANES]> = vec![[0; LANES]; count];
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            let (space, address) = match atomic.address.space {
                Space::Generic => resolve(all[lane]),
                space => (space, all[lane]),
            };
            for element in 0..count {
                let run = Run { first: lane, lanes: 1, start: address + (element * bytes) as u64 };
                let one = Access { lane_bytes: bytes, alignment: bytes as u64, ..access };
                let function = atomic.functions[usize::from(space == Space::Shared)];
                let change = |value: u64| function(value, operands[element][lane], swap[lane]);
                old[element][lane] = match space {
                    Space::Shared => self.atomic_shared(block, warp.number, run, one, change),
                    Space::Global => self.atomic_global(block, warp.number, run, one, change),
                    _ => {
                        self.atomic_elsewhere(block, warp.number, run, one, space);
                        0
                    }
                };
            }
        }
        for (values, result) in old.iter().zip(&atomic.results) {
            if let Some((slot, width)) = result {
                set_lanes(&mut warp.file, *slot, *width, values, active);
            }
        }
        self.order_after_read(block, warp.number, &all, active, atomic.ordering);
        self.order_before_write(block, warp.number, &all, active, atomic.ordering);
    }

    fn atomic_global(
        &mut self,
        block: &mut Block,
        warp: u32,
        run: Run,
        access: Access,
        change: impl Fn(u64) -> u64,
    ) -> u64 {
        let context = self.context;
        let found = context.memory.near(run.start);
        let place = found.and_then(|allocation| allocation.inside(run.start, access.lane_bytes as u64));
        let aligned = run.start & (access.alignment - 1) == 0;
        let cells = found.and_then(Allocation::writable);
        let (Some(allocation), Some(cells), Some(offset), true) = (found, cells, place, aligned) else {
            self.bad_global(block, warp, run, access, found);
            return 0;
        };
        if let Some(written) = &allocation.written {
            if context.checks.init && !written.all_set(offset, access.lane_bytes) {
                self.uninitialised_global(block, warp, run, access, allocation);
            }
            written.set(offset, access.lane_bytes);
        }
        if context.checks.race {
            let record = record_of(block, warp, run, access);
            self.log.push(record, &[]);
        }
        cells.update(offset, access.lane_bytes, change)
    }

    fn atomic_shared(
        &mut self,
        block: &mut Block,
        warp: u32,
        run: Run,
        access: Access,
        change: impl Fn(u64) -> u64,
    ) -> u64 {
        let Some(target) = shared_run(block, run, access) else {
            self.bad_shared(block, warp, run, access);
            return 0;
        };
        let offset = target.offset;
        let mut word = [0; 8];
        word[..access.lane_bytes].copy_from_slice(&block.shared[offset..offset + access.lane_bytes]);
        let old = u64::from_le_bytes(word);
        if self.context.checks.race || self.context.checks.init {
            let stamp = Stamp::new(warp, access.step, &block.clocks);
            let steps = &self.context.program.steps;
            let strong =
                |step: u32| steps.get(step as usize).is_some_and(|decoded| super::transfer::is_strong(&decoded.action));
            let conflict = block.shadow.atomic(target, stamp, &block.clocks, strong);
            if let Some(conflict) = conflict {
                self.shared_conflict(block, warp, run, access, conflict);
            }
        }
        let new = change(old).to_le_bytes();
        block.shared[offset..offset + access.lane_bytes].copy_from_slice(&new[..access.lane_bytes]);
        old
    }

    fn atomic_elsewhere(&mut self, block: &Block, warp: u32, run: Run, access: Access, space: Space) {
        let thread = self.thread_place(block.place, warp, run.first as u32);
        self.collector.note(block.number, Some(access.step), AccessFault::Unmapped, None, || Sighting {
            fault: AccessFault::Unmapped,
            message: format!("an atomic operation in {} memory, where there are none", space.name()),
            step: Some(access.step),
            thread: Some(thread),
            address: Some(run.start),
            buffer: Some(format!("{} memory", space.name())),
            offset: None,
            other: None,
        });
    }
}
