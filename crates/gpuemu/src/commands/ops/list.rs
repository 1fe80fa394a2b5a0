//! Many ops, a line each, by family.

use std::fmt::Write;
use std::sync::Arc;

use comfy_table::{ContentArrangement, Table, presets};
use gpuemu_engine::Op;

/// The ops by family, and how to learn more.
pub fn text(ops: &[Arc<dyn Op>]) -> String {
    let mut families: Vec<&str> = ops.iter().map(|op| op.schema().family.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    let mut text = String::new();
    for family in families {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        for op in ops.iter().filter(|op| op.schema().family == family) {
            let schema = op.schema();
            table.add_row([&schema.name, &schema.tensors(), &schema.formula]);
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{family}\n{table}\n\n");
    }
    let count = ops.len();
    let _ = writeln!(text, "{count} ops; `gpuemu ops NAME` describes one, `gpuemu ops --search WORD` finds some.");
    text
}
