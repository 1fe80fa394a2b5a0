//! The assembler `ptxas`: what it says of each entry, read out of its text.

use std::collections::BTreeMap;

use gpuemu_model::artifact::CompiledMetrics;

/// What `ptxas -v` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PtxasReport {
    /// Entries by name. What is not said of one is not there.
    pub entries: BTreeMap<String, CompiledMetrics>,
    /// Functions that are not entries: those that `ptxas` did not put into their callers.
    pub functions: BTreeMap<String, Frame>,
}

/// What a function keeps in local memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of a thread's stack.
    pub stack_bytes: u64,
    /// Bytes of spilled registers that are stored.
    pub spill_store_bytes: u64,
    /// Bytes of spilled registers that are loaded.
    pub spill_load_bytes: u64,
}

/// Reads the text. Lines begin with the program's name, or with nothing, or with something else: only what follows
/// counts.
pub fn read_report(text: &str, architecture: &str) -> PtxasReport {
    let mut report = PtxasReport::default();
    let mut frames = BTreeMap::new();
    // The entry that is being compiled, and the function that the next figures are of.
    let (mut entry, mut function) = (None::<&str>, None::<&str>);
    for line in text.lines() {
        if let Some(name) = after(line, "Compiling entry function '").and_then(|rest| rest.split('\'').next()) {
            (entry, function) = (Some(name), None);
            let fresh = CompiledMetrics { architecture: architecture.to_string(), ..CompiledMetrics::default() };
            report.entries.insert(name.to_string(), fresh);
        } else if let Some(name) = after(line, "Function properties for ") {
            // Older versions put the name in quotes.
            function = Some(name.trim().trim_matches('\''));
        } else if let Some(frame) = frame_of(line) {
            if let Some(name) = function.take() {
                frames.insert(name, frame);
            }
        } else if let Some(used) = after(line, "Used ") {
            // Taken, so that a second such line, of a function, is not added to the entry.
            if let Some(metrics) = entry.take().and_then(|name| report.entries.get_mut(name)) {
                read_use(used, metrics);
            }
        }
    }
    for (name, frame) in frames {
        match report.entries.get_mut(name) {
            Some(metrics) => {
                metrics.stack_bytes = Some(frame.stack_bytes);
                metrics.spill_store_bytes = Some(frame.spill_store_bytes);
                metrics.spill_load_bytes = Some(frame.spill_load_bytes);
            }
            None => {
                report.functions.insert(name.to_string(), frame);
            }
        }
    }
    report
}

/// The first line of the text that says why nothing was assembled, without the program's name.
pub fn first_error(text: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| {
        let (place, message) = ["fatal ", "error "].iter().find_map(|word| line.split_once(word))?;
        let message = message.trim_start().strip_prefix(':')?.trim();
        // "ptxas kernel.ptx, line 5; fatal : ..." has a place, "ptxas fatal : ..." has none.
        let place = place.trim().trim_end_matches(';').split_once(' ').map(|(_, place)| place.trim());
        Some(match place.filter(|place| !place.is_empty()) {
            Some(place) => format!("{place}: {message}"),
            None => message.to_string(),
        })
    });
    lines.next()
}

/// Whether an error is about the assembler, not the code: another version may do it.
pub fn is_about_the_version(error: &str) -> bool {
    error.contains("Unsupported .version") || error.contains("is not defined for option 'gpu-name'")
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.split_once(mark).map(|(_, rest)| rest)
}

/// The number that stands before these words.
fn number_before(text: &str, words: &str) -> Option<u64> {
    text.split_once(words)?.0.trim_end().rsplit(' ').next()?.parse().ok()
}

fn frame_of(line: &str) -> Option<Frame> {
    Some(Frame {
        stack_bytes: number_before(line, "bytes stack frame")?,
        spill_store_bytes: number_before(line, "bytes spill stores")?,
        spill_load_bytes: number_before(line, "bytes spill loads")?,
    })
}

/// "26 registers, used 1 barriers, 2048 bytes smem, 388 bytes cmem[0]": parts may be missing.
fn read_use(used: &str, metrics: &mut CompiledMetrics) {
    // No static shared memory is not mentioned.
    metrics.shared_bytes = Some(0);
    for part in used.split(',').map(str::trim) {
        let number = || part.split(' ').find_map(|word| word.parse::<u64>().ok());
        if part.ends_with("registers") {
            metrics.registers = number();
        } else if part.ends_with("barriers") {
            metrics.barriers = number();
        } else if part.ends_with("smem") {
            // Old versions write static and reserved memory as a sum.
            metrics.shared_bytes = sum(part);
        } else if part.contains("cmem[") {
            metrics.constant_bytes = sum(part).map(|bytes| metrics.constant_bytes.unwrap_or(0).saturating_add(bytes));
        }
    }
}

