//! What was measured of compiled kernels, for people.

use std::fmt::Write;

use comfy_table::{Table, presets};
use gpuemu_model::artifact::{CompiledMetrics, EntryMetrics, KernelArtifact, KernelReport, MemoryUse, Occupancy};
use gpuemu_ptx::diff::class_name;

use super::kernels::counted;
use super::style::{BAD, paint};

/// Every kernel with its measures. What is not known is said to be not measured.
pub fn text(kernels: &[KernelReport]) -> String {
    let mut texts = Vec::new();
    for kernel in kernels {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = match &kernel.artifact {
            Some(artifact) => write_kernel(&mut text, artifact),
            None => {
                let message = kernel.message.as_deref().unwrap_or_default();
                writeln!(text, "{}  {}\n  {}", paint(BAD, "ERROR"), kernel.kernel, message.replace('\n', "\n  "))
            }
        };
        texts.push(text);
    }
    texts.join("\n")
}

fn write_kernel(text: &mut String, artifact: &KernelArtifact) -> std::fmt::Result {
    let KernelArtifact { kernel, source, producer, target, ptx_version, .. } = artifact;
    let entries = counted(artifact.entries.len() as u64, "entry", "entries");
    let source = if source == kernel { String::new() } else { format!("{source}, ") };
    writeln!(text, "{kernel}: {source}{producer}, PTX {ptx_version} for {target}, {entries}")?;
    for entry in &artifact.entries {
        write_entry(text, entry, target)?;
    }
    let tools: Vec<String> = artifact.tools.iter().map(|tool| format!("{} {}", tool.name, tool.version)).collect();
    if !tools.is_empty() {
        writeln!(text, "  measured with {}", tools.join(", "))?;
    }
    for missing in &artifact.not_measured {
        writeln!(text, "  not measured: {}: {}", missing.what, missing.why)?;
    }
    Ok(())
}

fn write_entry(text: &mut String, entry: &EntryMetrics, target: &str) -> std::fmt::Result {
    writeln!(text, "\n  {} (line {})", entry.entry, entry.line)?;
    let mut row = |name: &str, value: String| writeln!(text, "    {name:18} {value}");
    let block = entry.block.map_or("not said".to_string(), |block| {
        let [x, y, z] = block.threads;
        let most = if block.exact { "" } else { "at most " };
        format!("{most}{x} x {y} x {z} threads")
    });
    row("block", block)?;
    let classes = entry.registers.iter();
    let classes: Vec<String> = classes.map(|(class, count)| format!("{} {count}", class_name(*class))).collect();
    row("declared registers", if classes.is_empty() { "none".to_string() } else { classes.join(", ") })?;
    row("shared memory", memory(&entry.shared))?;
    let accesses =
        format!("{}, {}", counted(entry.local_loads, "load", "loads"), counted(entry.local_stores, "store", "stores"));
    row("local memory", format!("{}; {accesses}", memory(&entry.local)))?;
    let counts = &entry.instructions;
    let groups = [
        ("memory", counts.memory),
        ("arithmetic", counts.arithmetic),
        ("tensor core", counts.tensor_core),
        ("control", counts.control),
        ("synchronisation", counts.synchronisation),
        ("movement", counts.movement),
    ];
    let groups: Vec<String> = groups.iter().map(|(name, count)| format!("{name} {count}")).collect();
    row("instructions", format!("{}: {}; {} predicated", counts.total, groups.join(", "), counts.predicated))?;
    let accesses = entry.global_accesses.iter().map(|access| {
        let bytes = access.bytes.map_or("an unknown number of".to_string(), |bytes| bytes.to_string());
        let vector = if access.vector > 1 { format!(" (v{})", access.vector) } else { String::new() };
        format!("{} x {} of {bytes} bytes{vector}", access.count, access.kind)
    });
    let accesses: Vec<String> = accesses.collect();
    row("global accesses", if accesses.is_empty() { "none".to_string() } else { accesses.join(", ") })?;
    let (blocks, loops) = (counted(entry.blocks, "block", "blocks"), counted(entry.loops, "loop", "loops"));
    row("control flow", format!("{blocks}, {loops}, nested {} deep", entry.loop_depth))?;
    if !entry.calls.is_empty() {
        row("calls", entry.calls.join(", "))?;
    }
    let fingerprint = &entry.constants.fingerprint;
    let values = counted(entry.constants.values.len() as u64, "value", "values");
    row("constants", format!("{values}, fingerprint {fingerprint}"))?;
    if entry.compiled.is_empty() {
        row("compiled", "not measured".to_string())?;
    } else {
        write!(text, "{}", indented(&compiled(&entry.compiled)))?;
    }
    if entry.occupancy.is_empty() {
        return writeln!(text, "    {:18} not measured", "occupancy");
    }
    let threads = entry.occupancy.first().map_or(0, |occupancy| occupancy.block_threads);
    writeln!(text, "    occupancy with {threads} threads a block, where code for {target} may run; an estimate")?;
    write!(text, "{}", indented(&occupancy(&entry.occupancy)))
}

fn memory(memory: &MemoryUse) -> String {
    let mut text = format!("{} bytes", memory.bytes);
    if memory.dynamic {
        text.push_str(" and what a launch adds");
    }
    let variables = memory.variables.iter().map(|variable| {
        let elements = variable.elements.map_or(String::new(), |elements| elements.to_string());
        format!("{} {}[{elements}]", variable.name, variable.element)
    });
    let variables: Vec<String> = variables.collect();
    if !variables.is_empty() {
        text.push_str(&format!(" ({})", variables.join(", ")));
    }
    text
}

fn compiled(compiled: &[CompiledMetrics]) -> Table {
    let mut table = plain_table();
    table.set_header([
        "architecture",
        "registers",
        "spill stores",
        "spill loads",
        "stack",
        "shared",
        "constant",
        "barriers",
        "machine instructions",
    ]);
    for one in compiled {
        let sass = one.sass.as_ref().map(|sass| sass.values().fold(0u64, |sum, count| sum.saturating_add(*count)));
        let values = [
            one.registers,
            one.spill_store_bytes,
            one.spill_load_bytes,
            one.stack_bytes,
            one.shared_bytes,
            one.constant_bytes,
            one.barriers,
            sass,
        ];
        let mut cells = vec![one.architecture.clone()];
        cells.extend(values.map(|value| value.map_or("not measured".to_string(), |value| value.to_string())));
        table.add_row(cells);
    }
    table
}

fn occupancy(occupancies: &[Occupancy]) -> Table {
    let mut table = plain_table();
    table.set_header(["architecture", "blocks", "of the warps", "limited by", "registers", "shared bytes"]);
    for one in occupancies {
        table.add_row([
            one.architecture.clone(),
            one.blocks.to_string(),
            format!("{:.0} %", 100.0 * one.share),
            one.limited_by.clone(),
            one.registers.map_or("not measured".to_string(), |registers| registers.to_string()),
            one.shared_bytes.to_string(),
        ]);
    }
    table
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

fn indented(table: &Table) -> String {
    // The table begins every line with a space of its own.
    table.to_string().lines().map(|line| format!("   {}\n", line.trim_end())).collect()
}
