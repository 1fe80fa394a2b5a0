//! What the machine found wrong with a kernel's accesses, for people and for programs.

use std::fmt::Write;

use gpuemu_model::emulation::{AccessCheck, AccessFinding};
use serde::Serialize;

use super::style::{BAD, paint};

/// A finding, with what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownFinding {
    /// The check that found it.
    pub check: AccessCheck,
    #[serde(flatten)]
    pub finding: AccessFinding,
    /// Bytes that the buffer has, where it is one of the arguments.
    pub buffer_bytes: Option<u64>,
}

impl ShownFinding {
    /// Of a finding in a launch with buffers of these names and sizes.
    pub fn new(finding: AccessFinding, buffers: &[(&str, u64)]) -> Self {
        let size = |name: &str| buffers.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes);
        let buffer_bytes = finding.buffer.as_deref().and_then(size);
        Self { check: finding.fault.check(), finding, buffer_bytes }
    }
}

/// Findings, one after the other.
pub fn text(findings: &[ShownFinding], more: u64) -> String {
    let mut text = String::new();
    for finding in findings {
        // Writing to a string cannot fail.
        let _ = write_finding(&mut text, finding);
    }
    if more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    text
}

/// How many there are.
pub fn counted(findings: u64) -> String {
    super::kernels::counted(findings, "finding", "findings")
}

fn write_finding(text: &mut String, shown: &ShownFinding) -> std::fmt::Result {
    let head = format!("error[{}]", shown.finding.fault.name());
    let mut lines = shown.finding.lines(shown.buffer_bytes).into_iter();
    writeln!(text, "{} {}", paint(BAD, &head), lines.next().unwrap_or_default())?;
    lines.try_for_each(|line| writeln!(text, "  {line}"))
}

#[cfg(test)]
mod tests {
    use gpuemu_model::emulation::{AccessFault, CodePlace, OtherAccess, ThreadPlace};

    use super::*;

    fn place(instruction: &str, line: Option<u64>) -> CodePlace {
        let file = line.map(|_| "softmax.py".to_string());
        CodePlace { instruction: instruction.to_string(), ptx_line: 77, file, line }
    }

    fn thread(lane: u32) -> ThreadPlace {
        ThreadPlace { block: [2, 0, 0], thread: [32 + lane, 0, 0], warp: 1, lane }
    }

    fn finding(fault: AccessFault, offset: i64) -> AccessFinding {
        AccessFinding {
            fault,
            message: "a store of 4 bytes leaves out".to_string(),
            place: Some(place("st.global.b32 [%rd5], %r3", Some(12))),
            thread: Some(thread(5)),
            address: Some(0x7f00_0000_0400),
            buffer: Some("out".to_string()),
            offset: Some(offset),
            other: None,
            occurrences: 96,
        }
    }

    fn plain(finding: AccessFinding) -> String {
        let shown = ShownFinding::new(finding, &[("in", 8), ("out", 1024)]);
        anstream::adapter::strip_str(&text(&[shown], 3)).to_string()
    }

    #[test]
    fn a_finding_says_where_who_and_how_far() {
        snapbox::assert_data_eq!(
            plain(finding(AccessFault::OutOfBounds, 1028)),
            snapbox::str![[r#"
error[out_of_bounds] a store of 4 bytes leaves out
  at softmax.py:12 (PTX line 77): st.global.b32 [%rd5], %r3
  by block (2, 0, 0), thread (37, 0, 0), warp 1, lane 5
  address 0x7f0000000400, out + 1028, 4 bytes past the end of its 1024
  96 times at this place
and 3 more

"#]]
        );
        let before = plain(finding(AccessFault::OutOfBounds, -8));
        assert!(before.contains("address 0x7f0000000400, 8 bytes before out\n"), "{before}");
        let next = plain(finding(AccessFault::OutOfBounds, 1024));
        assert!(next.contains("out + 1024, just past the end of its 1024\n"), "{next}");
        let within = plain(finding(AccessFault::Misaligned, 2));
        assert!(within.contains("out + 2, of 1024 bytes\n"), "{within}");
    }

    #[test]
    fn the_other_side_of_a_race_is_named() {
        let other = OtherAccess { place: place("ld.global.b32 %r4, [%rd6]", None), thread: thread(9), write: false };
        let race = plain(AccessFinding { other: Some(other.clone()), ..finding(AccessFault::Race, 0) });
        let expected = "  also read by block (2, 0, 0), thread (41, 0, 0), warp 1, lane 9 at PTX line 77: ld.global.b32 %r4, [%rd6]\n";
        assert!(race.contains(expected), "{race}");
        let write = OtherAccess { write: true, ..other };
        let last = plain(AccessFinding { other: Some(write), ..finding(AccessFault::OutOfBounds, 0) });
        assert!(last.contains("  last written by block (2, 0, 0)"), "{last}");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let bare = AccessFinding {
            place: None,
            thread: None,
            address: None,
            offset: None,
            occurrences: 1,
            ..finding(AccessFault::NeverWritten, 0)
        };
        assert_eq!(plain(bare), "error[never_written] a store of 4 bytes leaves out\n  of out\nand 3 more\n");
    }

    #[test]
    fn programs_read_the_check_beside_the_finding() {
        let shown = ShownFinding::new(finding(AccessFault::Race, 0), &[("out", 1024)]);
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(
            (&json["check"], &json["fault"], &json["buffer_bytes"]),
            (&"race".into(), &"race".into(), &1024.into())
        );
        assert_eq!(json["place"]["line"], 12);
        assert_eq!(json["thread"]["lane"], 5);
    }
}
