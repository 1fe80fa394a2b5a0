//! What lanes of a warp do together: shuffles, votes, matches, reductions, barriers of the warp.

use gpuemu_model::emulation::AccessFault;

use super::block::Block;
use super::execute::Next;
use super::transfer::lanes_of;
use super::warp::{Fragment, Wait, Warp};
use super::worker::Worker;
use crate::checks::Sighting;
use crate::decode::instruction::{Action, Match, Reduce, Shuffle, ShuffleMode, Vote, VoteMode};
use crate::registers::LANES;

impl Worker<'_, '_> {
    /// Waits for the lanes that the instruction names, then does it.
    pub(super) fn together(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        place: usize,
        action: &Action,
        step: u32,
        active: u32,
    ) -> Next {
        let members = self.members(warp, action, active);
        let taking_part = |lane: usize| if (active >> lane) & 1 == 1 { members[lane] } else { 0 };
        let needed = (0..LANES).fold(0, |needed, lane| needed | taking_part(lane)) & warp.live;
        let forced = std::mem::take(&mut warp.forced);
        if needed & !active != 0 && !forced {
            // The others may still come to this instruction: these lanes wait for them.
            let fragment = &mut warp.fragments[place];
            let left = fragment.lanes & !active;
            let calls = fragment.calls.clone();
            (fragment.lanes, fragment.step, fragment.wait) = (active, step, Wait::Members);
            if left != 0 {
                warp.fragments.push(Fragment { step: step + 1, lanes: left, wait: Wait::Ready, calls });
            }
            return Next::Choose;
        }
        let outside = (0..LANES).find(|lane| active >> lane & 1 == 1 && members[*lane] >> lane & 1 == 0);
        if let Some(lane) = outside.filter(|_| self.context.checks.sync) {
            let mask = members[lane];
            self.warp_fault(block, warp, lane, step, AccessFault::MemberMask, || {
                format!("lane {lane} is not in its own member mask {mask:#010x}")
            });
        }
        match action {
            // What was done before is ordered from here on. Lanes that the mask leaves out count as ordered too: telling
            // them apart would need a clock a lane.
            Action::WarpBarrier(_) => block.clocks.meet(&[warp.number], None),
            Action::Shuffle(shuffle) => self.shuffle(block, warp, shuffle, step, active, &members),
            Action::Vote(vote) => vote_of(warp, vote, active, &members),
            Action::Match(matching) => match_of(warp, matching, active, &members),
            Action::Reduce(reduce) => reduce_of(warp, reduce, active, &members),
            Action::Elect(result, predicate, _) => {
                let leader = active.trailing_zeros();
                warp.file.set_b32(*result, &[leader; LANES], active);
                warp.file.set_predicate(*predicate, 1 << leader, active);
            }
            _ => {}
        }
        Next::Following
    }

    /// The lanes that each lane names.
    fn members(&self, warp: &Warp, action: &Action, active: u32) -> [u32; LANES] {
        let slot = match action {
            Action::WarpBarrier(mask) => Some(*mask),
            Action::Shuffle(shuffle) => shuffle.members,
            Action::Vote(vote) => vote.members,
            Action::Match(matching) => Some(matching.members),
            Action::Reduce(reduce) => Some(reduce.members),
            Action::Elect(_, _, members) => Some(*members),
            _ => None,
        };
        slot.map_or([active; LANES], |slot| *warp.file.b32(slot))
    }

    fn warp_fault(
        &mut self,
        block: &Block,
        warp: &Warp,
        lane: usize,
        step: u32,
        fault: AccessFault,
        message: impl FnOnce() -> String,
    ) {
        let thread = self.thread_place(block.place, warp.number, lane as u32);
        self.collector.note(block.number, Some(step), fault, None, || Sighting {
            fault,
            message: message(),
            step: Some(step),
            thread: Some(thread),
            address: None,
            buffer: None,
            offset: None,
            other: None,
        });
    }

