//! From the addresses of global accesses back to the 32-bit values that they are made of.

use std::collections::HashSet;

use crate::flow::Version;
use crate::lint::access::{GlobalAccess, global_access};
use crate::lint::function::Analysed;
use crate::lint::spaces::pointers;
use crate::syntax::{Instruction, ScalarType, StateSpace};

/// A 32-bit value that becomes part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Root {
    pub version: Version,
    /// Whether it is widened as a signed number.
    pub signed: bool,
    /// What it is multiplied by after it was widened; nothing where a register decides.
    pub scale: Option<u64>,
    /// Bytes of an element of the access.
    pub element_bytes: u64,
}

impl Root {
    /// The first number that does not fit.
    pub fn limit(&self) -> u64 {
        if self.signed { 1 << 31 } else { 1 << 32 }
    }
}

/// A scale beyond this is taken for one that is not known.
const MOST_SCALE: u64 = 1 << 20;

/// The 32-bit values that addresses of global accesses are made of, each once for every scale.
pub(super) fn roots(function: &Analysed<'_, '_>) -> Vec<Root> {
    let code = &function.code;
    let accesses: Vec<(usize, GlobalAccess<'_, '_>)> = (code.steps.iter().enumerate())
        .filter_map(|(number, step)| Some((number, global_access(step.instruction)?)))
        .collect();
    let any_generic = accesses.iter().any(|(_, access)| access.generic);
    let elsewhere = if any_generic { pointers(function, &[StateSpace::Shared, StateSpace::Local]) } else { Vec::new() };
    let mut trace = Trace { function, seen: HashSet::new(), known: HashSet::new(), roots: Vec::new() };
    for (number, access) in accesses {
        let base = access.base(code, number).and_then(|base| function.uses.read(code, number, base));
        let Some(base) = base else { continue };
        if access.generic && elsewhere.get(base.index()).copied().unwrap_or_default() {
            continue;
        }
        trace.follow(base, access.element_bytes);
    }
    trace.roots
}

struct Trace<'f, 'm, 'a> {
    function: &'f Analysed<'m, 'a>,
    seen: HashSet<(Version, Option<u64>)>,
    known: HashSet<(Version, Option<u64>, bool)>,
    roots: Vec<Root>,
}

type Waiting = Vec<(Version, Option<u64>)>;

impl Trace<'_, '_, '_> {
    fn follow(&mut self, base: Version, element_bytes: u64) {
        let mut waiting: Waiting = vec![(base, Some(1))];
        while let Some((version, scale)) = waiting.pop() {
            if !self.seen.insert((version, scale)) {
                continue;
            }
            let function = self.function;
            for step in function.uses.definitions(version) {
                self.definition(*step as usize, scale, element_bytes, &mut waiting);
            }
        }
    }

    fn definition(&mut self, step: usize, scale: Option<u64>, element_bytes: u64, waiting: &mut Waiting) {
        let Some(instruction) = self.function.code.steps.get(step).map(|step| step.instruction) else { return };
        let mut types = instruction.types();
        let (first, second) = (types.next(), types.next());
        let wide = first.and_then(ScalarType::bytes) == Some(8);
        let widens = first.and_then(ScalarType::bytes) == Some(4) && instruction.has("wide");
        match instruction.base() {
            "mov" | "cvta" | "and" if wide => self.push(step, &[1], scale, waiting),
            "add" | "sub" | "or" | "selp" | "min" | "max" if wide => self.push(step, &[1, 2], scale, waiting),
            "cvt" if wide => match second.and_then(ScalarType::bytes) {
                Some(8) => self.push(step, &[1], scale, waiting),
                Some(4) => self.root(step, 1, second, scale, element_bytes),
                _ => {}
            },
            "shl" if wide => {
                let by = self.constant(step, instruction, 2).and_then(|by| u32::try_from(by).ok());
                let factor = by.and_then(|by| 1u64.checked_shl(by));
                self.push(step, &[1], scaled(scale, factor), waiting);
            }
            "mul" | "mad" if (wide && instruction.has("lo")) || widens => {
                for (place, other) in [(1, 2), (2, 1)] {
                    let factor = self.constant(step, instruction, other).map(i64::unsigned_abs);
                    let scale = scaled(scale, factor);
                    if widens {
                        self.root(step, place, first, scale, element_bytes);
                    } else {
                        self.push(step, &[place], scale, waiting);
                    }
                }
                self.push(step, &[3], scale, waiting);
            }
            _ => {}
        }
    }

    fn constant(&self, step: usize, instruction: &Instruction<'_>, place: usize) -> Option<i64> {
        self.function.constant(step, instruction.operands.get(place)?)
    }

    fn push(&self, step: usize, places: &[usize], scale: Option<u64>, waiting: &mut Waiting) {
        let versions = places.iter().filter_map(|place| self.function.version(step, *place));
        waiting.extend(versions.map(|version| (version, scale)));
    }

    fn root(&mut self, step: usize, place: usize, kind: Option<ScalarType>, scale: Option<u64>, element_bytes: u64) {
        let Some(version) = self.function.version(step, place) else { return };
        let signed = kind == Some(ScalarType::S32);
        if self.known.insert((version, scale, signed)) {
            self.roots.push(Root { version, signed, scale, element_bytes });
        }
    }
}

fn scaled(scale: Option<u64>, factor: Option<u64>) -> Option<u64> {
    scale?.checked_mul(factor?).filter(|scale| (1..=MOST_SCALE).contains(scale))
}
