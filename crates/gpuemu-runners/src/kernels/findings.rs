//! What the machine saw, as the engine reports it.

use gpuemu_engine::verdict::{BugClass, Check, Finding};
use gpuemu_model::emulation::{AccessFault, AccessFinding, CodePlace};
use gpuemu_model::finding::KernelPlace;

/// A finding of the machine as one of a verdict. The code is in a PTX file of the project, if it is named.
pub fn finding(found: &AccessFinding, ptx: Option<&str>) -> Finding {
    let (check, bug_class) = match found.fault {
        AccessFault::OutOfBounds | AccessFault::Unmapped => (Check::OutOfBounds, BugClass::OutOfBounds),
        AccessFault::Misaligned => (Check::Misaligned, BugClass::OutOfBounds),
        AccessFault::ReadOnly => (Check::InputModified, BugClass::InputOverwritten),
        AccessFault::Uninitialised => (Check::Uninitialised, BugClass::StaleMemory),
        AccessFault::NeverWritten => (Check::NotWritten, BugClass::NeverWritten),
        AccessFault::Race | AccessFault::CopyInFlight => (Check::Race, BugClass::Race),
        AccessFault::DivergentBarrier
        | AccessFault::BarrierCount
        | AccessFault::InactiveLane
        | AccessFault::MemberMask => (Check::Synchronisation, BugClass::Race),
    };
    Finding {
        check,
        tensor: found.buffer.clone().unwrap_or_default(),
        mismatched: 0,
        elements: 0,
        worst: None,
        bug_class,
        explanation: words(found),
        places: places(found, ptx),
    }
}

/// Where it is, and where the other side is.
fn places(found: &AccessFinding, ptx: Option<&str>) -> Vec<KernelPlace> {
    let place = |code: &CodePlace| KernelPlace { ptx: ptx.map(ToString::to_string), code: code.clone() };
    found.place.iter().chain(found.other.iter().map(|other| &other.place)).map(place).collect()
}

/// A finding in words: what, where, by whom, with whom.
pub fn words(found: &AccessFinding) -> String {
    let mut words = found.message.clone();
    if let Some(place) = &found.place {
        words.push_str(&format!("; `{}` at {place}", place.instruction));
    }
    if let Some(thread) = &found.thread {
        words.push_str(&format!(", by {thread}"));
    }
    if let Some(other) = &found.other {
        let did = if other.write { "written" } else { "read" };
        words.push_str(&format!("; {did} by {} with `{}` at {}", other.thread, other.place.instruction, other.place));
    }
    if found.occurrences > 1 {
        words.push_str(&format!(" ({} times)", found.occurrences));
    }
    words
}

/// Whether a finding is about an output that nothing wrote, which the engine sees for itself.
pub(crate) fn is_for_the_engine(found: &AccessFinding) -> bool {
    found.fault == AccessFault::NeverWritten
}
