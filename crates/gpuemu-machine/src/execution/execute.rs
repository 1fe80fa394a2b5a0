//! One instruction after the other, for the lanes of a warp that are at the same place.

use gpuemu_model::emulation::AccessFault;

use super::block::{BARRIERS, Block};
use super::launch::LaunchError;
use super::warp::{Fragment, Wait, Warp};
use super::worker::Worker;
use crate::checks::{Flow, Sighting};
use crate::decode::instruction::{Action, Barrier, BarrierAction, Call};
use crate::memory::address::resolve;
use crate::registers::{LANES, RegisterWidth, Slot};

/// Instructions that lanes furthest behind may run before others of their warp have a turn: they may be waiting for them.
const LANES_TURN: u32 = 1024;

/// What an instruction means for where lanes go on.
pub(super) enum Next {
    Following,
    /// Elsewhere: the fragment was changed, and the next is to be chosen.
    Choose,
}

impl Worker<'_, '_> {
    /// Lets a warp go on until it waits, ends, or has had its turn. Gives how many instructions it ran.
    pub(super) fn warp_turn(&mut self, block: &mut Block, warp: &mut Warp, budget: u64) -> Result<u64, LaunchError> {
        self.level.run(
            #[inline(always)]
            || self.run_warp(block, warp, budget),
        )
    }

    #[inline(always)]
    fn run_warp(&mut self, block: &mut Block, warp: &mut Warp, budget: u64) -> Result<u64, LaunchError> {
        let context = self.context;
        let steps = context.program.steps.as_slice();
        let mut spent = 0;
        let traced = self.traced_lane(block, warp.number);
        while spent < budget {
            let Some(place) = warp.next() else {
                // Lanes that wait for others of their warp which cannot come go on without them.
                if spent == 0 && self.force_members(block, warp) {
                    continue;
                }
                break;
            };
            // Lanes further behind than the others may have to wait for them: they take turns.
            let place = self.take_turns(warp, place);
            let Fragment { lanes, mut step, .. } = warp.fragments[place];
            // Where other lanes are, these go on with them.
            let others = warp.fragments.iter().map(|fragment| fragment.step).filter(|other| *other > step);
            let stop_at = if traced.is_some() { step + 1 } else { others.min().unwrap_or(u32::MAX) };
            let alone = warp.fragments.len() == 1;
            let before = spent;
            while let Some(decoded) = steps.get(step as usize) {
                let mut active = lanes;
                if let Some(guard) = decoded.guard {
                    let holds = warp.file.predicate(guard.slot);
                    active &= if guard.negated { !holds } else { holds };
                }
                spent += 1;
                block.lane_operations += u64::from(active.count_ones());
                if let Some(taint) = &mut self.taint {
                    let (reads, writes) = &context.program.uses[step as usize];
                    let by = (block.number, warp.number, step);
                    taint.step(by, active, reads, writes, flow_of(&decoded.action));
                }
                match &decoded.action {
                    Action::Pure(pure) => {
                        if active != 0 {
                            (pure.execute)(&mut warp.file, pure, active);
                        }
                        step += 1;
                    }
                    Action::Branch(target) if active == lanes => {
                        let backwards = *target <= step;
                        step = *target;
                        if backwards && (!alone || spent >= budget) {
                            warp.fragments[place].step = step;
                            break;
                        }
                    }
                    Action::Branch(_) if active == 0 => step += 1,
                    Action::Branch(target) => {
                        let fragment = &mut warp.fragments[place];
                        fragment.lanes = active;
                        fragment.step = *target;
                        let calls = fragment.calls.clone();
                        let lanes = lanes & !active;
                        warp.fragments.push(Fragment { step: step + 1, lanes, wait: Wait::Ready, calls });
                        break;
                    }
                    _ if active == 0 => step += 1,
                    action => {
                        warp.fragments[place].step = step;
                        block.instance = block.instance.wrapping_add(1);
                        match self.act(block, warp, place, action, step, active)? {
                            Next::Following => step += 1,
                            Next::Choose => break,
                        }
                    }
                }
                if step >= stop_at {
                    warp.fragments[place].step = step;
                    break;
                }
            }
            if let Some(lane) = traced.filter(|lane| lanes >> lane & 1 == 1) {
                self.trace_step(warp, stop_at - 1, lane);
            }
            warp.turn += (spent - before) as u32;
            block.instructions += spent - before;
        }
        Ok(spent)
    }

