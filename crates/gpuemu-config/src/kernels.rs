//! Compiled kernels in a configuration: `[[kernels]]` and `[lint]`, as written and as the rest of gpuemu sees them.

use std::collections::BTreeMap;
use std::ops::Range;

use gpuemu_model::artifact::Severity;
use gpuemu_model::schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Source;
use super::expression::Expression;
use super::launch::{LaunchTable, VariantTable, resolve_launch};
use super::located::Located;
use super::resolve::line_of;

/// One `[[kernels]]` entry.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelTable {
    /// Unique name.
    pub name: Located<String>,
    /// Kernel source: `.ptx`, `.cu`, or `file.py:kernel`.
    pub source: Located<String>,
    /// Reference script for the kernel's op.
    pub reference: Option<String>,
    /// How the source is compiled.
    pub compile: Option<CompileTableFile>,
    /// Checks of the compiled artifact.
    pub artifact_checks: Option<ArtifactChecksTable>,
    /// The entry that is launched; the only one of the file by default.
    pub entry: Option<Located<String>>,
    /// Blocks of a launch, one to three numbers or expressions: `["rows(input)", 1, 1]`. With `block` and `args` it is
    /// the launch table that makes an op of the kernel.
    pub grid: Option<Located<Vec<Located<Expression>>>>,
    /// Threads of a block, one to three numbers or expressions.
    pub block: Option<Located<Vec<Located<Expression>>>>,
    /// Bytes of dynamic shared memory. Default: what the compiler of the source asks for, 0 for PTX.
    pub shared: Option<Located<Expression>>,
    /// Arguments in the order of the PTX: tensors of the op, numbers and expressions, and "null", which Triton's two
    /// parameters at the end are given.
    pub args: Option<Located<Vec<Located<Expression>>>>,
    /// Compiled kernels for some cases each, in place of the source. What no variant covers is not generated.
    pub variants: Option<Located<Vec<VariantTable>>>,
}

/// `[kernels.compile]`: how PTX comes of a `.cu` file or a Triton kernel.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompileTableFile {
    /// The architecture that code is made for. Default "sm_80".
    pub target: Option<Located<String>>,
    /// More options for nvcc or NVRTC, as in `["-use_fast_math"]`.
    pub options: Option<Located<Vec<String>>>,
    /// Types of a Triton kernel's arguments that are not constants, as in `["*fp32", "*fp32", "i32"]`, in order.
    pub signature: Option<Located<Vec<String>>>,
    /// Values of a Triton kernel's `tl.constexpr` arguments, by name. Write infinities and NaN as "float:-inf", "float:inf"
    /// and "float:nan", types as "type:float32".
    pub constants: Option<Located<BTreeMap<String, serde_json::Value>>>,
    /// Arguments of a Triton kernel, by name, that Triton may assume to be divisible by 16. Default: all pointers.
    pub divisible_by_16: Option<Located<Vec<String>>>,
    /// Warps of a block of a Triton kernel. Default 4.
    pub num_warps: Option<Located<u32>>,
    /// Stages of a Triton kernel's loops. Default 3.
    pub num_stages: Option<Located<u32>>,
}

impl CompileTableFile {
    /// The keys that are there, with their places.
    pub(super) fn keys(&self) -> Vec<(&'static str, Range<usize>)> {
        fn place<T>(value: &Option<Located<T>>) -> Option<Range<usize>> {
            value.as_ref().map(|located| located.span.clone())
        }
        let keys = [
            ("target", place(&self.target)),
            ("options", place(&self.options)),
            ("signature", place(&self.signature)),
            ("constants", place(&self.constants)),
            ("divisible_by_16", place(&self.divisible_by_16)),
            ("num_warps", place(&self.num_warps)),
            ("num_stages", place(&self.num_stages)),
        ];
        keys.into_iter().filter_map(|(name, span)| Some((name, span?))).collect()
    }
}

