//! Measures that a rule may name.

use gpuemu_model::artifact::{CompiledMetrics, EntryMetrics, KernelArtifact, RegisterClass};

use crate::lint::figures::Figures;
use crate::lint::patterns::{Pattern, PatternError};

/// A measure of an entry.
#[derive(Debug, Clone)]
pub struct Metric {
    name: String,
    kind: Kind,
}

/// A measure is what its name says.
impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Metric {}

type OfEntry = fn(&EntryMetrics) -> u64;
type OfCompiled = fn(&CompiledMetrics) -> Option<u64>;

#[derive(Debug, Clone)]
enum Kind {
    Plain(OfEntry),
    BlockThreads,
    Compiled(&'static str, OfCompiled),
    OccupancyBlocks,
    Instructions(Pattern),
}

/// Why a text names no measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MetricError {
    Unknown,
    Pattern(PatternError),
}

/// Before a pattern of PTX, and of machine code.
const FORMS: &str = "instructions.forms.";
const SASS: &str = "compiled.sass.";

macro_rules! register_class {
    ($class:ident) => {
        |entry| entry.registers.get(&RegisterClass::$class).copied().unwrap_or_default()
    };
}

const PLAIN: &[(&str, OfEntry)] = &[
    ("blocks", |entry| entry.blocks),
    ("loops", |entry| entry.loops),
    ("loop_depth", |entry| entry.loop_depth),
    ("local_loads", |entry| entry.local_loads),
    ("local_stores", |entry| entry.local_stores),
    ("shared.bytes", |entry| entry.shared.bytes),
    ("local.bytes", |entry| entry.local.bytes),
    ("instructions.total", |entry| entry.instructions.total),
    ("instructions.predicated", |entry| entry.instructions.predicated),
    ("instructions.memory", |entry| entry.instructions.memory),
    ("instructions.arithmetic", |entry| entry.instructions.arithmetic),
    ("instructions.tensor_core", |entry| entry.instructions.tensor_core),
    ("instructions.control", |entry| entry.instructions.control),
    ("instructions.synchronisation", |entry| entry.instructions.synchronisation),
    ("instructions.movement", |entry| entry.instructions.movement),
    ("registers.predicate", register_class!(Predicate)),
    ("registers.bits8", register_class!(Bits8)),
    ("registers.bits16", register_class!(Bits16)),
    ("registers.bits32", register_class!(Bits32)),
    ("registers.bits64", register_class!(Bits64)),
    ("registers.bits128", register_class!(Bits128)),
];

/// With the word that reasons for a missing figure are found by.
const COMPILED: &[(&str, &str, OfCompiled)] = &[
    ("compiled.registers", "registers", |compiled| compiled.registers),
    ("compiled.spill_store_bytes", "spills", |compiled| compiled.spill_store_bytes),
    ("compiled.spill_load_bytes", "spills", |compiled| compiled.spill_load_bytes),
    ("compiled.stack_bytes", "stack", |compiled| compiled.stack_bytes),
    ("compiled.shared_bytes", "registers", |compiled| compiled.shared_bytes),
    ("compiled.constant_bytes", "registers", |compiled| compiled.constant_bytes),
    ("compiled.barriers", "barriers", |compiled| compiled.barriers),
];

const BLOCK_THREADS: &str = "block.threads";
const OCCUPANCY_BLOCKS: &str = "occupancy.blocks";

/// Names of all measures that have one. `instructions.forms.` and `compiled.sass.` are followed by a pattern.
pub fn metric_names() -> impl Iterator<Item = &'static str> {
    let plain = PLAIN.iter().map(|(name, _)| *name);
    let compiled = COMPILED.iter().map(|(name, ..)| *name);
    plain.chain(compiled).chain([BLOCK_THREADS, OCCUPANCY_BLOCKS])
}

impl Metric {
    pub(super) fn parse(name: &str) -> Result<Self, MetricError> {
        let named = |kind: Kind| Self { name: name.to_string(), kind };
        if let Some((_, figure)) = PLAIN.iter().find(|(known, _)| *known == name) {
            return Ok(named(Kind::Plain(*figure)));
        }
        if let Some((_, word, figure)) = COMPILED.iter().find(|(known, ..)| *known == name) {
            return Ok(named(Kind::Compiled(word, *figure)));
        }
        match name {
            BLOCK_THREADS => return Ok(named(Kind::BlockThreads)),
            OCCUPANCY_BLOCKS => return Ok(named(Kind::OccupancyBlocks)),
            _ => {}
        }
        let (text, machine) = match (name.strip_prefix(FORMS), name.strip_prefix(SASS)) {
            (Some(text), _) => (text, false),
            (_, Some(text)) => (text, true),
            _ => return Err(MetricError::Unknown),
        };
        let pattern = Pattern::parse(text).map_err(MetricError::Pattern)?;
        if pattern.is_machine() == machine { Ok(named(Kind::Instructions(pattern))) } else { Err(MetricError::Unknown) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was measured of an entry.
    pub fn of(&self, artifact: &KernelArtifact, entry: &EntryMetrics) -> Figures {
        match &self.kind {
            Kind::Plain(figure) => Figures::one(figure(entry)),
            Kind::BlockThreads => match &entry.block {
                Some(block) => Figures::one(block.total()),
                None => Figures::unknown("the code does not say how many threads a block has"),
            },
            Kind::Compiled(word, figure) => Figures::of_machine(artifact, entry, word, figure),
            Kind::OccupancyBlocks if entry.occupancy.is_empty() => Figures::unknown("occupancy was not estimated"),
            Kind::OccupancyBlocks => {
                let known = entry.occupancy.iter().map(|estimate| (estimate.architecture.clone(), estimate.blocks));
                Figures { known: known.collect(), missing: Vec::new() }
            }
            Kind::Instructions(pattern) => pattern.count(artifact, entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_names_a_measure() {
        assert!(metric_names().all(|name| Metric::parse(name).is_ok_and(|metric| metric.name() == name)));
        assert!(Metric::parse("compiled.sass.LDG.E").is_ok() && Metric::parse("instructions.forms.ld.global").is_ok());
        assert_eq!(Metric::parse("compiled.sass.ldg"), Err(MetricError::Unknown));
        assert_eq!(Metric::parse("compiled.sass."), Err(MetricError::Pattern(PatternError::Empty)));
        assert_eq!(Metric::parse("register"), Err(MetricError::Unknown));
    }

    #[test]
    fn what_was_not_measured_is_said_and_not_taken_for_nothing() {
        let source = crate::Source::new("k.ptx", crate::flow::uses::tests::module_text("", "ret;"));
        let mut artifact = crate::lint::tests::measured(&source);
        let mut entry = EntryMetrics { blocks: 3, ..artifact.entries.remove(0) };
        let figures = |name: &str, entry: &EntryMetrics| Metric::parse(name).unwrap().of(&artifact, entry);
        assert_eq!(figures("blocks", &entry).known, [(String::new(), 3)]);
        for name in ["compiled.registers", "block.threads", "occupancy.blocks", "compiled.sass.LDG"] {
            let found = figures(name, &entry);
            assert!(found.known.is_empty() && found.missing.len() == 1, "{name}");
        }
        let compiled = CompiledMetrics { architecture: "sm_80".into(), registers: Some(40), ..Default::default() };
        let other = CompiledMetrics { architecture: "sm_90".into(), ..Default::default() };
        entry.compiled = vec![compiled, other];
        let found = figures("compiled.registers", &entry);
        assert_eq!(found.known, [("sm_80".to_string(), 40)]);
        assert_eq!(found.missing, ["not measured for sm_90"]);
    }
}
