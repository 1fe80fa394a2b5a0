//! Limits on what the assembler made of a kernel.

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{CompiledMetrics, EntryMetrics, KernelArtifact};

use super::figures::Figures;
use super::report::{Place, Report};
use super::rule::{MAX_LOCAL_MEMORY, MAX_REGISTERS, MAX_SPILLS, Rule};

const REGISTER_BYTES: u64 = 4;

/// Checks `max_registers`, `max_spills` and `max_local_memory_bytes`.
pub(super) fn check(
    artifact: &KernelArtifact,
    entry: &EntryMetrics,
    checks: &ArtifactChecks,
    place: Place<'_, '_>,
    report: &mut Report<'_, '_>,
) {
    let limits = Limits { artifact, entry, place };
    if let Some(most) = checks.max_registers {
        let worst = limits.worst(&MAX_REGISTERS, "registers", report, |compiled| compiled.registers);
        if let Some((architecture, registers)) = worst.filter(|(_, registers)| *registers > most) {
            let message = format!(
                "{registers} registers of a thread on {architecture}, at most {most} are allowed (max_registers)"
            );
            report.found(&MAX_REGISTERS, place, message);
        }
    }
    if let Some(most) = checks.max_spills {
        let spilled = |compiled: &CompiledMetrics| Some(compiled.spill_store_bytes?.div_ceil(REGISTER_BYTES));
        let worst = limits.worst(&MAX_SPILLS, "spills", report, spilled);
        if let Some((architecture, spills)) = worst.filter(|(_, spills)| *spills > most) {
            let message = format!(
                "{spills} {} spilled to local memory on {architecture}, at most {most} {} allowed (max_spills)",
                if spills == 1 { "register is" } else { "registers are" },
                if most == 1 { "is" } else { "are" },
            );
            report.found(&MAX_SPILLS, place, message);
        }
    }
    if let Some(most) = checks.max_local_memory_bytes {
        limits.local_memory(most, report);
    }
}

struct Limits<'e, 'm, 'a> {
    artifact: &'e KernelArtifact,
    entry: &'e EntryMetrics,
    place: Place<'m, 'a>,
}

impl Limits<'_, '_, '_> {
    /// The largest figure of all architectures and which it is of. What is missing is said.
    fn worst(
        &self,
        rule: &Rule,
        word: &str,
        report: &mut Report<'_, '_>,
        figure: impl Fn(&CompiledMetrics) -> Option<u64>,
    ) -> Option<(String, u64)> {
        let figures = Figures::of_machine(self.artifact, self.entry, word, figure);
        figures.missing.iter().for_each(|why| report.not_checked(rule.name, why));
        figures.largest().map(|(architecture, figure)| (architecture.to_string(), figure))
    }

    fn local_memory(&self, most: u64, report: &mut Report<'_, '_>) {
        let declared = self.entry.local.bytes;
        let allowed = format!("at most {most} are allowed (max_local_memory_bytes)");
        if declared > most {
            let names: Vec<&str> = self.entry.local.variables.iter().map(|variable| variable.name.as_str()).collect();
            let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            let message = format!("the PTX declares {declared} bytes of local memory of a thread{names}, {allowed}");
            report.found(&MAX_LOCAL_MEMORY, self.place, message);
            return;
        }
        let worst = self.worst(&MAX_LOCAL_MEMORY, "stack", report, |compiled| compiled.stack_bytes);
        if let Some((architecture, bytes)) = worst.filter(|(_, bytes)| *bytes > most) {
            let message = format!("{bytes} bytes of stack of a thread on {architecture}, {allowed}");
            report.found(&MAX_LOCAL_MEMORY, self.place, message);
        }
    }
}
