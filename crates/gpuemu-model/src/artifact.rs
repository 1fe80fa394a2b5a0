//! What is known of compiled kernels: measures, findings of the linter, and how both compare with a baseline.
//!
//! One model, which travels, is stored, and which every writer of reports takes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schema::JsonSchema;

pub use crate::tool_search::ToolSearch;

/// The version of the JSON that these types are written as.
pub const ARTIFACT_VERSION: u32 = 1;

/// One kernel of a project, or one file: where its code came from and what was measured of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelArtifact {
    /// The kernel's name in the configuration, or the file's name.
    pub kernel: String,
    /// Its source, as configured.
    pub source: String,
    /// How PTX came of it: "as written", or the compiler and its version.
    pub producer: String,
    /// Architecture of the PTX, as in `sm_80`.
    pub target: String,
    /// Version of the PTX, as in `8.4`.
    pub ptx_version: String,
    /// Fingerprint of the PTX.
    pub digest: String,
    /// Every entry of the file, in order.
    pub entries: Vec<EntryMetrics>,
    /// The programs that helped.
    pub tools: Vec<ToolUse>,
    /// What could not be measured, and why.
    pub not_measured: Vec<NotMeasured>,
}

/// What was measured of one entry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryMetrics {
    /// Its name.
    pub entry: String,
    /// Its line in the PTX, from 1.
    pub line: usize,
    /// Threads of a block in x, y and z, where the code says them.
    pub block: Option<BlockSize>,
    /// Virtual registers that the code declares, by class. The hardware's registers are in `compiled`.
    pub registers: BTreeMap<RegisterClass, u64>,
    /// Shared memory.
    pub shared: MemoryUse,
    /// Local memory: arrays of a thread, and what the compiler keeps there.
    pub local: MemoryUse,
    /// Constant and global variables of the module that it uses.
    pub module_variables: Vec<MemoryVariable>,
    /// Loads from local memory.
    pub local_loads: u64,
    /// Stores to local memory.
    pub local_stores: u64,
    /// Instructions, those of functions that it calls included.
    pub instructions: InstructionCounts,
    /// Accesses to global memory, by kind and width.
    pub global_accesses: Vec<GlobalAccess>,
    /// Blocks of code that are entered only at their first instruction.
    pub blocks: u64,
    /// Loops.
    pub loops: u64,
    /// How deep loops are nested.
    pub loop_depth: u64,
    /// Functions that it calls, by name.
    pub calls: Vec<String>,
    /// Immediates and constants.
    pub constants: Constants,
    /// What the assembler made of it, for each architecture that was asked for.
    pub compiled: Vec<CompiledMetrics>,
    /// How many blocks fit on a multiprocessor.
    pub occupancy: Vec<Occupancy>,
}

/// Threads of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockSize {
    /// Threads in x, y and z.
    pub threads: [u64; 3],
    /// Whether a launch must have exactly these; otherwise it may have no more.
    pub exact: bool,
}

impl BlockSize {
    pub fn total(&self) -> u64 {
        self.threads.iter().fold(1, |product, size| product.saturating_mul(*size))
    }
}

/// Virtual registers by what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegisterClass {
    /// One bit.
    Predicate,
    /// 8 bits.
    Bits8,
    /// 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
    /// 128 bits.
    Bits128,
}

/// Memory of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// Bytes whose number the code fixes, gaps for alignment included.
    pub bytes: u64,
    /// Whether more is added at launch.
    pub dynamic: bool,
    /// The variables.
    pub variables: Vec<MemoryVariable>,
}

/// A variable in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryVariable {
    /// Its name.
    pub name: String,
    /// Where it lives: `shared`, `local`, `const` or `global`.
    pub space: String,
    /// Type of an element, as in `f32` or `v4.f32`.
    pub element: String,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Elements; none where the launch decides.
    pub elements: Option<u64>,
    /// Bytes of all; none where the launch decides.
    pub bytes: Option<u64>,
    /// Alignment in bytes.
    pub alignment: u64,
}

/// Instructions by group. Each is in one group; those under a predicate count like the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionCounts {
    /// All.
    pub total: u64,
    /// Of them under a predicate.
    pub predicated: u64,
    /// Loads, stores, atomics, copies and prefetches, those of parameters included.
    pub memory: u64,
    /// Computation, comparison and conversion.
    pub arithmetic: u64,
    /// Matrix instructions.
    pub tensor_core: u64,
    /// Branches, calls, returns, traps.
    pub control: u64,
    /// Barriers, fences, waits, votes and what else warps agree by.
    pub synchronisation: u64,
    /// Moves between registers and lanes.
    pub movement: u64,
    /// How often each form occurs, as in `ld.global.v4.b32`.
    pub forms: BTreeMap<String, u64>,
}

/// How global memory is accessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GlobalAccess {
    /// `load`, `store`, `atomic` or `copy` (to shared memory, without registers).
    pub kind: String,
    /// Bytes that a thread moves at once; none where a register decides.
    pub bytes: Option<u64>,
    /// Elements of the vector; 1 for a scalar.
    pub vector: u64,
    /// How many instructions.
    pub count: u64,
}

/// Immediates and constants: two kernels with equal counts may differ in nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Constants {
    /// One word for all of them.
    pub fingerprint: String,
    /// How often each occurs, as in `mul.f32 0f3C23D70A (0.01)`.
    pub values: BTreeMap<String, u64>,
}

