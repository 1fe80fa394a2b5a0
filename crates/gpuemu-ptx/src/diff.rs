//! How a compiled kernel differs from an earlier state of it.

use std::collections::BTreeMap;

use gpuemu_model::artifact::{
    ArtifactComparison, ArtifactStatus, CompiledMetrics, ConstantChange, Constants, EntryMetrics, KernelArtifact,
    MetricChange, RegisterClass,
};

/// What more of a measure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Any more is worse: spills and the like, of which a good kernel has none.
    AnyMoreIsWorse,
    /// More is worse beyond the threshold.
    GrowthIsWorse,
    /// It differs, for neither better nor worse.
    Neutral,
}

use Meaning::{AnyMoreIsWorse, GrowthIsWorse, Neutral};

/// A measure: its name, what more of it means, and how much there is, where that is known.
type Measure = (String, Meaning, Option<u64>);

/// Compares two states of a kernel, entry by entry. Growth counts from `threshold` on, as a share.
pub fn compare(before: &KernelArtifact, now: &KernelArtifact, threshold: f64) -> Vec<ArtifactComparison> {
    if let ([old], [new]) = (before.entries.as_slice(), now.entries.as_slice()) {
        return vec![compare_entry(before, now, old, new, threshold)];
    }
    let by_name = |artifact: &'_ KernelArtifact| -> BTreeMap<String, usize> {
        artifact.entries.iter().enumerate().map(|(place, entry)| (entry.entry.clone(), place)).collect()
    };
    let (old_places, new_places) = (by_name(before), by_name(now));
    let mut comparisons = Vec::new();
    for old in &before.entries {
        let new = new_places.get(&old.entry).and_then(|place| now.entries.get(*place));
        comparisons.push(match new {
            Some(new) => compare_entry(before, now, old, new, threshold),
            None => bare(&now.kernel, &old.entry, ArtifactStatus::Missing, "the code no longer has this entry"),
        });
    }
    let unknown = now.entries.iter().filter(|new| !old_places.contains_key(&new.entry));
    comparisons.extend(
        unknown.map(|new| bare(&now.kernel, &new.entry, ArtifactStatus::New, "the baseline has no such entry")),
    );
    comparisons
}

/// A comparison of which there is nothing to say but its result.
pub fn bare(kernel: &str, entry: &str, status: ArtifactStatus, message: &str) -> ArtifactComparison {
    ArtifactComparison {
        kernel: kernel.to_string(),
        entry: entry.to_string(),
        status,
        changes: Vec::new(),
        constants: Vec::new(),
        message: Some(message.to_string()),
    }
}

fn compare_entry(
    before: &KernelArtifact,
    now: &KernelArtifact,
    old: &EntryMetrics,
    new: &EntryMetrics,
    threshold: f64,
) -> ArtifactComparison {
    let changes = changes(measures(old), measures(new), threshold);
    let constants = constant_changes(&old.constants, &new.constants);
    let mut remarks = Vec::new();
    if old.entry != new.entry {
        remarks.push(format!("the entry was called {}", old.entry));
    }
    if before.target != now.target {
        remarks.push(format!("the code is for {}, in the baseline for {}", now.target, before.target));
    }
    if changes.is_empty() && constants.is_empty() && uncounted(old) != uncounted(new) {
        remarks.push("all counts are equal, but variables or machine instructions differ".to_string());
    }
    let any = |status: ArtifactStatus| changes.iter().any(|change| change.verdict == status);
    // Something new that the baseline did not have is no gap in what is known now.
    let lost = changes.iter().any(|change| change.now.is_none());
    let status = if any(ArtifactStatus::Regressed) {
        ArtifactStatus::Regressed
    } else if lost {
        ArtifactStatus::NotComparable
    } else if any(ArtifactStatus::Improved) {
        ArtifactStatus::Improved
    } else if !changes.is_empty() || !constants.is_empty() || !remarks.is_empty() {
        ArtifactStatus::Changed
    } else {
        ArtifactStatus::Same
    };
    if lost {
        remarks.push("what the baseline has could not be measured now: it is not known to be as good".to_string());
    }
    let message = (!remarks.is_empty()).then(|| remarks.join("; "));
    ArtifactComparison { kernel: now.kernel.clone(), entry: new.entry.clone(), status, changes, constants, message }
}