/// How PTX comes of a `.cu` file or a Triton kernel, as the compilers see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompileTable {
    /// The architecture that code is made for.
    pub target: Option<String>,
    /// More options for nvcc or NVRTC.
    pub options: Vec<String>,
    /// Types of a Triton kernel's arguments that are not constants, in order.
    pub signature: Vec<String>,
    /// Values of a Triton kernel's `tl.constexpr` arguments, by name.
    pub constants: BTreeMap<String, serde_json::Value>,
    /// Arguments of a Triton kernel, by name, that Triton may assume to be divisible by 16.
    pub divisible_by_16: Option<Vec<String>>,
    /// Warps of a block of a Triton kernel.
    pub num_warps: Option<u32>,
    /// Stages of a Triton kernel's loops.
    pub num_stages: Option<u32>,
}

/// What a kernel is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A `.ptx` file, taken as written.
    Ptx,
    /// A `.cu` file.
    Cuda,
    /// A Triton kernel, `file.py:kernel`.
    Triton,
}

impl SourceKind {
    /// The kind of a source, as written.
    pub fn of(source: &str) -> Option<Self> {
        let has_name = |name: &str| !name.is_empty() && !name.contains(['/', ':']);
        match source.rsplit_once(".py:") {
            Some((file, kernel)) => (!file.is_empty() && has_name(kernel)).then_some(SourceKind::Triton),
            None if source.ends_with(".ptx") => Some(SourceKind::Ptx),
            None if source.ends_with(".cu") => Some(SourceKind::Cuda),
            None => None,
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            SourceKind::Ptx => "a .ptx file, which is taken as written",
            SourceKind::Cuda => "a .cu file",
            SourceKind::Triton => "a Triton kernel",
        }
    }

    /// The keys of `[kernels.compile]` that mean something for it.
    pub(super) fn compile_keys(self) -> &'static [&'static str] {
        match self {
            SourceKind::Ptx => &[],
            SourceKind::Cuda => &["target", "options"],
            SourceKind::Triton => &["target", "signature", "constants", "divisible_by_16", "num_warps", "num_stages"],
        }
    }
}

/// The number of an architecture of NVIDIA's: 80 of `sm_80`, and 90 of `sm_90a`, which is that machine with
/// instructions of its own.
pub fn architecture_number(text: &str) -> Option<u32> {
    let name = text.strip_prefix("sm_")?;
    let digits = name.strip_suffix(['a', 'f']).unwrap_or(name);
    let written = (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| written && !digits.starts_with('0'))
}

/// Whether a text names an architecture of NVIDIA's, such as `sm_80` or `sm_90a`; what to write if not.
pub fn check_architecture(text: &str) -> Result<(), String> {
    let unknown = || format!("'{text}' is not an architecture; write it as in sm_80 or sm_90a");
    architecture_number(text).map(|_| ()).ok_or_else(unknown)
}

/// `[lint]`: checks of all compiled kernels.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LintTable {
    /// Files with rules of the project's own.
    pub rule_files: Option<Vec<Located<String>>>,
    /// Architectures that registers, spills and machine code are measured for. Default: that of the PTX.
    pub architectures: Option<Vec<Located<String>>>,
    /// Severities of rules that differ from their defaults.
    pub severity: Option<BTreeMap<String, Severity>>,
    /// Rules that are silenced for all kernels.
    pub allow: Option<Vec<String>>,
    /// Whether a kernel is in error if a rule could not be checked, say for want of ptxas. Default false.
    pub fail_on_unchecked: Option<bool>,
}