    fn shuffle(
        &mut self,
        block: &Block,
        warp: &mut Warp,
        shuffle: &Shuffle,
        step: u32,
        active: u32,
        members: &[u32; LANES],
    ) {
        let source = *warp.file.b32(shuffle.source);
        let lanes = *warp.file.b32(shuffle.lane);
        let bounds = *warp.file.b32(shuffle.bounds);
        let whole = active == u32::MAX && members.iter().all(|members| *members == u32::MAX);
        let alike = lanes.iter().all(|lane| *lane == lanes[0]) && bounds.iter().all(|bounds| *bounds == 31);
        if whole && alike && shuffle.mode == ShuffleMode::Butterfly {
            // As compilers write reductions: every lane has its partner.
            let distance = lanes[0] as usize & 31;
            let mut result = [0; LANES];
            for (lane, value) in result.iter_mut().enumerate() {
                *value = source[(lane ^ distance) & 31];
            }
            *warp.file.b32_mut(shuffle.result) = result;
            if let Some(predicate) = shuffle.in_range {
                warp.file.set_predicate(predicate, u32::MAX, active);
            }
            return;
        }
        let mut result = source;
        let mut in_range = 0u32;
        let mut inactive = None;
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            let (from, valid) = source_lane(shuffle.mode, lane as u32, lanes[lane], bounds[lane]);
            if valid {
                in_range |= 1 << lane;
                if (active & members[lane]) >> from & 1 == 0 {
                    inactive = inactive.or(Some((lane, from)));
                }
                result[lane] = source[from as usize];
            }
        }
        if let Some((lane, from)) = inactive.filter(|_| self.context.checks.sync) {
            self.warp_fault(block, warp, lane, step, AccessFault::InactiveLane, || {
                format!("lane {lane} reads from lane {from}, which does not take part: what it gets is not defined")
            });
        }
        warp.file.set_b32(shuffle.result, &result, active);
        if let Some(predicate) = shuffle.in_range {
            warp.file.set_predicate(predicate, in_range, active);
        }
    }
}

/// The lane that a shuffle reads from, and whether it is in range; its own lane if not.
fn source_lane(mode: ShuffleMode, lane: u32, operand: u32, bounds: u32) -> (u32, bool) {
    let operand = operand & 31;
    let clamp = bounds & 31;
    let segment = bounds >> 8 & 31;
    let most = (lane & segment) | (clamp & !segment);
    let least = lane & segment;
    let (from, valid) = match mode {
        ShuffleMode::Up => {
            let from = lane as i32 - operand as i32;
            (from as u32, from >= most as i32)
        }
        ShuffleMode::Down => (lane + operand, lane + operand <= most),
        ShuffleMode::Butterfly => (lane ^ operand, lane ^ operand <= most),
        ShuffleMode::Index => {
            let from = least | (operand & !segment);
            (from, from <= most)
        }
    };
    if valid { (from & 31, true) } else { (lane, false) }
}

fn vote_of(warp: &mut Warp, vote: &Vote, active: u32, members: &[u32; LANES]) {
    let votes = warp.file.predicate(vote.source);
    let mut bits = 0u32;
    let mut ballots = [0; LANES];
    for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
        let voters = members[lane] & active;
        let holds = votes & voters;
        let result = match vote.mode {
            VoteMode::All => holds == voters,
            VoteMode::Any => holds != 0,
            VoteMode::Uniform => holds == 0 || holds == voters,
            VoteMode::Ballot => false,
        };
        bits |= u32::from(result) << lane;
        ballots[lane] = holds;
    }
    if vote.mode == VoteMode::Ballot {
        warp.file.set_b32(vote.result, &ballots, active);
    } else {
        warp.file.set_predicate(vote.result, bits, active);
    }
}

fn match_of(warp: &mut Warp, matching: &Match, active: u32, members: &[u32; LANES]) {
    let values = lanes_of(&warp.file, matching.source.0, matching.source.1);
    let mut masks = [0u32; LANES];
    let mut equal = 0;
    for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
        let others = members[lane] & active;
        let same = (0..LANES)
            .filter(|other| others >> other & 1 == 1 && values[*other] == values[lane])
            .fold(0, |same, other| same | 1 << other);
        let all = same == others;
        masks[lane] = match (matching.all, all) {
            (true, true) => others,
            (true, false) => 0,
            (false, _) => same,
        };
        equal |= u32::from(all) << lane;
    }
    warp.file.set_b32(matching.result, &masks, active);
    if let Some(predicate) = matching.predicate {
        warp.file.set_predicate(predicate, equal, active);
    }
}

fn reduce_of(warp: &mut Warp, reduce: &Reduce, active: u32, members: &[u32; LANES]) {
    let values = *warp.file.b32(reduce.source);
    let mut results = [0; LANES];
    for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
        let others = members[lane] & active;
        let taken = (0..LANES).filter(|other| others >> other & 1 == 1).map(|other| values[other]);
        results[lane] = taken.reduce(reduce.combine).unwrap_or(values[lane]);
    }
    warp.file.set_b32(reduce.result, &results, active);
}