/// Everything of an entry that says what its code is.
fn uncounted(entry: &EntryMetrics) -> EntryMetrics {
    EntryMetrics { entry: String::new(), line: 0, occupancy: Vec::new(), ..entry.clone() }
}

fn changes(before: Vec<Measure>, now: Vec<Measure>, threshold: f64) -> Vec<MetricChange> {
    let old: BTreeMap<&str, Option<u64>> = before.iter().map(|(name, _, value)| (name.as_str(), *value)).collect();
    let new: BTreeMap<&str, Option<u64>> = now.iter().map(|(name, _, value)| (name.as_str(), *value)).collect();
    let gone = before.iter().filter(|(name, ..)| !new.contains_key(name.as_str()));
    let mut changes = Vec::new();
    for (metric, meaning, _) in now.iter().chain(gone) {
        // Counts by name are complete: one that is not listed is 0. What a tool measures is not.
        let absent = if metric.starts_with("sm_") { None } else { Some(0) };
        let of = |values: &BTreeMap<&str, Option<u64>>| values.get(metric.as_str()).copied().unwrap_or(absent);
        let (before, now) = (of(&old), of(&new));
        if before != now {
            let verdict = verdict(*meaning, before, now, threshold);
            changes.push(MetricChange { metric: metric.clone(), before, now, verdict });
        }
    }
    changes
}

fn verdict(meaning: Meaning, before: Option<u64>, now: Option<u64>, threshold: f64) -> ArtifactStatus {
    let (Some(before), Some(now)) = (before, now) else { return ArtifactStatus::NotComparable };
    let (old, new) = (before as f64, now as f64);
    let allowed = match meaning {
        AnyMoreIsWorse => 0.0,
        GrowthIsWorse => threshold,
        Neutral => return ArtifactStatus::Changed,
    };
    if new > old * (1.0 + allowed) {
        ArtifactStatus::Regressed
    } else if new < old / (1.0 + allowed) {
        ArtifactStatus::Improved
    } else {
        ArtifactStatus::Changed
    }
}

fn measures(entry: &EntryMetrics) -> Vec<Measure> {
    let counts = &entry.instructions;
    let mut measures: Vec<Measure> = entry.compiled.iter().flat_map(compiled_measures).collect();
    let mut add = |name: &str, meaning: Meaning, value: u64| measures.push((name.to_string(), meaning, Some(value)));
    add("shared bytes", GrowthIsWorse, entry.shared.bytes);
    add("local bytes", AnyMoreIsWorse, entry.local.bytes);
    add("local loads", AnyMoreIsWorse, entry.local_loads);
    add("local stores", AnyMoreIsWorse, entry.local_stores);
    add("instructions", GrowthIsWorse, counts.total);
    add("memory instructions", GrowthIsWorse, counts.memory);
    add("arithmetic instructions", GrowthIsWorse, counts.arithmetic);
    // More of them may be what was wanted, or the work of a larger tile.
    add("tensor core instructions", Neutral, counts.tensor_core);
    add("control instructions", GrowthIsWorse, counts.control);
    add("synchronisation instructions", GrowthIsWorse, counts.synchronisation);
    add("movement instructions", GrowthIsWorse, counts.movement);
    add("predicated instructions", Neutral, counts.predicated);
    add("loops", GrowthIsWorse, entry.loops);
    add("loop depth", Neutral, entry.loop_depth);
    add("blocks of code", Neutral, entry.blocks);
    add("block threads", Neutral, entry.block.map_or(0, |block| block.total()));
    for (class, count) in &entry.registers {
        add(&format!("declared registers {}", class_name(*class)), Neutral, *count);
    }
    for access in &entry.global_accesses {
        let bytes = access.bytes.map_or("unknown".to_string(), |bytes| bytes.to_string());
        let vector = if access.vector > 1 { format!(" (v{})", access.vector) } else { String::new() };
        add(&format!("global {} of {bytes} bytes{vector}", access.kind), Neutral, access.count);
    }
    for (form, count) in &counts.forms {
        add(&format!("`{form}`"), Neutral, *count);
    }
    measures
}

/// How a class of registers is called.
pub fn class_name(class: RegisterClass) -> &'static str {
    match class {
        RegisterClass::Predicate => "predicate",
        RegisterClass::Bits8 => "8 bit",
        RegisterClass::Bits16 => "16 bit",
        RegisterClass::Bits32 => "32 bit",
        RegisterClass::Bits64 => "64 bit",
        RegisterClass::Bits128 => "128 bit",
    }
}

