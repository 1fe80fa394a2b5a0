//! What a verdict is made of: checks, findings, counts and errors, as they travel and are shown.

use std::fmt;

use crate::schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::emulation::CodePlace;
use crate::number_text;

/// The check that fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The runner gave no output.
    Runner,
    /// An output has another shape.
    Shape,
    /// An output has another dtype.
    Dtype,
    /// An element is further from the reference than allowed.
    Value,
    /// NaN where the reference has none.
    UnexpectedNan,
    /// No NaN where the reference is NaN.
    MissingNan,
    /// An infinity where the reference is finite.
    UnexpectedInfinity,
    /// Not the infinity that the reference has.
    MissingInfinity,
    /// Elements of an output still hold the poison it was given.
    NotWritten,
    /// Memory next to a buffer was written.
    OutOfBounds,
    /// An input was changed.
    InputModified,
    /// A second run gave other bits.
    Nondeterministic,
    /// An output lies in the memory of an input.
    Aliasing,
    /// An output changed after it was returned, when the kernel was called again.
    OutputOverwritten,
    /// The output is that of an earlier call with other data.
    StaleResult,
    /// A case that passed fails after more calls.
    LaterCalls,
    /// A transformed case, by a property of the op, failed.
    Metamorphic,
    /// A structural property that the user demands does not hold.
    Invariant,
    /// An address that is not a multiple of what the access needs.
    Misaligned,
    /// Memory was read that nothing had written.
    Uninitialised,
    /// Accesses to the same memory that nothing orders.
    Race,
    /// Barriers or operations of a warp that not all threads reach as they must.
    Synchronisation,
    /// A call returned a result without running the kernel that is tested.
    NotLaunched,
    /// A call left its thread rounding otherwise, or flushing subnormal numbers.
    FloatEnvironment,
}

impl Check {
    /// Whether it is about what an output holds, or whether there is one, rather than about memory or launches.
    pub const fn is_about_values(self) -> bool {
        !matches!(
            self,
            Check::NotWritten
                | Check::OutOfBounds
                | Check::InputModified
                | Check::Aliasing
                | Check::OutputOverwritten
                | Check::StaleResult
                | Check::Misaligned
                | Check::Uninitialised
                | Check::Race
                | Check::Synchronisation
                | Check::NotLaunched
                | Check::FloatEnvironment
        )
    }

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Check::Runner => "runner",
            Check::Shape => "shape",
            Check::Dtype => "dtype",
            Check::Value => "value",
            Check::UnexpectedNan => "unexpected_nan",
            Check::MissingNan => "missing_nan",
            Check::UnexpectedInfinity => "unexpected_infinity",
            Check::MissingInfinity => "missing_infinity",
            Check::NotWritten => "not_written",
            Check::OutOfBounds => "out_of_bounds",
            Check::InputModified => "input_modified",
            Check::Nondeterministic => "nondeterministic",
            Check::Aliasing => "aliasing",
            Check::OutputOverwritten => "output_overwritten",
            Check::StaleResult => "stale_result",
            Check::LaterCalls => "later_calls",
            Check::Metamorphic => "metamorphic",
            Check::Invariant => "invariant",
            Check::Misaligned => "misaligned",
            Check::Uninitialised => "uninitialised",
            Check::Race => "race",
            Check::Synchronisation => "synchronisation",
            Check::NotLaunched => "not_launched",
            Check::FloatEnvironment => "float_environment",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// What kind of bug an error looks like. It describes a failure; it never decides one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BugClass {
    /// Only the last, partial tile is wrong.
    TailTile,
    /// Padding takes part in a denominator: rows sum to less than one.
    Padding,
    /// Whole rows are off, each by a factor of its own.
    Normaliser,
    /// The output is the right one times a constant.
    Scale,
    /// Wrong only where memory is not contiguous.
    Stride,
    /// Part of a sum is missing: wrong once the reduction is longer than a tile.
    Accumulator,
    /// Right for the first entry of the batch only.
    BatchIndex,
    /// Output elements never written.
    NeverWritten,
    /// Stores outside of the buffer.
    OutOfBounds,
    /// The kernel writes over its inputs.
    InputOverwritten,
    /// Results differ between runs.
    Race,
    /// An input is returned in place of a result.
    InputReturned,
    /// A result is kept and returned for other data at the same addresses.
    CachedByAddress,
    /// The output does not depend on the inputs.
    Constant,
    /// Every call returns the same memory.
    ReusedOutput,
    /// Memory that nobody wrote, or wrote for something else, is returned.
    StaleMemory,
    /// Right in the first calls only.
    FirstCallsOnly,
    /// NaN or infinity mishandled.
    SpecialValues,
    /// A formula that is wrong everywhere.
    Formula,
    /// Too small an error to name: precision lost.
    Precision,
    /// Something else than the kernel computed the result.
    Fallback,
    /// The kernel changes how everything after it computes.
    FloatEnvironment,
    /// The kernel crashed or refused.
    Crash,
}

