//! Which registers may lie in the same place: compilers write thousands of them, of which few are needed at once, and a
//! file that fits the nearest cache is what keeps the machine fast.

use gpuemu_ptx::code::Code;
use gpuemu_ptx::flow::graph::Graph;

use crate::registers::RegisterWidth;

/// Above this many registers times blocks every register gets a place of its own, so that no file takes long.
const MOST_BITS: usize = 1 << 28;

/// The steps between which a register holds something that is still needed, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetime {
    pub(super) first: u32,
    pub(super) last: u32,
}

/// The lifetimes of all registers of a function, none for those that nothing mentions; and those that may be read before
/// anything wrote them.
pub(super) fn lifetimes(code: &Code<'_, '_>) -> (Vec<Option<Lifetime>>, Vec<usize>) {
    let graph = Graph::of(code);
    let count = code.registers.len();
    let last = code.steps.len().saturating_sub(1) as u32;
    if graph.is_incomplete() || count.saturating_mul(graph.len()) > MOST_BITS {
        return (vec![Some(Lifetime { first: 0, last }); count], (0..count).collect());
    }
    let live_in = live_at_starts(code, &graph);
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; count];
    let mut extend = |register: usize, step: u32| {
        let lifetime = lifetimes[register].get_or_insert(Lifetime { first: step, last: step });
        lifetime.first = lifetime.first.min(step);
        lifetime.last = lifetime.last.max(step);
    };
    for step in 0..code.steps.len() {
        for register in code.reads(step).iter().chain(code.writes(step)) {
            extend(register.index(), step as u32);
        }
    }
    for block in 0..graph.len() {
        let steps = graph.steps(block);
        let Some(end) = steps.end.checked_sub(1) else { continue };
        for register in live_in[block].ones() {
            extend(register, steps.start as u32);
        }
        for successor in graph.successors(block) {
            for register in live_in[*successor as usize].ones() {
                extend(register, end as u32);
            }
        }
    }
    let unwritten = live_in.first().map(|live| live.ones().collect()).unwrap_or_default();
    (lifetimes, unwritten)
}

/// The registers that are needed when a block is entered, for each block.
fn live_at_starts(code: &Code<'_, '_>, graph: &Graph) -> Vec<Bits> {
    let count = code.registers.len();
    let mut needed = vec![Bits::new(count); graph.len()];
    let mut overwritten = vec![Bits::new(count); graph.len()];
    for block in 0..graph.len() {
        for step in graph.steps(block) {
            for register in code.reads(step) {
                if !overwritten[block].has(register.index()) {
                    needed[block].set(register.index());
                }
            }
            // With a guard, lanes keep what they had: that is a use of it.
            let guarded = code.steps[step].instruction.guard.is_some();
            for register in code.writes(step) {
                if guarded && !overwritten[block].has(register.index()) {
                    needed[block].set(register.index());
                } else {
                    overwritten[block].set(register.index());
                }
            }
        }
    }
    let mut live = needed;
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..graph.len()).rev() {
            for successor in graph.successors(block) {
                let from = live[*successor as usize].clone();
                changed |= live[block].add_without(&from, &overwritten[block]);
            }
        }
    }
    live
}

/// A set of registers.
#[derive(Debug, Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn has(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    fn set(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    /// Adds what is in another set but not in a third; whether that was anything new.
    fn add_without(&mut self, other: &Bits, without: &Bits) -> bool {
        let mut changed = false;
        for ((mine, other), without) in self.0.iter_mut().zip(&other.0).zip(&without.0) {
            let joined = *mine | (other & !without);
            changed |= joined != *mine;
            *mine = joined;
        }
        changed
    }

    fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let place = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(word * 64 + place)
            })
        })
    }
}

