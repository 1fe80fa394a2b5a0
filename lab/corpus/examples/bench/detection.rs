//! The detection table: what each rule sees of wrong kernels, and how often it cries wolf.

use gpuemu_corpus::detection::{Detection, RULES, TIGHT, measure};
use gpuemu_corpus::implementations::families;

use crate::row::Row;

const TENSORS: u64 = 2_400;
const MUTANT_CASES: u64 = 300;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut all = Detection::default();
    for family in families() {
        let found = measure(&family, 1, TENSORS, MUTANT_CASES);
        let [float32, float16, bfloat16] = found.headroom;
        let note = format!(
            "{} checks of {} correct kernels, {} alarms; largest error/bound at c = 1: {float32:.2} float32, {float16:.2} float16, {bfloat16:.2} bfloat16",
            found.checks,
            family.implementations.len(),
            found.rules[TIGHT].alarms,
        );
        let name = format!("{}: wrong cases beyond 1 ulp found", family.op);
        rows.push(Row::rate(&name, "%", 100.0 * found.share(TIGHT), Some(100.0 * found.share(0)), RULES[0], &note));
        all = all.join(found);
    }
    for (index, rule) in RULES.iter().enumerate() {
        let counts = all.rules[index];
        let triggered = 100.0 * counts.triggered_only as f64 / all.triggered_only.max(1) as f64;
        let note = format!(
            "{} wrong cases beyond 1 ulp of {} mutants, {} seen at least once; of {} merely triggered {triggered:.1} %; {} alarms in {} checks of correct kernels",
            all.beyond_ulp, all.mutants, counts.mutants, all.triggered_only, counts.alarms, all.checks
        );
        let name = format!("all ops, {rule}: wrong cases beyond 1 ulp found");
        rows.push(Row::rate(&name, "%", 100.0 * all.share(index), Some(100.0 * all.share(0)), RULES[0], &note));
    }
    rows
}