fn compiled_measures(compiled: &CompiledMetrics) -> Vec<Measure> {
    let sass = compiled.sass.as_ref().map(|sass| sass.values().fold(0u64, |sum, count| sum.saturating_add(*count)));
    let measures = [
        ("registers", GrowthIsWorse, compiled.registers),
        ("spill store bytes", AnyMoreIsWorse, compiled.spill_store_bytes),
        ("spill load bytes", AnyMoreIsWorse, compiled.spill_load_bytes),
        ("stack bytes", AnyMoreIsWorse, compiled.stack_bytes),
        ("shared bytes", GrowthIsWorse, compiled.shared_bytes),
        ("constant bytes", Neutral, compiled.constant_bytes),
        ("barriers", Neutral, compiled.barriers),
        ("machine instructions", GrowthIsWorse, sass),
    ];
    let named = |(name, meaning, value)| (format!("{} {name}", compiled.architecture), meaning, value);
    measures.into_iter().map(named).collect()
}

fn constant_changes(before: &Constants, now: &Constants) -> Vec<ConstantChange> {
    let mut changes = Vec::new();
    let gone = before.values.iter().filter(|(value, _)| !now.values.contains_key(*value)).map(|(value, _)| value);
    for value in now.values.keys().chain(gone) {
        let count = |constants: &Constants| constants.values.get(value).copied().unwrap_or(0);
        let (before, now) = (count(before), count(now));
        if before != now {
            changes.push(ConstantChange { value: value.clone(), before, now });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use gpuemu_model::artifact::GlobalAccess;

    use super::*;

    fn entry(name: &str) -> EntryMetrics {
        let mut entry = EntryMetrics { entry: name.to_string(), line: 9, ..EntryMetrics::default() };
        entry.shared.bytes = 1024;
        entry.instructions.total = 100;
        entry.instructions.arithmetic = 40;
        entry.constants.values.insert("mul.f32 0f3C23D70A (0.01)".to_string(), 2);
        entry.compiled.push(CompiledMetrics {
            architecture: "sm_80".to_string(),
            registers: Some(40),
            spill_store_bytes: Some(0),
            ..CompiledMetrics::default()
        });
        entry
    }

    fn kernel(entries: Vec<EntryMetrics>) -> KernelArtifact {
        KernelArtifact { kernel: "k".to_string(), target: "sm_80".to_string(), entries, ..KernelArtifact::default() }
    }

    /// The comparison of one entry with a changed copy of it.
    fn changed(change: impl FnOnce(&mut EntryMetrics)) -> ArtifactComparison {
        let mut new = entry("main");
        change(&mut new);
        compare(&kernel(vec![entry("main")]), &kernel(vec![new]), 0.1).remove(0)
    }

    fn verdicts(comparison: &ArtifactComparison) -> Vec<(&str, ArtifactStatus)> {
        comparison.changes.iter().map(|change| (change.metric.as_str(), change.verdict)).collect()
    }

    #[test]
    fn an_equal_entry_is_the_same_wherever_it_stands() {
        let same = changed(|entry| entry.line = 77);
        assert_eq!((same.status, same.changes.len(), same.message), (ArtifactStatus::Same, 0, None));
    }

    #[test]
    fn a_spill_is_worse_however_small() {
        let spilled = changed(|entry| entry.compiled[0].spill_store_bytes = Some(4));
        assert_eq!(spilled.status, ArtifactStatus::Regressed);
        assert_eq!(verdicts(&spilled), [("sm_80 spill store bytes", ArtifactStatus::Regressed)]);
        assert_eq!(changed(|entry| entry.local_loads = 1).status, ArtifactStatus::Regressed);
    }

    #[test]
    fn growth_counts_from_the_threshold_on() {
        assert_eq!(changed(|entry| entry.compiled[0].registers = Some(44)).status, ArtifactStatus::Changed);
        assert_eq!(changed(|entry| entry.compiled[0].registers = Some(45)).status, ArtifactStatus::Regressed);
        assert_eq!(changed(|entry| entry.compiled[0].registers = Some(30)).status, ArtifactStatus::Improved);
        assert_eq!(changed(|entry| entry.instructions.total = 111).status, ArtifactStatus::Regressed);
        assert_eq!(changed(|entry| entry.shared.bytes = 512).status, ArtifactStatus::Improved);
        // Better in one thing and worse in another is worse.
        let both = changed(|entry| {
            entry.shared.bytes = 512;
            entry.instructions.total = 200;
        });
        assert_eq!(both.status, ArtifactStatus::Regressed);
    }

    #[test]
    fn what_was_not_measured_is_not_equal() {
        let lost = changed(|entry| entry.compiled[0].registers = None);
        assert_eq!(lost.status, ArtifactStatus::NotComparable);
        assert_eq!(verdicts(&lost), [("sm_80 registers", ArtifactStatus::NotComparable)]);
        let lost = changed(|entry| entry.compiled.clear());
        assert_eq!(lost.status, ArtifactStatus::NotComparable);
        assert_eq!(lost.changes.len(), 2);
        // A measure that the baseline did not have is shown, and nothing is lost.
        let gained = changed(|entry| entry.compiled[0].stack_bytes = Some(0));
        assert_eq!(gained.status, ArtifactStatus::Changed);
        assert_eq!(verdicts(&gained), [("sm_80 stack bytes", ArtifactStatus::NotComparable)]);
        // Worse is worse, whatever else is not known.
        let worse = changed(|entry| {
            entry.compiled.clear();
            entry.local_stores = 1;
        });
        assert_eq!(worse.status, ArtifactStatus::Regressed);
    }

    #[test]
    fn constants_are_shown_although_all_counts_are_equal() {
        let other = changed(|entry| {
            entry.constants.values.clear();
            entry.constants.values.insert("mul.f32 0f3DCCCCCD (0.1)".to_string(), 2);
        });
        assert_eq!((other.status, other.changes.len()), (ArtifactStatus::Changed, 0));
        let values: Vec<(&str, u64, u64)> =
            other.constants.iter().map(|change| (change.value.as_str(), change.before, change.now)).collect();
        assert_eq!(values, [("mul.f32 0f3DCCCCCD (0.1)", 0, 2), ("mul.f32 0f3C23D70A (0.01)", 2, 0)]);
    }

    #[test]
    fn narrower_accesses_are_shown() {
        let access =
            |bytes, vector, count| GlobalAccess { kind: "load".to_string(), bytes: Some(bytes), vector, count };
        let mut wide = entry("main");
        wide.global_accesses.push(access(16, 4, 1));
        let narrow = changed(|entry| entry.global_accesses.push(access(4, 1, 4)));
        assert_eq!(verdicts(&narrow), [("global load of 4 bytes", ArtifactStatus::Changed)]);
        let mut new = entry("main");
        new.global_accesses.push(access(4, 1, 4));
        let comparison = compare(&kernel(vec![wide]), &kernel(vec![new]), 0.1).remove(0);
        assert_eq!(comparison.changes[1].metric, "global load of 16 bytes (v4)");
        assert_eq!((comparison.changes[1].before, comparison.changes[1].now), (Some(1), Some(0)));
    }

    #[test]
    fn entries_are_matched_by_name_and_a_single_one_by_being_alone() {
        let renamed = compare(&kernel(vec![entry("old")]), &kernel(vec![entry("new")]), 0.1);
        assert_eq!((renamed.len(), renamed[0].status), (1, ArtifactStatus::Changed));
        assert_eq!(renamed[0].message.as_deref(), Some("the entry was called old"));
        let two = kernel(vec![entry("a"), entry("b")]);
        let other = kernel(vec![entry("b"), entry("c")]);
        let statuses: Vec<(String, ArtifactStatus)> =
            compare(&two, &other, 0.1).into_iter().map(|one| (one.entry, one.status)).collect();
        let named = |name: &str, status| (name.to_string(), status);
        assert_eq!(
            statuses,
            [named("a", ArtifactStatus::Missing), named("b", ArtifactStatus::Same), named("c", ArtifactStatus::New)]
        );
    }

    #[test]
    fn machine_code_that_differs_with_equal_totals_is_a_change() {
        let sass = |opcode: &str| Some(BTreeMap::from([(opcode.to_string(), 3)]));
        let (mut old, mut new) = (entry("main"), entry("main"));
        old.compiled[0].sass = sass("FADD");
        new.compiled[0].sass = sass("FMUL");
        let comparison = compare(&kernel(vec![old]), &kernel(vec![new]), 0.1).remove(0);
        assert_eq!((comparison.status, comparison.changes.len()), (ArtifactStatus::Changed, 0));
        assert!(comparison.message.unwrap().contains("machine instructions differ"));
    }
}
