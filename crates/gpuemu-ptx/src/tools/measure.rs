//! What the assembler makes of PTX, for each architecture that is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use gpuemu_model::artifact::{CompiledMetrics, NotMeasured, ToolUse};
use tempfile::TempDir;

use super::cuobjdump::{self, ResourceUsage};
use super::nvdisasm;
use super::process::{self, Limits, private_folder};
use super::ptxas::{self, PtxasReport};
use super::sass::OpcodeCounts;
use super::toolchain::{Tool, Toolchain};

const LIMITS: Limits = Limits { time: Duration::from_secs(120), output_bytes: 256 << 20 };
/// What is not measured where there is no assembler. The linter finds its reasons by these words.
pub(crate) const FIGURES: &str = "registers, spills, stack and barriers";
/// What is not measured where there is no disassembler.
pub(crate) const INSTRUCTIONS: &str = "machine instructions";
const PTX: &str = "kernel.ptx";
const CUBIN: &str = "kernel.cubin";

/// What the tools say of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolMeasures {
    /// For each entry, one for each architecture that it was assembled for.
    pub compiled: BTreeMap<String, Vec<CompiledMetrics>>,
    /// The programs that were used.
    pub tools: Vec<ToolUse>,
    /// What could not be measured, and why.
    pub not_measured: Vec<NotMeasured>,
}

/// Machine code, and what the assembler says of it. It lies in a folder that is removed with this value.
#[derive(Debug)]
pub struct Assembled {
    folder: TempDir,
    pub tool: ToolUse,
    pub report: PtxasReport,
}

impl Assembled {
    pub fn cubin(&self) -> io::Result<Vec<u8>> {
        fs::read(self.folder.path().join(CUBIN))
    }
}

impl Toolchain {
    /// Measures the entries of a file for every architecture. What cannot be measured is said, and hinders nothing.
    pub fn measure(&self, ptx: &str, entries: &[String], architectures: &[String]) -> ToolMeasures {
        let mut measures = Measures { entries, compiled: BTreeMap::new(), tools: BTreeSet::new(), not: Vec::new() };
        if self.ptxas.is_empty() {
            measures.not_measured(FIGURES, self.missing("ptxas"));
            measures.not_measured(INSTRUCTIONS, "they come of ptxas, which was not found".to_string());
            return measures.finish();
        }
        let mut seen = BTreeSet::new();
        for architecture in architectures.iter().filter(|architecture| seen.insert(*architecture)) {
            match self.assemble(ptx, architecture) {
                Ok(assembled) => self.read(&assembled, architecture, &mut measures),
                Err(why) => {
                    measures.not_measured(FIGURES, format!("{architecture}: {why}"));
                    measures.not_measured(INSTRUCTIONS, format!("{architecture}: there is no machine code"));
                }
            }
        }
        measures.finish()
    }

    /// Assembles PTX with the newest assembler that takes it.
    pub fn assemble(&self, ptx: &str, architecture: &str) -> Result<Assembled, String> {
        if !architecture.starts_with("sm_") {
            return Err(format!("'{architecture}' is not the name of a machine; write it as in sm_80"));
        }
        let no_folder = |error: io::Error| format!("no temporary folder can be written: {error}");
        let mut refusal = None;
        for tool in &self.ptxas {
            let folder = private_folder().map_err(no_folder)?;
            fs::write(folder.path().join(PTX), ptx).map_err(no_folder)?;
            match self.assemble_with(tool, folder.path(), architecture) {
                Ok(text) => {
                    let report = ptxas::read_report(&text, architecture);
                    return Ok(Assembled { folder, tool: tool.used(), report });
                }
                Err(failure) => {
                    let told = format!("{} {}: {}", tool.name(), tool.version, failure.why);
                    // What is wrong with the code is worth more than what is wrong with one of the assemblers.
                    if failure.of_the_code {
                        return Err(told);
                    }
                    refusal.get_or_insert(told);
                }
            }
        }
        Err(refusal.unwrap_or_else(|| self.missing("ptxas")))
    }

    fn assemble_with(&self, tool: &Tool, folder: &Path, architecture: &str) -> Result<String, AssemblyFailure> {
        let mut command = self.command(&tool.path);
        command.args(["-v", "--gpu-name", architecture, PTX, "--output-file", CUBIN]).current_dir(folder);
        let broken = |why: String| AssemblyFailure { why, of_the_code: false };
        let finished = process::run(&mut command, folder, LIMITS).map_err(|error| broken(error.to_string()))?;
        let text = format!("{}\n{}", finished.stdout, finished.stderr);
        match (finished.success, ptxas::first_error(&text)) {
            (true, _) => Ok(text),
            (false, Some(why)) => Err(AssemblyFailure { of_the_code: !ptxas::is_about_the_version(&why), why }),
            (false, None) => Err(broken(finished.ending)),
        }
    }