/// "388 bytes cmem[0]", or "1024+16 bytes smem".
fn sum(part: &str) -> Option<u64> {
    let mut numbers = part.split(' ').next()?.split('+');
    numbers.try_fold(0_u64, |sum, number| sum.checked_add(number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_ENTRIES: &str = include_str!("../../tests/data/tools/ptxas_13.4_two_entries_sm_80.txt");
    const RECURSION: &str = include_str!("../../tests/data/tools/ptxas_blackwell_13.4_recursion_sm_90a.txt");

    fn metrics(figures: [u64; 6], constant_bytes: Option<u64>, architecture: &str) -> CompiledMetrics {
        let [registers, stack, stores, loads, shared, barriers] = figures.map(Some);
        CompiledMetrics {
            architecture: architecture.to_string(),
            registers,
            stack_bytes: stack,
            spill_store_bytes: stores,
            spill_load_bytes: loads,
            shared_bytes: shared,
            barriers,
            constant_bytes,
            sass: None,
        }
    }

    #[test]
    fn every_entry_has_its_own_figures() {
        let report = read_report(TWO_ENTRIES, "sm_80");
        let expected = [
            ("first".to_string(), metrics([32, 256, 0, 0, 1024, 1], Some(364), "sm_80")),
            ("second".to_string(), metrics([32, 944, 2240, 2512, 0, 0], Some(364), "sm_80")),
        ];
        assert_eq!(report.entries, BTreeMap::from(expected));
        assert_eq!(report.functions, BTreeMap::from([("_Z6helperfi".to_string(), Frame::default())]));
    }

    #[test]
    fn figures_of_a_function_are_not_those_of_an_entry() {
        let report = read_report(RECURSION, "sm_90a");
        // Where no constant memory is mentioned, it is not known to be none.
        assert_eq!(report.entries["second"], metrics([26, 0, 0, 0, 0, 0], None, "sm_90a"));
        let frame = Frame { stack_bytes: 72, spill_store_bytes: 32, spill_load_bytes: 32 };
        assert_eq!(report.functions["_Z3fibiPVi$1"], frame);
    }

    #[test]
    fn prefixes_and_parts_vary() {
        let text = "\
ptxas-blackwell info    : Compiling entry function 'k' for 'sm_100'
ptxas-blackwell info    : Function properties for k
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas-blackwell info    : Used 40 registers, used 2 barriers, 8 bytes cumulative stack size, 4096+16 bytes smem, \
400 bytes cmem[0], 24 bytes cmem[2]
ptxas info    : Used 99 registers";
        let report = read_report(text, "sm_100");
        assert_eq!(report.entries["k"], metrics([40, 8, 4, 12, 4112, 2], Some(424), "sm_100"));
    }

    #[test]
    fn what_is_not_said_is_not_known() {
        let report = read_report("ptxas info    : Compiling entry function 'k' for 'sm_80'\n", "sm_80");
        let nothing = CompiledMetrics { architecture: "sm_80".to_string(), ..CompiledMetrics::default() };
        assert_eq!(report.entries["k"], nothing);
        assert_eq!(read_report("", "sm_80"), PtxasReport::default());
        let broken = "Compiling entry function '\nFunction properties for \nUsed \n bytes stack frame\n bytes smem";
        read_report(broken, "sm_80");
        let large =
            "Compiling entry function 'k'\nUsed 99999999999999999999 registers, 1+18446744073709551615 bytes smem";
        let metrics = &read_report(large, "sm_80").entries["k"];
        assert_eq!((metrics.registers, metrics.shared_bytes), (None, None));
    }

    #[test]
    fn the_first_error_is_told_without_the_program() {
        let refused = "ptxas kernel.ptx, line 5; fatal   : Unsupported .version 9.0; current version is '8.8'\n\
                       ptxas fatal   : Ptx assembly aborted due to errors\n";
        let error = first_error(refused).unwrap();
        assert_eq!(error, "kernel.ptx, line 5: Unsupported .version 9.0; current version is '8.8'");
        assert!(is_about_the_version(&error));
        let older =
            "ptxas-blackwell fatal   : SM version specified by .target is higher than default SM version assumed";
        let error = first_error(older).unwrap();
        assert_eq!(error, "SM version specified by .target is higher than default SM version assumed");
        assert!(!is_about_the_version(&error));
        assert_eq!(first_error("ptxas info    : 0 bytes gmem\n"), None);
    }
}