    fn take_turns(&self, warp: &mut Warp, place: usize) -> usize {
        if warp.fragments.len() == 1 {
            warp.turn = 0;
            return place;
        }
        if warp.turn < LANES_TURN {
            return place;
        }
        // The others, from the nearest on, for as long as these lanes had.
        let step = warp.fragments[place].step;
        let other = warp
            .fragments
            .iter()
            .enumerate()
            .filter(|(other, fragment)| *other != place && fragment.wait == Wait::Ready && fragment.step >= step)
            .min_by_key(|(_, fragment)| fragment.step)
            .map(|(other, _)| other);
        if warp.turn >= 2 * LANES_TURN {
            warp.turn = 0;
        }
        other.unwrap_or(place)
    }

    fn force_members(&mut self, block: &Block, warp: &mut Warp) -> bool {
        let Some(place) = warp.fragments.iter().position(|fragment| fragment.wait == Wait::Members) else {
            return false;
        };
        let (step, lanes) = (warp.fragments[place].step, warp.fragments[place].lanes);
        let thread = self.thread_place(block.place, warp.number, lanes.trailing_zeros());
        if self.context.checks.sync {
            let live = warp.live;
            self.collector.note(block.number, Some(step), AccessFault::MemberMask, None, || Sighting {
                fault: AccessFault::MemberMask,
                message: format!(
                    "the member mask names lanes that do not come: lanes {lanes:#010x} are here, {live:#010x} have not ended"
                ),
                step: Some(step),
                thread: Some(thread),
                address: None,
                buffer: None,
                offset: None,
                other: None,
            });
        }
        warp.fragments[place].wait = Wait::Ready;
        warp.forced = true;
        true
    }

    /// Everything but what is done in registers, and branches.
    #[inline(always)]
    fn act(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        place: usize,
        action: &Action,
        step: u32,
        active: u32,
    ) -> Result<Next, LaunchError> {
        match action {
            Action::Pure(pure) => (pure.execute)(&mut warp.file, pure, active),
            Action::Branch(_) | Action::Nothing => {}
            Action::BranchTable(index, targets) => return Ok(self.branch_table(warp, place, *index, targets, active)),
            Action::Exit => {
                self.end_lanes(block, warp, place, active);
                return Ok(Next::Choose);
            }
            Action::Return => return Ok(self.return_from(block, warp, place, active)),
            Action::Trap => {
                let place = self.context.program.places.place(step);
                let thread = self.thread_place(block.place, warp.number, active.trailing_zeros());
                return Err(LaunchError::Trap { place, thread });
            }
            Action::Call(call) => return Ok(self.call(warp, place, call, step, active)),
            Action::System(call) => self.system(block, warp, call, step, active)?,
            Action::Load(transfer) => self.load(block, warp, transfer, step, active),
            Action::Store(transfer) => self.store(block, warp, transfer, step, active),
            Action::Atomic(atomic) => self.atomic(block, warp, atomic, step, active),
            Action::CopyAsync(copy) => self.copy_async(block, warp, copy, step, active)?,
            Action::CommitGroup => warp.copies.commit(active),
            Action::WaitGroup(left) => self.wait_group(block, warp, *left, active),
            Action::Barrier(barrier) => return Ok(self.barrier(block, warp, place, barrier, step, active)),
            Action::Fence(fence) => {
                if !fence.block_only {
                    block.clocks.fence(warp.number);
                }
            }
            Action::WarpBarrier(_)
            | Action::Shuffle(_)
            | Action::Vote(_)
            | Action::Match(_)
            | Action::Reduce(_)
            | Action::Elect(..) => return Ok(self.together(block, warp, place, action, step, active)),
            Action::ActiveMask(result) => warp.file.set_b32(*result, &[active; LANES], active),
            Action::Product(product) => product.product.execute(&mut warp.file, &product.slots),
            Action::MatrixLoad(transfer) => self.matrix_load(block, warp, transfer, step, active),
            Action::MatrixStore(transfer) => self.matrix_store(block, warp, transfer, step, active),
            Action::FragmentLoad(transfer) => self.fragment_load(block, warp, transfer, step, active),
            Action::FragmentStore(transfer) => self.fragment_store(block, warp, transfer, step, active),
            Action::Clock(result, width) => {
                // Time is counted in instructions: the same for every run.
                let now = block.instructions;
                match width {
                    RegisterWidth::B64 => warp.file.set_b64(*result, &[now; LANES], active),
                    _ => warp.file.set_b32(*result, &[now as u32; LANES], active),
                }
            }
            Action::IsSpace(question) => {
                let addresses = addresses_in(warp, question.address);
                let mut holds = 0;
                for (lane, address) in addresses.iter().enumerate() {
                    holds |= u32::from(resolve(*address).0 == question.space) << lane;
                }
                warp.file.set_predicate(question.result, holds, active);
            }
        }
        Ok(Next::Following)
    }

