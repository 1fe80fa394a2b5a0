//! Everybody who has read a piece of shared memory since it was last known to all.
//!
//! The shadow keeps one key a piece, which is enough where all warps meet at every barrier. Where only some of them do, it
//! cannot say which of several readers a writer knows of; then the launch is run again with every reader kept.

use std::collections::HashMap;

use super::clocks::Knowledge;
use super::shared_shadow::Accessor;

/// One thread's last read of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reader {
    by: Accessor,
    clock: u32,
    step: u32,
}

/// All readers of all pieces.
#[derive(Debug, Clone, Default)]
pub struct Readers {
    pieces: HashMap<usize, Vec<Reader>>,
}

impl Readers {
    /// As at the beginning of a block.
    pub fn clear(&mut self) {
        self.pieces.clear();
    }

    /// A thread reads a piece. Whom it knows of need not be kept: who comes after it comes after them.
    pub fn note(&mut self, place: usize, by: Accessor, clock: u32, step: u32, knowledge: &Knowledge) {
        let readers = self.pieces.entry(place).or_default();
        readers.retain(|reader| !reader.is_before(by, knowledge));
        readers.push(Reader { by, clock, step });
    }

    /// A reader that nothing orders before a write by this thread, and its instruction.
    pub fn unordered(&self, place: usize, writer: Accessor, knowledge: &Knowledge) -> Option<(Accessor, u32)> {
        let readers = self.pieces.get(&place)?;
        let found = readers.iter().find(|reader| !reader.is_before(writer, knowledge))?;
        Some((found.by, found.step))
    }
}

impl Reader {
    fn is_before(&self, now: Accessor, knowledge: &Knowledge) -> bool {
        self.by == now || knowledge.own.get(self.by.warp as usize).is_some_and(|known| self.clock <= *known)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clocks::Clocks;
    use super::*;

    #[test]
    fn readers_that_met_the_writer_are_forgotten_and_others_are_not() {
        let mut clocks = Clocks::new(0, 3);
        let mut readers = Readers::default();
        let thread = |warp: u32| Accessor { warp, lane: 0 };
        for warp in 0..3 {
            readers.note(7, thread(warp), clocks.clock(warp), 5, clocks.knowledge(warp));
        }
        clocks.meet(&[0, 1], None);
        assert_eq!(readers.unordered(7, thread(0), clocks.knowledge(0)), Some((thread(2), 5)));
        clocks.meet(&[0, 2], None);
        assert_eq!(readers.unordered(7, thread(0), clocks.knowledge(0)), None);
        assert!(readers.unordered(7, thread(1), clocks.knowledge(1)).is_some(), "warp 1 did not meet warp 2");
    }
}
