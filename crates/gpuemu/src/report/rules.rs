//! What an issue of a run can be: the rules that reports name, each with what it means and what to do.

use gpuemu_model::finding::Check;

/// A rule that an issue is reported under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IssueRule {
    /// Its name, as in `check/value` or `lint/address-overflow`.
    pub id: String,
    /// What it finds, in a sentence.
    pub summary: String,
    /// What that means and what to do.
    pub help: String,
}

/// What the help of every failed case ends with.
const REPLAY: &str = "The replay line runs the failing case again, byte for byte, on any machine; `gpuemu minimize \
    SEED` ends at the smallest case that fails.";

impl IssueRule {
    fn new(id: impl Into<String>, summary: &str, help: &str) -> Self {
        Self { id: id.into(), summary: summary.to_string(), help: help.to_string() }
    }

    /// The rule of a check of the oracle.
    pub fn check(check: Check) -> Self {
        let (summary, help) = words(check);
        Self::new(format!("check/{check}"), summary, &format!("{help} {REPLAY}"))
    }

    /// A rule of the linter, built in or of the project's own.
    pub fn lint(name: &str) -> Self {
        let id = format!("lint/{name}");
        match gpuemu_ptx::lint::rules().iter().find(|rule| rule.name == name) {
            Some(rule) => Self::new(id, rule.summary, rule.explanation.trim()),
            None => Self::new(
                id,
                "A rule of the project's own does not hold.",
                "The rule is in a file that `[lint] rules` or --rules-file names; `gpuemu lint` shows what it found.",
            ),
        }
    }

    /// Failures that the report counts and does not list.
    pub fn unlisted() -> Self {
        Self::new(
            "run/unlisted-failures",
            "Cases failed that the report does not list.",
            "A report lists the first failures of an op; `gpuemu failures --op NAME` lists all of them.",
        )
    }

    /// A failure that nothing more is known of.
    pub fn failed() -> Self {
        Self::new(
            "run/failed",
            "A validation failed.",
            "The report says that it failed, and lists no finding that says why; `gpuemu failures` lists what is stored.",
        )
    }

    /// Something that could not be judged.
    pub fn error() -> Self {
        Self::new(
            "run/error",
            "Something could not be judged.",
            "It has neither passed nor failed: fix the reference, the op or the environment first. The exit status is \
             2 unless something else failed.",
        )
    }

    /// Cases that were not run.
    pub fn unfinished() -> Self {
        Self::new(
            "run/unfinished",
            "An op ended before all of its cases were run.",
            "The time limit or a first failure ended it, or the run was cancelled. What was not run has not passed: run it \
             again, with more time or in `--shard`s.",
        )
    }

    /// A reservation of a report with evidence.
    pub fn reservation() -> Self {
        Self::new(
            "run/reservation",
            "Evidence is missing, weak or out of date.",
            "A report with evidence does not say passed as long as anything stands against it: run what is named again.",
        )
    }

    pub fn remark() -> Self {
        Self::new(
            "run/remark",
            "Something about the run is worth a look.",
            "It fails nothing by itself: expected failures that expired or pass now, ops that nothing here can run, results \
             that prove little.",
        )
    }

    /// An op or kernel that became worse than a baseline.
    pub fn regression() -> Self {
        Self::new(
            "baseline/regression",
            "An op or a compiled kernel is worse than in the baseline.",
            "The largest error over the same cases grew past the threshold, a case that passed fails now, or a measure of the \
             compiled kernel is worse. `gpuemu diff --baseline TAG` shows it; `gpuemu baseline TAG` keeps the new state.",
        )
    }

    /// Something of a baseline that could not be compared.
    pub fn not_comparable() -> Self {
        Self::new(
            "baseline/not-comparable",
            "An op or kernel of the baseline could not be compared.",
            "It is gone, or its cases can no longer be made. `gpuemu baseline TAG` keeps the new state.",
        )
    }

    /// A kernel that could not be compiled or read.
    pub fn kernel_error() -> Self {
        Self::new(
            "kernel/error",
            "A kernel could not be compiled, read or checked as was demanded.",
            "It has neither passed nor failed; `gpuemu lint --kernel NAME` shows what its compiler says.",
        )
    }
}

/// What a check finds, and what that means.
fn words(check: Check) -> (&'static str, &'static str) {
    match check {
        Check::Runner => {
            ("The op gave no output.", "It crashed, raised an error or refused a case that its schema allows.")
        }
        Check::Shape => {
            ("An output has another shape.", "The signature of the op says which shape follows from the inputs.")
        }
        Check::Dtype => ("An output has another dtype.", "The expected dtype is the signature's, else the input's."),
        Check::Value => (
            "An element is further from the fp64 reference than allowed.",
            "No correct kernel of the declared precision is that far off: look for masks, tails, missing factors, and sums in \
             too low a precision.",
        ),
        Check::UnexpectedNan => {
            ("NaN where the reference has none.", "Look for 0/0, inf - inf and memory that nothing wrote.")
        }
        Check::MissingNan => ("No NaN where the reference is NaN.", "A comparison or a maximum swallowed it."),
        Check::UnexpectedInfinity => (
            "An infinity where the reference is finite.",
            "An intermediate overflows: subtract the maximum first, or accumulate in a wider dtype.",
        ),
        Check::MissingInfinity => ("Not the infinity that the reference has.", "A clamp or a mask replaced it."),
        Check::NotWritten => ("Elements of an output were never written.", "They hold what was in the memory before."),
        Check::OutOfBounds => (
            "Memory outside of a buffer was accessed.",
            "Every value may be right all the same; on a GPU such an access corrupts a neighbour or faults. Look at the mask of \
             the load or store.",
        ),
        Check::InputModified => {
            ("An input was changed.", "The caller still owns it; only ops that work in place may write it.")
        }
        Check::Nondeterministic => {
            ("A second run gave other bits.", "A race, an atomic sum without an order, or memory that nothing wrote.")
        }
        Check::Aliasing => ("An output lies in the memory of an input.", "Whoever changes one changes the other."),
        Check::OutputOverwritten => {
            ("An output changed after it was returned.", "Another call wrote into it: the memory of outputs is reused.")
        }
        Check::StaleResult => (
            "The output is that of an earlier call with other data.",
            "A result is cached by address or shape and returned for other data.",
        ),
        Check::LaterCalls => ("A case that passed fails after more calls.", "State is kept between calls."),
        Check::Metamorphic => (
            "A transformed case, by a property of the op, failed.",
            "Permuted, scaled or shifted inputs must change the output in a known way, and did not.",
        ),
        Check::Invariant => ("A property that the configuration demands does not hold.", "See `invariants` of the op."),
        Check::Misaligned => (
            "An address is not a multiple of what the access needs.",
            "On a GPU such an access faults. Wide loads need aligned rows.",
        ),
        Check::Uninitialised => {
            ("Memory was read that nothing had written.", "The result depends on what was there before.")
        }
        Check::Race => (
            "Accesses to the same memory that nothing orders.",
            "A barrier or an atomic is missing; values may be right by luck.",
        ),
        Check::Synchronisation => (
            "A barrier or an operation of a warp that not all threads reach as they must.",
            "On a GPU it hangs, or exchanges undefined values.",
        ),
        Check::NotLaunched => (
            "A result was returned without running the kernel that is tested.",
            "Something else computed it: a fallback hides the kernel.",
        ),
        Check::FloatEnvironment => (
            "A call left its thread with another direction of rounding, or flushing subnormal numbers.",
            "Whatever the thread computes afterwards comes out differently. Set it back before returning.",
        ),
    }
}