/// Places for registers by their lifetimes: for each the first row, or none if nothing mentions it, and how many rows
/// there are in all from `first_row` on.
pub(super) fn places(registers: &[(RegisterWidth, u32, Option<Lifetime>)], first_row: u32) -> (Vec<u32>, u32) {
    let mut order: Vec<usize> = (0..registers.len()).collect();
    order.sort_by_key(|number| registers[*number].2.map_or(u32::MAX, |lifetime| lifetime.first));
    let mut rows = vec![first_row; registers.len()];
    let mut next = first_row;
    // Places that are free again, by how many rows they have; those in use, the first to be free at the end.
    let mut free: std::collections::HashMap<u32, Vec<u32>> = std::collections::HashMap::new();
    let mut in_use: std::collections::BinaryHeap<std::cmp::Reverse<(u32, u32, u32)>> =
        std::collections::BinaryHeap::new();
    for number in order {
        let (width, elements, Some(lifetime)) = registers[number] else { continue };
        while let Some(std::cmp::Reverse((last, size, row))) = in_use.peek().copied() {
            if last >= lifetime.first {
                break;
            }
            in_use.pop();
            free.entry(size).or_default().push(row);
        }
        let size = width.rows() * elements.max(1);
        let row = free.get_mut(&size).and_then(Vec::pop).unwrap_or_else(|| {
            let row = next;
            next += size;
            row
        });
        rows[number] = row;
        in_use.push(std::cmp::Reverse((lifetime.last, size, row)));
    }
    (rows, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_ptx::code::ModuleNames;
    use gpuemu_ptx::source::Source;

    fn of(body: &str) -> Vec<(String, Lifetime)> {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n.reg .pred %p<4>;\n.reg .b32 %r<9>;\n{body}\n}}\n"
        );
        let source = Source::new("k.ptx", text);
        let module = source.parse().unwrap();
        let names = ModuleNames::of(&module);
        let code = Code::of(module.entries().next().unwrap(), &names).unwrap();
        let (found, _) = lifetimes(&code);
        code.registers.iter().zip(found).map(|(info, lifetime)| (info.name.to_string(), lifetime.unwrap())).collect()
    }

    #[test]
    fn what_a_loop_needs_lives_as_long_as_the_loop() {
        let found = of("mov.u32 %r1, 0;\nmov.u32 %r2, 5;\n\
            $L: add.s32 %r1, %r1, %r2;\nmov.u32 %r3, 1;\nadd.s32 %r4, %r3, %r1;\nsetp.lt.s32 %p1, %r1, 50;\n@%p1 bra $L;\n\
            mov.u32 %r5, %r4;\nret;");
        let lifetime = |name: &str| found.iter().find(|(other, _)| other == name).unwrap().1;
        assert_eq!(lifetime("%r2"), Lifetime { first: 1, last: 6 });
        assert_eq!(lifetime("%r3"), Lifetime { first: 3, last: 4 });
        assert_eq!(lifetime("%r4"), Lifetime { first: 4, last: 7 });
    }

    #[test]
    fn a_guarded_write_keeps_what_was_there() {
        let found = of(
            "mov.u32 %r1, 7;\nmov.u32 %r2, %r1;\nsetp.lt.s32 %p1, %r2, 3;\n@%p1 mov.u32 %r1, 1;\nmov.u32 %r3, %r1;\nret;",
        );
        let lifetime = |name: &str| found.iter().find(|(other, _)| other == name).unwrap().1;
        assert_eq!(lifetime("%r1"), Lifetime { first: 0, last: 4 });
        let registers: Vec<_> = found.iter().map(|(_, lifetime)| (RegisterWidth::B32, 1, Some(*lifetime))).collect();
        let (rows, _) = places(&registers, 10);
        for (left, (_, first)) in found.iter().enumerate() {
            for (right, (_, second)) in found.iter().enumerate().skip(left + 1) {
                let overlap = first.first <= second.last && second.first <= first.last;
                assert!(!overlap || rows[left] != rows[right]);
            }
        }
    }
}
