//! The linter over kernels as Triton, NVRTC and clang write them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{KernelArtifact, LintResult, Severity};
use gpuemu_ptx::lint::lint;
use gpuemu_ptx::{Source, metrics};

const FOLDERS: [&str; 6] = ["clang_sm80", "lint", "nvrtc_sm80", "pairs", "triton_sm80", "triton_sm90"];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn files() -> Vec<PathBuf> {
    let folders = FOLDERS.iter().map(|folder| data().join("ptx").join(folder));
    let entries = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    assert!(files.len() > 40, "{} files", files.len());
    files
}

fn checked(file: &Path) -> LintResult {
    let source = Source::read(file).unwrap_or_else(|error| panic!("{error}"));
    let module = source.parse().unwrap_or_else(|error| panic!("{error}"));
    let artifact = KernelArtifact {
        kernel: name(file),
        source: name(file),
        target: module.architecture().into(),
        entries: metrics::measure(&source, &module).unwrap_or_else(|error| panic!("{error}")),
        ..KernelArtifact::default()
    };
    lint(&source, &module, &artifact, &ArtifactChecks::default(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn name(file: &Path) -> String {
    let part = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_string();
    format!("{}/{}", part(file.parent().unwrap()), part(file))
}

/// How many findings of each rule each file has. Whoever changes a rule looks at every finding that comes or goes
/// before this table is changed.
#[test]
fn findings_are_those_that_were_looked_at() {
    let mut table = String::new();
    for file in files() {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for finding in checked(&file).findings {
            *counts.entry(format!("{} {}", finding.rule, finding.severity.name())).or_default() += 1;
        }
        let counts: Vec<String> = counts.into_iter().map(|(rule, count)| format!("{rule} {count}")).collect();
        table +=
            &format!("{}: {}\n", name(&file), if counts.is_empty() { "nothing".into() } else { counts.join(", ") });
    }
    let known = std::fs::read_to_string(data().join("lint_real_kernels.txt")).unwrap_or_default();
    assert!(table == known, "the table is now\n{table}");
}

/// All these kernels run right on hardware, but for those that were made to be found.
#[test]
fn no_barrier_is_found_to_diverge() {
    for file in files().into_iter().filter(|file| !file.ends_with("lint/barriers.ptx")) {
        let findings = checked(&file).findings;
        let barrier = findings.iter().find(|finding| finding.rule == "divergent-barrier");
        assert!(barrier.is_none(), "{}: {barrier:?}", name(&file));
    }
}

#[test]
fn everything_is_checked_and_every_finding_has_a_place() {
    for file in files() {
        let result = checked(&file);
        assert_eq!(result.not_checked, [], "{}", name(&file));
        let entries: Vec<&String> = result.findings.iter().map(|finding| &finding.entry).collect();
        if entries.first() != entries.last() {
            continue;
        }
        let lines: Vec<_> =
            result.findings.iter().map(|finding| (finding.line.unwrap(), finding.column.unwrap())).collect();
        assert!(lines.is_sorted(), "{}", name(&file));
    }
}

/// `x[row * n + column]` of a softmax in Triton, and the same of a matrix product in CUDA.
#[test]
fn rows_times_strides_are_found_at_the_line_of_the_source() {
    let softmax = checked(&data().join("ptx/triton_sm80/softmax.ptx"));
    let found = softmax.findings.iter().find(|finding| finding.severity == Severity::Warning).unwrap();
    let origin = found.origin.as_ref().unwrap();
    assert_eq!((found.rule.as_str(), origin.file.as_str(), origin.line), ("address-overflow", "kernels.py", 13));
    assert!(found.message.contains("from element 2,147,483,648 on, 8 GiB into a buffer"), "{}", found.message);
    let product = checked(&data().join("ptx/nvrtc_sm80/tiled_mm.ptx"));
    let lines: Vec<_> = product.findings.iter().map(|finding| (finding.line.unwrap(), finding.severity)).collect();
    assert_eq!(lines, [(67, Severity::Warning), (177, Severity::Warning)]);
    // Offsets of these are computed in 64 bits.
    for file in ["triton_sm80/f64_int64.ptx", "nvrtc_sm80/saxpy_gs.ptx"] {
        assert_eq!(checked(&data().join("ptx").join(file)).findings, [], "{file}");
    }
}

/// Entries of a file with findings of a rule, with their severity and the line of the source.
fn entries_with(file: &str, rule: &str) -> Vec<(String, Severity, u64)> {
    let findings = checked(&data().join("ptx/lint").join(file)).findings;
    let findings = findings.into_iter().filter(|finding| finding.rule == rule);
    findings.map(|finding| (finding.entry, finding.severity, finding.origin.unwrap().line)).collect()
}

/// The sources are beside, and say which kernels are wrong.
#[test]
fn barriers_that_some_threads_do_not_reach_are_found_and_no_others() {
    let found = entries_with("barriers.ptx", "divergent-barrier");
    let wanted = [("early_return", 46), ("half_of_them", 56), ("own_turns", 66)];
    assert_eq!(found, wanted.map(|(entry, line)| (entry.to_string(), Severity::Warning, line)));
}

#[test]
fn offsets_in_32_bits_are_found_and_those_in_64_are_not() {
    let found = entries_with("offsets.ptx", "address-overflow");
    let warnings = found.iter().filter(|(_, severity, _)| *severity == Severity::Warning);
    let entries: Vec<&str> = warnings.map(|(entry, ..)| entry.as_str()).collect();
    assert_eq!(entries, ["row_int", "batch_int", "walking_offset", "unsigned_bytes", "gather_int"]);
    let notes: Vec<_> = found.iter().filter(|(_, severity, _)| *severity == Severity::Note).collect();
    assert_eq!(notes, [&("gather_int".to_string(), Severity::Note, 40)]);
}

#[test]
fn a_row_that_is_converted_first_is_right_in_triton_too() {
    let found = entries_with("rows_int32.ptx", "address-overflow");
    assert_eq!(found, [("rows_int32".to_string(), Severity::Warning, 12)]);
    assert_eq!(entries_with("rows_int64.ptx", "address-overflow"), []);
}

#[test]
fn neighbouring_values_are_found_where_a_vector_could_move_them() {
    let found = entries_with("vectors.ptx", "scalar-access");
    let entries: Vec<(&str, u64)> = found.iter().map(|(entry, _, line)| (entry.as_str(), *line)).collect();
    let wanted = [("four_by_four", 5), ("four_by_four", 6), ("complex_numbers", 27), ("local_array", 31)];
    // The compiler takes four turns of this loop at once.
    assert_eq!(entries, [wanted.as_slice(), &[("local_array", 32)]].concat());
    let found = entries_with("vectors.ptx", "local-memory-in-loop");
    assert!(!found.is_empty() && found.iter().all(|(entry, ..)| entry == "local_array"), "{found:?}");
}