impl BugClass {
    /// The words used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            BugClass::TailTile => "tail tile",
            BugClass::Padding => "padding in a denominator",
            BugClass::Normaliser => "normaliser of a row",
            BugClass::Scale => "scale",
            BugClass::Stride => "stride",
            BugClass::Accumulator => "accumulator",
            BugClass::BatchIndex => "batch index",
            BugClass::NeverWritten => "never written",
            BugClass::OutOfBounds => "out of bounds",
            BugClass::InputOverwritten => "input overwritten",
            BugClass::Race => "race",
            BugClass::InputReturned => "input returned",
            BugClass::CachedByAddress => "result cached by address",
            BugClass::Constant => "constant output",
            BugClass::ReusedOutput => "reused output memory",
            BugClass::StaleMemory => "stale memory",
            BugClass::FirstCallsOnly => "right in the first calls only",
            BugClass::SpecialValues => "special values",
            BugClass::Formula => "formula",
            BugClass::Precision => "precision",
            BugClass::Fallback => "falls back to another implementation",
            BugClass::FloatEnvironment => "floating-point environment",
            BugClass::Crash => "crash",
        }
    }
}

impl fmt::Display for BugClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The element that is furthest beyond what is allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstElement {
    /// Its coordinates.
    pub index: Vec<usize>,
    /// What the kernel returned.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub actual: f64,
    /// What the reference says.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub expected: f64,
    /// How far it is from what would round to it.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub error: f64,
    /// What is allowed.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub allowed: f64,
}

/// A place in the code of a compiled kernel, with the file that it is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelPlace {
    /// The PTX file as the project names it; none where the kernel has one source only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptx: Option<String>,
    /// The place.
    #[serde(flatten)]
    pub code: CodePlace,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The check that fired.
    pub check: Check,
    /// The output or input concerned.
    pub tensor: String,
    /// Elements concerned.
    pub mismatched: usize,
    /// Elements of the tensor.
    pub elements: usize,
    /// The worst of them.
    pub worst: Option<WorstElement>,
    /// What it looks like.
    pub bug_class: BugClass,
    /// What was seen, in words.
    pub explanation: String,
    /// Where in the code, if that is known; after it the other side, as of a race.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<KernelPlace>,
}

impl Finding {
    /// What was seen, in one line.
    pub fn headline(&self) -> &str {
        self.explanation.lines().next().unwrap_or_default()
    }
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every check that could be made passed.
    Passed,
    /// At least one check fired.
    Failed,
    /// Nothing could be said: no bound, or no element that can be judged.
    Undetermined,
    /// The reference itself gave no answer: neither the kernel nor the case is to blame.
    Error,
}

/// A wrong output that a verdict should reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decoy {
    /// Nothing but zeros.
    Zeros,
    /// A copy of the input.
    InputCopy,
    /// The mean of the right output everywhere.
    Mean,
    /// The right output scaled by 1 %, 4 ulp or twice the tolerance, whichever is most.
    Scaled,
    /// The right output with its last tile zeroed.
    TailZeroed,
}

/// Numbers of elements by how they were judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ElementCounts {
    /// Judged.
    pub compared: usize,
    /// Failed.
    pub mismatched: usize,
    /// Neither passed nor failed.
    pub undetermined: usize,
    /// Passed although a named intermediate overflows.
    pub excused: usize,
}

/// The largest errors over all elements that are numbers on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LargestErrors {
    /// Largest |out − y|.
    #[serde(with = "number_text", alias = "absolute")]
    #[schemars(with = "number_text::NumberText")]
    pub max_abs_diff: f64,
    /// Largest |out − y| / |y|, where y is not zero.
    #[serde(with = "number_text", alias = "relative")]
    #[schemars(with = "number_text::NumberText")]
    pub max_rel_diff: f64,
    /// Largest |out − y| in units of the last place of y in the output's dtype.
    #[serde(with = "number_text", alias = "ulps")]
    #[schemars(with = "number_text::NumberText")]
    pub max_ulp_diff: f64,
    /// Largest share of what is allowed.
    #[serde(with = "number_text", alias = "share")]
    #[schemars(with = "number_text::NumberText")]
    pub tolerance_share: f64,
}

impl LargestErrors {
    /// The larger of both, each for itself.
    pub fn join(self, other: Self) -> Self {
        Self {
            max_abs_diff: self.max_abs_diff.max(other.max_abs_diff),
            max_rel_diff: self.max_rel_diff.max(other.max_rel_diff),
            max_ulp_diff: self.max_ulp_diff.max(other.max_ulp_diff),
            tolerance_share: self.tolerance_share.max(other.tolerance_share),
        }
    }
}