    /// What `cuobjdump` says that the machine code needs, by function.
    pub fn resource_usage(&self, assembled: &Assembled) -> Result<BTreeMap<String, ResourceUsage>, String> {
        let tool = self.cuobjdump.as_ref().ok_or_else(|| self.missing("cuobjdump"))?;
        let text = self.print(tool, &["--dump-resource-usage"], assembled)?;
        Ok(cuobjdump::read_resource_usage(&text))
    }

    /// The instructions of machine code, by function, and the tool that printed them.
    pub fn machine_instructions(
        &self,
        assembled: &Assembled,
    ) -> Result<(BTreeMap<String, OpcodeCounts>, ToolUse), String> {
        let mut reasons = Vec::new();
        match &self.cuobjdump {
            // It starts nvdisasm itself, and fails without one.
            Some(tool) => match self.print(tool, &["--dump-sass"], assembled) {
                Ok(text) => return Ok((cuobjdump::read_sass(&text), tool.used())),
                Err(why) => reasons.push(why),
            },
            None => reasons.push(self.missing("cuobjdump")),
        }
        match &self.nvdisasm {
            Some(tool) => match self.print(tool, &["--print-code"], assembled) {
                Ok(text) => return Ok((nvdisasm::read_sass(&text), tool.used())),
                Err(why) => reasons.push(why),
            },
            None => reasons.push(self.missing("nvdisasm")),
        }
        Err(reasons.join("; "))
    }

    fn print(&self, tool: &Tool, options: &[&str], assembled: &Assembled) -> Result<String, String> {
        let folder = assembled.folder.path();
        let mut command = self.command(&tool.path);
        command.args(options).arg(CUBIN).current_dir(folder);
        let failed = |why: &str| format!("{} {}: {why}", tool.name(), tool.version);
        let finished = process::run(&mut command, folder, LIMITS).map_err(|error| failed(&error.to_string()))?;
        match finished.success {
            true => Ok(finished.stdout),
            false => Err(failed(&ptxas::first_error(&finished.stderr).unwrap_or(finished.ending))),
        }
    }

    fn read(&self, assembled: &Assembled, architecture: &str, measures: &mut Measures<'_>) {
        measures.tools.insert(assembled.tool.clone());
        let usage = self.resource_usage(assembled).unwrap_or_default();
        let instructions = match self.machine_instructions(assembled) {
            Ok((instructions, tool)) => {
                measures.tools.insert(tool);
                Some(instructions)
            }
            Err(why) => {
                measures.not_measured(INSTRUCTIONS, format!("{architecture}: {why}"));
                None
            }
        };
        for entry in measures.entries {
            let Some(mut metrics) = assembled.report.entries.get(entry).cloned() else {
                let why = format!("{architecture}: {} says nothing of it", assembled.tool.name);
                measures.not_measured(&format!("{FIGURES} of {entry}"), why);
                continue;
            };
            let known = [metrics.registers, metrics.stack_bytes, metrics.spill_store_bytes, metrics.spill_load_bytes];
            if known.iter().any(Option::is_none) {
                let why = format!("{architecture}: the text of {} could not be read", assembled.tool.name);
                measures.not_measured(&format!("some of {FIGURES} of {entry}"), why);
            }
            // The assembler does not mention it from sm_90 on.
            let constant_bytes = usage.get(entry).and_then(|usage| usage.constant_bytes);
            metrics.constant_bytes = metrics.constant_bytes.or(constant_bytes);
            if let Some(instructions) = &instructions {
                metrics.sass = instructions.get(entry).cloned();
                if metrics.sass.is_none() {
                    let why = format!("{architecture}: the disassembler prints nothing of it");
                    measures.not_measured(&format!("{INSTRUCTIONS} of {entry}"), why);
                }
            }
            measures.compiled.entry(entry.clone()).or_default().push(metrics);
        }
        // Which entries call such a function is not said, nor how deep.
        for (function, frame) in &assembled.report.functions {
            if frame.stack_bytes > 0 || frame.spill_store_bytes > 0 || frame.spill_load_bytes > 0 {
                let why = format!(
                    "{architecture}: {} counts it apart: {} bytes of stack, {} bytes of spill stores, {} of loads",
                    assembled.tool.name, frame.stack_bytes, frame.spill_store_bytes, frame.spill_load_bytes
                );
                measures.not_measured(&format!("what function {function} adds to stack and spills"), why);
            }
        }
    }
}