    fn branch_table(&mut self, warp: &mut Warp, place: usize, index: Slot, targets: &[u32], active: u32) -> Next {
        let indices = *warp.file.b32(index);
        let fragment = warp.fragments.swap_remove(place);
        let mut left = fragment.lanes;
        for (number, target) in targets.iter().enumerate() {
            let lanes = (0..LANES).filter(|lane| active >> lane & 1 == 1 && indices[*lane] as usize == number);
            let lanes = lanes.fold(0, |lanes, lane| lanes | 1 << lane);
            if lanes != 0 {
                warp.fragments.push(Fragment { step: *target, lanes, ..fragment.clone() });
                left &= !lanes;
            }
        }
        // An index beyond the list is not defined; the last target is taken.
        let beyond = left & active;
        if let Some(target) = targets.last().filter(|_| beyond != 0) {
            warp.fragments.push(Fragment { step: *target, lanes: beyond, ..fragment.clone() });
        }
        if left & !active != 0 {
            warp.fragments.push(Fragment { step: fragment.step + 1, lanes: left & !active, ..fragment });
        }
        Next::Choose
    }

    fn end_lanes(&mut self, block: &mut Block, warp: &mut Warp, place: usize, active: u32) {
        // What these lanes copied arrives, though nobody of them will see it.
        self.wait_group(block, warp, None, active);
        warp.live &= !active;
        let fragment = &mut warp.fragments[place];
        fragment.lanes &= !active;
        fragment.step += 1;
        if fragment.lanes == 0 {
            warp.fragments.swap_remove(place);
        }
    }

