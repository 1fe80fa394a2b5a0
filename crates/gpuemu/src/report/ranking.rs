//! The order in which people read what is wrong: the worst first.

use std::cmp::Reverse;

use gpuemu_model::finding::Check;

use super::issues::Issue;

/// Puts issues in order: what failed, what could not be judged, what is unfinished, remarks; of what failed, the gravest
/// check first; of the same check, what is furthest beyond the tolerance.
pub fn sort(issues: &mut [Issue]) {
    issues.sort_by(|left, right| {
        key(left).cmp(&key(right)).then_with(|| share(right).total_cmp(&share(left))).then_with(|| {
            let names = |issue: &Issue| (issue.subject.clone(), issue.rule.id.clone(), issue.summary.clone());
            names(left).cmp(&names(right))
        })
    });
}

type Key = (super::issues::Weight, Reverse<gpuemu_model::artifact::Severity>, u8);

fn key(issue: &Issue) -> Key {
    let gravity = issue.failed.as_ref().map_or(AFTER_CHECKS, |failed| gravity(failed.check));
    (issue.weight, Reverse(issue.severity), gravity)
}

fn share(issue: &Issue) -> f64 {
    issue.failed.as_ref().map_or(0.0, |failed| failed.tolerance_share)
}

/// Lint and regressions come after checks that failed on a case.
const AFTER_CHECKS: u8 = 4;

/// How grave a check is; 0 is the gravest.
fn gravity(check: Check) -> u8 {
    match check {
        // Other people's memory: whoever runs the kernel gets wrong results elsewhere.
        Check::OutOfBounds
        | Check::Misaligned
        | Check::InputModified
        | Check::OutputOverwritten
        | Check::Aliasing
        | Check::Race
        | Check::Synchronisation
        | Check::Uninitialised
        | Check::FloatEnvironment => 0,
        // The result is not that of this call.
        Check::NotLaunched | Check::StaleResult | Check::LaterCalls | Check::NotWritten | Check::Nondeterministic => 1,
        // A wrong result.
        Check::Value
        | Check::UnexpectedNan
        | Check::MissingNan
        | Check::UnexpectedInfinity
        | Check::MissingInfinity
        | Check::Metamorphic
        | Check::Invariant => 2,
        // No result: nobody overlooks that.
        Check::Runner | Check::Shape | Check::Dtype => 3,
    }
}