/// What the assembler made of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompiledMetrics {
    /// The architecture, as in `sm_80`.
    pub architecture: String,
    /// Registers of a thread.
    pub registers: Option<u64>,
    /// Bytes of spilled registers that are stored.
    pub spill_store_bytes: Option<u64>,
    /// Bytes of spilled registers that are loaded.
    pub spill_load_bytes: Option<u64>,
    /// Bytes of a thread's stack.
    pub stack_bytes: Option<u64>,
    /// Bytes of static shared memory.
    pub shared_bytes: Option<u64>,
    /// Bytes of constant memory, parameters included.
    pub constant_bytes: Option<u64>,
    /// Barriers.
    pub barriers: Option<u64>,
    /// Machine instructions by opcode, as in `LDG.E.128`.
    pub sass: Option<BTreeMap<String, u64>>,
}

/// How many blocks fit on a multiprocessor. An estimate: it says nothing of speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Occupancy {
    /// The architecture.
    pub architecture: String,
    /// Threads of a block that were assumed.
    pub block_threads: u64,
    /// Shared memory of a block that was assumed.
    pub shared_bytes: u64,
    /// Registers of a thread that were assumed; none where they are not known, and nothing is limited by them.
    pub registers: Option<u64>,
    /// Blocks that are resident at once; 0 if one does not fit.
    pub blocks: u64,
    /// Share of the warps that could be resident.
    pub share: f64,
    /// What limits it: `threads`, `blocks`, `registers` or `shared memory`.
    pub limited_by: String,
}

/// A program that was used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// Its name, as in `ptxas`.
    pub name: String,
    /// Its version, in its own words.
    pub version: String,
}

/// Something that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// How grave a finding of the linter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Worth a look; does not fail a run.
    Warning,
    /// Fails a run.
    Error,
}

impl Severity {
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// Something that the linter found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintFinding {
    /// The rule's name.
    pub rule: String,
    /// How grave it is.
    pub severity: Severity,
    /// Whether the rule guesses: what it finds may be right.
    pub heuristic: bool,
    /// The entry.
    pub entry: String,
    /// Line in the PTX, from 1.
    pub line: Option<usize>,
    /// Column in the PTX, from 1.
    pub column: Option<usize>,
    /// The line of the kernel's own source that the code came from, as in `kernels.py:12`.
    pub origin: Option<Origin>,
    /// What was found, with its figures.
    pub message: String,
}

/// A place in the source that a kernel was compiled from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The file, as the compiler named it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1; 0 if not known.
    pub column: u64,
}

/// A rule that could not be checked. It has neither passed nor failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct NotChecked {
    /// The rule's name.
    pub rule: String,
    /// Why.
    pub why: String,
}

/// What the linter says of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintResult {
    /// What it found, in the order of the code.
    pub findings: Vec<LintFinding>,
    /// Findings of rules that are silenced for this kernel, by rule.
    pub silenced: BTreeMap<String, u64>,
    /// Rules that could not be checked.
    pub not_checked: Vec<NotChecked>,
}

impl LintResult {
    /// How many findings have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// How a kernel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelStatus {
    /// No rule failed.
    Passed,
    /// A rule failed.
    Failed,
    /// It could not be compiled or read, or not be checked as was demanded.
    Error,
}

/// One kernel in a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelReport {
    /// Its name.
    pub kernel: String,
    /// Line of its name in the configuration, from 1; none for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_line: Option<usize>,
    /// How it did.
    pub status: KernelStatus,
    /// What was measured; nothing after an error.
    pub artifact: Option<KernelArtifact>,
    /// What the linter says.
    pub lint: LintResult,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What was measured and found in kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactReport {
    /// Version of this form.
    pub version: u32,
    /// The project; empty for files.
    pub project: String,
    /// The kernels, in order.
    pub kernels: Vec<KernelReport>,
}

impl ArtifactReport {
    /// Whether no kernel failed and none is in error.
    pub fn passed(&self) -> bool {
        self.kernels.iter().all(|kernel| kernel.status == KernelStatus::Passed)
    }
}

/// How an entry compares with a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactStatus {
    /// Nothing that is measured differs.
    Same,
    /// Something differs, for neither better nor worse.
    Changed,
    /// Something is better, nothing worse.
    Improved,
    /// Something is worse.
    Regressed,
    /// It is not in the baseline.
    New,
    /// It is in the baseline and no longer there.
    Missing,
    /// It could not be measured now.
    NotComparable,
}

/// How an entry of a kernel compares with a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactComparison {
    /// The kernel.
    pub kernel: String,
    /// Its entry; empty where the whole kernel is meant.
    pub entry: String,
    /// The result.
    pub status: ArtifactStatus,
    /// Measures that differ.
    pub changes: Vec<MetricChange>,
    /// Immediates and constants that differ.
    pub constants: Vec<ConstantChange>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A measure that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricChange {
    /// The measure, as in `sm_80 registers`.
    pub metric: String,
    /// In the baseline.
    pub before: Option<u64>,
    /// Now.
    pub now: Option<u64>,
    /// What that means.
    pub verdict: ArtifactStatus,
}

/// A constant that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConstantChange {
    /// The constant, with the instruction that it stands in.
    pub value: String,
    /// How often it was there.
    pub before: u64,
    /// How often it is now.
    pub now: u64,
}

/// The launch that occupancy is estimated for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OccupancyLaunch {
    /// Threads of a block.
    pub block_threads: Option<u64>,
    /// Bytes of shared memory that the launch adds.
    pub dynamic_shared_bytes: Option<u64>,
}