/// `[kernels.artifact_checks]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArtifactChecksTable {
    /// Most registers that a thread may use. Default 128.
    pub max_registers: Option<u64>,
    /// Most registers that may be spilled to local memory. Default 0.
    pub max_spills: Option<u64>,
    /// Most bytes of local memory. Default 0.
    pub max_local_memory_bytes: Option<u64>,
    /// Instructions of PTX or of the machine that must not appear, as in `["ld.global.cv", "LDG.E.SYS"]`.
    pub forbidden_instructions: Vec<String>,
    /// Instructions that must appear.
    pub required_instructions: Vec<String>,
    /// Rules that are silenced for this kernel.
    pub allow: Vec<String>,
    /// Severities of rules for this kernel.
    pub severity: BTreeMap<String, Severity>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    pub name: String,
    /// Line of its name in the file, from 1.
    pub line: usize,
    /// Place of its source in the file.
    pub span: Range<usize>,
    /// Source, as written: `.ptx`, `.cu`, or `file.py:kernel`.
    pub source: String,
    pub reference: Option<String>,
    /// How the source is compiled.
    pub compile: CompileTable,
    pub artifact_checks: ArtifactChecks,
    /// How it is launched, if it can be.
    pub launch: Option<LaunchTable>,
}

/// What a compiled kernel is held to. A limit that is not there is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArtifactChecks {
    /// Most registers of a thread.
    pub max_registers: Option<u64>,
    pub max_spills: Option<u64>,
    /// Most bytes of local memory.
    pub max_local_memory_bytes: Option<u64>,
    /// Instructions that must not appear.
    pub forbidden_instructions: Vec<String>,
    /// Instructions that must appear.
    pub required_instructions: Vec<String>,
    /// Rules that are silenced.
    pub allow: Vec<String>,
    /// Severities that differ from the rules' own.
    pub severity: BTreeMap<String, Severity>,
    /// Whether a rule that could not be checked is an error.
    pub fail_on_unchecked: bool,
}

/// How all compiled kernels are checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lint {
    /// Files with rules of the project's own, as written, and their place in the file.
    pub rule_files: Vec<Located<String>>,
    /// Architectures to measure for; that of the PTX if empty.
    pub architectures: Vec<String>,
}

/// Fills in defaults. What `[lint]` says holds for every kernel that does not say otherwise.
pub(super) fn resolve_kernel(table: KernelTable, lint: &LintTable, source: &Source) -> Kernel {
    let launch = resolve_launch(&table);
    let checks = table.artifact_checks.unwrap_or_default();
    let mut severity = lint.severity.clone().unwrap_or_default();
    severity.extend(checks.severity);
    let mut allow = lint.allow.clone().unwrap_or_default();
    allow.extend(checks.allow);
    Kernel {
        line: line_of(&source.text, &table.name.span),
        span: table.source.span.clone(),
        name: table.name.value,
        source: table.source.value,
        reference: table.reference.filter(|reference| !reference.is_empty()),
        compile: resolve_compile(table.compile.unwrap_or_default()),
        artifact_checks: ArtifactChecks {
            max_registers: Some(checks.max_registers.unwrap_or(128)),
            max_spills: Some(checks.max_spills.unwrap_or(0)),
            max_local_memory_bytes: Some(checks.max_local_memory_bytes.unwrap_or(0)),
            forbidden_instructions: checks.forbidden_instructions,
            required_instructions: checks.required_instructions,
            allow,
            severity,
            fail_on_unchecked: lint.fail_on_unchecked.unwrap_or(false),
        },
        launch,
    }
}

fn resolve_compile(table: CompileTableFile) -> CompileTable {
    CompileTable {
        target: table.target.map(|located| located.value),
        options: table.options.map(|located| located.value).unwrap_or_default(),
        signature: table.signature.map(|located| located.value).unwrap_or_default(),
        constants: table.constants.map(|located| located.value).unwrap_or_default(),
        divisible_by_16: table.divisible_by_16.map(|located| located.value),
        num_warps: table.num_warps.map(|located| located.value),
        num_stages: table.num_stages.map(|located| located.value),
    }
}

pub(super) fn resolve_lint(table: LintTable) -> Lint {
    let architectures = table.architectures.unwrap_or_default();
    Lint {
        rule_files: table.rule_files.unwrap_or_default(),
        architectures: architectures.into_iter().map(|located| located.value).collect(),
    }
}