/// Why an assembler gave nothing.
struct AssemblyFailure {
    why: String,
    /// Another assembler would say the same.
    of_the_code: bool,
}

/// The measures of a file, as they come in.
struct Measures<'a> {
    entries: &'a [String],
    compiled: BTreeMap<String, Vec<CompiledMetrics>>,
    tools: BTreeSet<ToolUse>,
    not: Vec<NotMeasured>,
}

impl Measures<'_> {
    fn not_measured(&mut self, what: &str, why: String) {
        self.not.push(NotMeasured { what: what.to_string(), why });
    }

    fn finish(self) -> ToolMeasures {
        ToolMeasures { compiled: self.compiled, tools: self.tools.into_iter().collect(), not_measured: self.not }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tools::ToolSearch;

    /// An assembler of some version that does what a script says.
    fn assembler(folder: &Path, name: &str, version: &str, script: &str) {
        fs::create_dir_all(folder).unwrap();
        let version = format!("echo 'release {version}, V{version}.1'; exit 0");
        let script = format!("#!/bin/sh\nif [ \"$1\" = --version ]; then {version}; fi\n{script}\n");
        fs::write(folder.join(name), script).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn measured(assemblers: &[(&str, &str)]) -> ToolMeasures {
        let place = private_folder().unwrap();
        let folders: Vec<_> = (0..assemblers.len()).map(|number| place.path().join(number.to_string())).collect();
        for (folder, (version, script)) in folders.iter().zip(assemblers) {
            assembler(folder, "ptxas", version, script);
        }
        let search = ToolSearch { path: folders, ..ToolSearch::default() };
        Toolchain::find(&search).measure("", &["k".to_string()], &["sm_80".to_string()])
    }

    const WORKS: &str = "echo \"ptxas info : Compiling entry function 'k' for 'sm_80'\" >&2\n\
                         echo 'ptxas info : Function properties for k' >&2\n\
                         echo '    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' >&2\n\
                         echo 'ptxas info : Used 12 registers' >&2";
    const TOO_OLD: &str = "echo \"ptxas kernel.ptx, line 1; fatal   : Unsupported .version 9.0\" >&2; exit 255";
    const WRONG_CODE: &str = "echo \"ptxas kernel.ptx, line 7; error   : Unknown symbol 'x'\" >&2; exit 255";
    const CRASHES: &str = "kill -SEGV $$";

    #[test]
    fn an_assembler_that_cannot_is_followed_by_one_that_can() {
        for cannot in [TOO_OLD, CRASHES] {
            let measures = measured(&[("13.0", cannot), ("12.9", WORKS)]);
            assert_eq!(measures.compiled["k"][0].registers, Some(12), "{measures:?}");
            assert_eq!(measures.tools[0].version, "12.9.1");
        }
    }

    #[test]
    fn an_error_of_the_code_is_told_before_one_of_an_assembler() {
        for assemblers in [[("13.0", TOO_OLD), ("12.9", WRONG_CODE)], [("13.0", WRONG_CODE), ("12.9", CRASHES)]] {
            let measures = measured(&assemblers);
            let why = &measures.not_measured[0].why;
            assert!(why.ends_with("kernel.ptx, line 7: Unknown symbol 'x'"), "{why}");
            assert_eq!(measures.not_measured.len(), 2);
        }
        let measures = measured(&[("13.0", TOO_OLD), ("12.9", CRASHES)]);
        assert!(measures.not_measured[0].why.contains("ptxas 13.0.1: kernel.ptx, line 1: Unsupported .version"));
    }

    #[test]
    fn a_text_that_cannot_be_read_is_not_zero() {
        let silent = "echo \"Compiling entry function 'k' for 'sm_80'\"";
        let measures = measured(&[("13.0", silent)]);
        assert_eq!(measures.compiled["k"][0].registers, None);
        assert!(measures.not_measured.iter().any(|not| not.what.starts_with("some of registers")), "{measures:?}");
        let nothing = measured(&[("13.0", "exit 0")]);
        assert!(nothing.compiled.is_empty());
        assert!(nothing.not_measured.iter().any(|not| not.what.ends_with("of k")), "{nothing:?}");
    }
}