    fn call(&mut self, warp: &mut Warp, place: usize, call: &Call, step: u32, active: u32) -> Next {
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            for (from, to) in &call.arguments {
                warp.local.copy(lane, from.offset, to.offset, from.bytes.min(to.bytes) as usize);
            }
        }
        let fragment = &mut warp.fragments[place];
        let left = fragment.lanes & !active;
        let outside = Fragment { step: step + 1, lanes: left, wait: Wait::Ready, calls: fragment.calls.clone() };
        fragment.lanes = active;
        fragment.calls.push(step);
        fragment.step = call.target;
        if left != 0 {
            warp.fragments.push(outside);
        }
        Next::Choose
    }

    fn return_from(&mut self, block: &mut Block, warp: &mut Warp, place: usize, active: u32) -> Next {
        let fragment = &mut warp.fragments[place];
        let left = fragment.lanes & !active;
        let inside =
            Fragment { step: fragment.step + 1, lanes: left, wait: Wait::Ready, calls: fragment.calls.clone() };
        let Some(caller) = fragment.calls.pop() else {
            self.end_lanes(block, warp, place, active);
            return Next::Choose;
        };
        fragment.lanes = active;
        fragment.step = caller + 1;
        if left != 0 {
            warp.fragments.push(inside);
        }
        if let Action::Call(call) = &self.context.program.steps[caller as usize].action {
            for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
                for (from, to) in &call.results {
                    warp.local.copy(lane, from.offset, to.offset, from.bytes.min(to.bytes) as usize);
                }
            }
        }
        Next::Choose
    }

    fn barrier(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        place: usize,
        barrier: &Barrier,
        step: u32,
        active: u32,
    ) -> Next {
        let lane = active.trailing_zeros();
        let number = warp.file.b32(barrier.number)[lane as usize];
        let expected = barrier.threads.map(|threads| warp.file.b32(threads)[lane as usize]);
        let thread = self.thread_place(block.place, warp.number, lane);
        let (block_number, checks) = (block.number, self.context.checks);
        let mut note = |always: bool, fault: AccessFault, message: String| {
            if always || checks.sync {
                self.collector.note(block_number, Some(step), fault, None, || Sighting {
                    fault,
                    message,
                    step: Some(step),
                    thread: Some(thread),
                    address: None,
                    buffer: None,
                    offset: None,
                    other: None,
                });
            }
        };
        if barrier.aligned && active != warp.live {
            note(
                false,
                AccessFault::DivergentBarrier,
                format!(
                    "only lanes {active:#010x} of the warp's {:#010x} came to this barrier, which all must reach together",
                    warp.live
                ),
            );
        }
        if expected.is_some_and(|expected| expected % LANES as u32 != 0 || expected == 0) {
            let count = expected.unwrap_or_default();
            note(
                false,
                AccessFault::BarrierCount,
                format!("a barrier for {count} threads: it must be a multiple of 32"),
            );
        }
        let Some(state) = block.barriers.get_mut(number as usize) else {
            // There is nothing to wait at: whatever follows is not what the kernel was meant to do.
            let message = format!("barrier {number} is none of the {BARRIERS} that a block has");
            note(true, AccessFault::BarrierCount, message);
            return Next::Following;
        };
        if state.in_use() && state.expected != expected {
            let waits = state.expected.map_or("all threads".to_string(), |count| format!("{count} threads"));
            let asks = expected.map_or("all threads".to_string(), |count| format!("{count} threads"));
            note(
                false,
                AccessFault::BarrierCount,
                format!("barrier {number} waits for {waits} but this asks for {asks}"),
            );
        }
        if !state.in_use() {
            (state.expected, state.step) = (expected, step);
        }
        // With a count, a warp counts whole, whichever of its threads came.
        let first_of_warp = state.arrived[warp.number as usize] == 0;
        state.threads += match expected {
            Some(_) if barrier.aligned => {
                if first_of_warp {
                    LANES as u32
                } else {
                    0
                }
            }
            _ => active.count_ones(),
        };
        state.arrived[warp.number as usize] |= active;
        if let Some((source, _)) = barrier.reduction {
            let holds = (warp.file.predicate(source) & active).count_ones();
            state.votes.0 += holds;
            state.votes.1 += active.count_ones();
        }
        if barrier.action == BarrierAction::Arrive {
            block.clocks.pass(warp.number, &mut state.brought);
            return Next::Following;
        }
        let fragment = &mut warp.fragments[place];
        let left = fragment.lanes & !active;
        let calls = fragment.calls.clone();
        fragment.lanes = active;
        fragment.step = step;
        fragment.wait = Wait::Barrier(number);
        if left != 0 {
            warp.fragments.push(Fragment { step: step + 1, lanes: left, wait: Wait::Ready, calls });
        }
        Next::Choose
    }
}

/// Where the values of an instruction go.
fn flow_of(action: &Action) -> Flow {
    match action {
        Action::Pure(_)
        | Action::Load(_)
        | Action::Nothing
        | Action::ActiveMask(_)
        | Action::Clock(..)
        | Action::IsSpace(_)
        | Action::Exit
        | Action::Return
        | Action::CommitGroup
        | Action::WaitGroup(_)
        | Action::Fence(_) => Flow::SameLane,
        Action::Shuffle(_)
        | Action::Vote(_)
        | Action::Match(_)
        | Action::Reduce(_)
        | Action::Elect(..)
        | Action::Product(_)
        | Action::MatrixLoad(_)
        | Action::FragmentLoad(_)
        | Action::WarpBarrier(_) => Flow::AcrossLanes,
        Action::Branch(_)
        | Action::BranchTable(..)
        | Action::Trap
        | Action::Call(_)
        | Action::System(_)
        | Action::Store(_)
        | Action::Atomic(_)
        | Action::CopyAsync(_)
        | Action::Barrier(_)
        | Action::MatrixStore(_)
        | Action::FragmentStore(_) => Flow::Seen,
    }
}

pub(super) fn addresses_in(warp: &Warp, (slot, width): (Slot, RegisterWidth)) -> [u64; LANES] {
    match width {
        RegisterWidth::B64 => *warp.file.b64(slot),
        _ => warp.file.b32(slot).map(u64::from),
    }
}
