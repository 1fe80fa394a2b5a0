//! What is known of the whole numbers in registers: constants, the largest magnitude, where they come from.

use std::collections::VecDeque;

use super::uses::{Uses, Version};
use crate::code::Code;

mod operands;
mod transfer;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sources {
    /// Which thread, block or grid runs.
    pub launch: bool,
    /// Parameters, memory and all else that the caller decides.
    pub data: bool,
}

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// The value, if it is always the same one.
    pub constant: Option<i64>,
    /// The largest magnitude that exact arithmetic could give; the largest number of all where nothing is known.
    pub most: u64,
    /// Where it comes from.
    pub sources: Sources,
    /// It is a multiple of two to this power, taking parameters and memory for aligned; at most [`MOST_ALIGNED`].
    pub alignment: u32,
}

/// No alignment beyond 64 bytes matters to anything.
pub const MOST_ALIGNED: u32 = 6;

impl Value {
    pub fn constant(value: i64) -> Self {
        Self {
            constant: Some(value),
            most: value.unsigned_abs(),
            sources: Sources::default(),
            alignment: value.trailing_zeros().min(MOST_ALIGNED),
        }
    }

    /// Something that the caller decides.
    pub fn data(most: u64) -> Self {
        let sources = Sources { launch: false, data: true };
        Self { constant: None, most, sources, alignment: MOST_ALIGNED }
    }

    /// Something that the launch decides, as the index of a thread.
    pub fn index(most: u64) -> Self {
        Self { sources: Sources { launch: true, data: false }, alignment: 0, ..Self::data(most) }
    }

    fn join(self, other: Self) -> Self {
        Self {
            constant: self.constant.filter(|constant| Some(*constant) == other.constant),
            most: self.most.max(other.most),
            sources: self.sources.join(other.sources),
            alignment: self.alignment.min(other.alignment),
        }
    }
}

impl Sources {
    fn join(self, other: Self) -> Self {
        Self { launch: self.launch || other.launch, data: self.data || other.data }
    }
}

/// What is known of every version of a function's registers.
#[derive(Debug, Clone)]
pub struct Values {
    known: Vec<Option<Value>>,
}

/// How often a bound may rise before it is taken to grow without end.
const MOST_RISES: u8 = 16;

impl Values {
    /// What is known in a function.
    pub fn of(code: &Code<'_, '_>, uses: &Uses) -> Self {
        let mut values = Self { known: vec![None; uses.len()] };
        let mut rises = vec![0u8; uses.len()];
        let mut waiting: VecDeque<u32> = (0..code.steps.len() as u32).collect();
        let mut queued = vec![true; code.steps.len()];
        while let Some(number) = waiting.pop_front() {
            let step = number as usize;
            queued[step] = false;
            if code.writes(step).is_empty() {
                continue;
            }
            let Some(result) = values.result(code, uses, step) else { continue };
            for version in uses.results(step) {
                if values.add(version, result, &mut rises) {
                    for reader in uses.readers(version) {
                        if !std::mem::replace(&mut queued[*reader as usize], true) {
                            waiting.push_back(*reader);
                        }
                    }
                }
            }
        }
        values
    }

    /// What is known of a version of a register.
    pub fn of_version(&self, version: Version) -> Value {
        self.known.get(version.index()).copied().flatten().unwrap_or(Value::data(u64::MAX))
    }

    /// Adds what a version may hold, and returns whether that was new.
    fn add(&mut self, version: Version, value: Value, rises: &mut [u8]) -> bool {
        let (Some(known), Some(rises)) = (self.known.get_mut(version.index()), rises.get_mut(version.index())) else {
            return false;
        };
        let mut joined = known.map_or(value, |known| known.join(value));
        if known.is_some_and(|known| joined.most > known.most) {
            *rises = rises.saturating_add(1);
            if *rises > MOST_RISES {
                joined.most = u64::MAX;
            }
        }
        known.replace(joined) != Some(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::graph::Graph;
    use crate::flow::uses::tests::with_directives;

    fn value(directives: &str, body: &str, name: &str) -> Value {
        let mut found = None;
        with_directives(directives, &format!("{body}\n ret;"), |code| {
            let values = Values::of(code, &Uses::of(code, &Graph::of(code)));
            found = Some(values.of_version(Version(code.register(0, name).unwrap().0)));
        });
        found.unwrap()
    }

    #[test]
    fn arithmetic_with_constants_is_followed() {
        let body = "mov.u32 %r1, %tid.x;\n shl.b32 %r2, %r1, 2;\n and.b32 %r3, %r2, 508;\n or.b32 %r4, %r3, 512;\n\
                    mov.u32 %r5, 12;\n mul.lo.s32 %r6, %r5, 4;\n rem.u32 %r7, %r2, 100;\n bfe.u32 %r8, %r2, 3, 4;";
        assert_eq!(value("", body, "%r2").most, 4092);
        assert_eq!(value(".reqntid 128", body, "%r2").most, 508);
        assert_eq!(value("", body, "%r2").alignment, 2);
        assert_eq!(value("", body, "%r3").most, 508);
        assert_eq!(value("", body, "%r4").most, 1020);
        assert_eq!(value("", body, "%r6").constant, Some(48));
        assert_eq!(value("", body, "%r7").most, 99);
        assert_eq!(value("", body, "%r8").most, 15);
    }

    #[test]
    fn numbers_of_32_bits_are_signed_however_they_are_written() {
        let body = "mov.u32 %r1, %tid.x;\n and.b32 %r2, %r1, 0xFFFFFFF8;\n mul.lo.s32 %r3, %r1, 0xFFFFFFFF;\n\
                    and.b32 %r4, %r1, 7;";
        let rounded = value("", body, "%r2");
        assert_eq!((rounded.most, rounded.alignment), (1023, 3));
        assert_eq!(value("", body, "%r3").most, 1023);
        assert_eq!(value("", body, "%r4").most, 7);
    }

    #[test]
    fn what_the_caller_decides_has_no_bound() {
        let body = "ld.param.u32 %r1, [n];\n mov.u32 %r2, %ctaid.x;\n mad.lo.s32 %r3, %r1, %r2, 1;\n\
                    mov.u32 %r4, %ctaid.y;\n shl.b32 %r5, %r4, 4;\n shr.u32 %r6, %r1, 26;";
        assert_eq!(value("", body, "%r1"), Value::data(u64::from(u32::MAX)));
        let product = value("", body, "%r3");
        assert!(product.most > 1 << 60 && product.sources == Sources { launch: true, data: true });
        assert_eq!(value("", body, "%r5").most, 65534 * 16);
        assert_eq!(value("", body, "%r6").most, 63);
    }

    #[test]
    fn what_grows_in_a_loop_has_no_bound_and_keeps_its_alignment() {
        let body = "mov.u32 %r1, %tid.x;\n shl.b32 %r1, %r1, 2;\n L: add.s32 %r1, %r1, 512;\n\
                    setp.lt.s32 %p1, %r1, 9;\n\
                    @%p1 bra L;";
        let found = value("", body, "%r1");
        assert_eq!((found.most, found.constant), (u64::MAX, None));
        // The register also held the index itself, before the loop.
        assert_eq!(found.alignment, 2);
    }

    #[test]
    fn different_definitions_are_joined() {
        let body = "mov.u32 %r1, 4;\n @%p1 mov.u32 %r1, 8;\n mov.u32 %r2, 4;\n @%p1 mov.u32 %r2, 4;";
        let found = value("", body, "%r1");
        assert_eq!((found.constant, found.most, found.alignment), (None, 8, 2));
        assert_eq!(value("", body, "%r2").constant, Some(4));
    }
}
