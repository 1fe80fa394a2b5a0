//! What the machine saw, as the engine reports it.

use gpuemu_engine::runner::Invocation;
use gpuemu_engine::verdict::{BugClass, Check, Finding};
use gpuemu_model::emulation::{AccessFault, AccessFinding, CodePlace};
use gpuemu_model::finding::KernelPlace;
use serde::Deserialize;

/// A launch that a function of Python made in the machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SeenLaunch {
    pub kernel: String,
    /// The line of the caller that launched it.
    pub file: Option<String>,
    pub line: Option<u64>,
    /// Whether it was told which of its arrays are outputs.
    pub outputs_known: bool,
    pub findings: Vec<AccessFinding>,
}

impl SeenLaunch {
    /// Puts what was seen into the call that launched it.
    pub fn tell(&self, invocation: &mut Invocation<'_>) {
        let launched = (self.file.is_some() && self.line.is_some()).then(|| KernelPlace {
            ptx: None,
            code: CodePlace {
                instruction: format!("launch of {}", self.kernel),
                ptx_line: 0,
                file: self.file.clone(),
                line: self.line,
            },
        });
        for found in &self.findings {
            let mut finding = finding(found, None);
            if let Some(launched) = &launched {
                finding.explanation.push_str(&format!("\nlaunched at {}", launched.code));
                finding.places.push(launched.clone());
            }
            invocation.findings.push(finding);
        }
        // One launch of a call whose outputs nobody named leaves it open what was written.
        let first = invocation.looked_at.insert("stores out of bounds");
        if !self.outputs_known {
            invocation.looked_at.remove("unwritten outputs");
        } else if first {
            invocation.looked_at.insert("unwritten outputs");
        }
    }
}

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
        explanation: found.lines(None).join("\n"),
        places: places(found, ptx),
    }
}

/// Where it is, and where the other side is.
fn places(found: &AccessFinding, ptx: Option<&str>) -> Vec<KernelPlace> {
    let place = |code: &CodePlace| KernelPlace { ptx: ptx.map(ToString::to_string), code: code.clone() };
    found.place.iter().chain(found.other.iter().map(|other| &other.place)).map(place).collect()
}

/// Whether a finding is about an output that nothing wrote, which the engine sees for itself.
pub(crate) fn is_for_the_engine(found: &AccessFinding) -> bool {
    found.fault == AccessFault::NeverWritten
}
