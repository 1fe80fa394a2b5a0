//! Everything that is said of one kernel: compiled where need be, read, measured, checked.

use std::path::Path;

use gpuemu_config::{ArtifactChecks, CompileTable, architecture_number};
use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::artifact::{
    CompiledMetrics, EntryMetrics, KernelArtifact, KernelReport, KernelStatus, LintResult, NotMeasured, Severity,
};
use gpuemu_tensor::rng::blake2b;

use crate::compile::{CompileRequest, CompiledSource, compile};
use crate::lint::{ProjectRule, lint};
use crate::source::{PtxError, Source};
use crate::tools::{Toolchain, occupancy};
use crate::{metrics, syntax::Module};

/// Bytes of the fingerprint of a file.
const DIGEST_BYTES: usize = 16;

/// Architectures that occupancy is estimated for, as far as the code may run there.
const OCCUPANCY_ARCHITECTURES: [&str; 7] = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"];

/// What every kernel is looked at with.
#[derive(Debug, Clone, Copy)]
pub struct Inspector<'a> {
    pub toolchain: &'a Toolchain,
    /// Architectures to measure for; that of the PTX if there are none.
    pub architectures: &'a [String],
    /// Rules of the project's own.
    pub rules: &'a [ProjectRule],
    /// The launch that occupancy is estimated for, where the code does not say.
    pub launch: OccupancyLaunch,
}

/// A kernel of a project.
#[derive(Debug, Clone, Copy)]
pub struct ConfiguredKernel<'a> {
    pub name: &'a str,
    /// Line of its name in the configuration, from 1.
    pub line: usize,
    /// The folder that its source is relative to.
    pub root: &'a Path,
    /// Its source, as written.
    pub source: &'a str,
    pub compile: &'a CompileTable,
    /// The Python that Triton is in.
    pub python: &'a Path,
    /// Most bytes of memory that Python may take to compile it.
    pub memory_bytes: Option<u64>,
    /// What it is held to.
    pub checks: &'a ArtifactChecks,
}

impl Inspector<'_> {
    /// Looks at a kernel of a project. Whatever goes wrong is part of the report.
    pub fn kernel(&self, kernel: &ConfiguredKernel<'_>) -> KernelReport {
        let request = CompileRequest {
            root: kernel.root,
            source: kernel.source,
            table: kernel.compile,
            python: kernel.python,
            memory_bytes: kernel.memory_bytes,
        };
        let inspected = match compile(&request, self.toolchain) {
            Ok(compiled) => self.compiled(kernel.name, kernel.source, compiled, kernel.checks),
            Err(error) => Err(error.to_string()),
        };
        let mut report = report(kernel.name, inspected, kernel.checks);
        report.config_line = Some(kernel.line);
        report
    }

    /// Looks at a PTX file. Whatever goes wrong is part of the report.
    pub fn file(&self, path: &Path, checks: &ArtifactChecks) -> KernelReport {
        match Source::read(path) {
            Ok(source) => self.text(&source, checks),
            Err(error) => report(&path.display().to_string(), Err(error.to_string()), checks),
        }
    }

    /// Looks at PTX that was read already. Whatever goes wrong is part of the report.
    pub fn text(&self, source: &Source, checks: &ArtifactChecks) -> KernelReport {
        let name = &source.name;
        let written = Origin { kernel: name, source: name, producer: "as written", launch: self.launch };
        report(name, self.source(source, &written, checks), checks)
    }

    fn compiled(
        &self,
        kernel: &str,
        written: &str,
        compiled: CompiledSource,
        checks: &ArtifactChecks,
    ) -> Result<(KernelArtifact, LintResult), String> {
        // Errors in code that a compiler made have no line in a file of the user's.
        let name = if written.ends_with(".ptx") { written.to_string() } else { format!("PTX of {written}") };
        let source = Source::from_bytes(name, compiled.ptx).map_err(|error| error.to_string())?;
        let launch = OccupancyLaunch {
            block_threads: compiled.block_threads.or(self.launch.block_threads),
            dynamic_shared_bytes: compiled.dynamic_shared_bytes.or(self.launch.dynamic_shared_bytes),
        };
        let origin = Origin { kernel, source: written, producer: &compiled.producer, launch };
        self.source(&source, &origin, checks)
    }

    fn source(
        &self,
        source: &Source,
        origin: &Origin<'_>,
        checks: &ArtifactChecks,
    ) -> Result<(KernelArtifact, LintResult), String> {
        let words = |error: PtxError| error.to_string();
        let module = source.parse().map_err(words)?;
        let entries = metrics::measure(source, &module).map_err(words)?;
        if entries.is_empty() {
            return Err(format!("{} has no entry: there is nothing to launch", source.name));
        }
        let mut artifact = KernelArtifact {
            kernel: origin.kernel.to_string(),
            source: origin.source.to_string(),
            producer: origin.producer.to_string(),
            target: module.architecture().to_string(),
            ptx_version: format!("{}.{}", module.version.0, module.version.1),
            digest: blake2b(DIGEST_BYTES).hash(source.text.as_bytes()).to_hex().to_string(),
            entries,
            tools: Vec::new(),
            not_measured: Vec::new(),
        };
        self.measure(source, &module, &mut artifact);
        estimate_occupancy(&mut artifact, origin.launch);
        let found = lint(source, &module, &artifact, checks, self.rules).map_err(words)?;
        Ok((artifact, found))
    }

    fn measure(&self, source: &Source, module: &Module<'_>, artifact: &mut KernelArtifact) {
        let own = [module.architecture().to_string()];
        let architectures = if self.architectures.is_empty() { &own } else { self.architectures };
        let names: Vec<String> = artifact.entries.iter().map(|entry| entry.entry.clone()).collect();
        let mut measures = self.toolchain.measure(&source.text, &names, architectures);
        for entry in &mut artifact.entries {
            entry.compiled = measures.compiled.remove(&entry.entry).unwrap_or_default();
        }
        artifact.tools = measures.tools;
        artifact.not_measured = measures.not_measured;
    }
}

/// Where code comes from and how it is launched.
struct Origin<'a> {
    kernel: &'a str,
    source: &'a str,
    producer: &'a str,
    launch: OccupancyLaunch,
}

fn report(
    kernel: &str,
    inspected: Result<(KernelArtifact, LintResult), String>,
    checks: &ArtifactChecks,
) -> KernelReport {
    let (artifact, lint, mut message) = match inspected {
        Ok((artifact, lint)) => (Some(artifact), lint, None),
        Err(message) => (None, LintResult::default(), Some(message)),
    };
    let unchecked = checks.fail_on_unchecked && !lint.not_checked.is_empty();
    let status = match (&artifact, lint.count(Severity::Error)) {
        (None, _) => KernelStatus::Error,
        (Some(_), 1..) => KernelStatus::Failed,
        (Some(_), 0) if unchecked => {
            message = Some("not every rule could be checked, and fail_on_unchecked demands it".to_string());
            KernelStatus::Error
        }
        (Some(_), 0) => KernelStatus::Passed,
    };
    KernelReport { kernel: kernel.to_string(), config_line: None, status, artifact, lint, message }
}

/// The architectures that code for a target may run on: its own and, unless it is bound to that, later ones.
pub fn runs_on(target: &str) -> Vec<&'static str> {
    let Some(least) = architecture_number(target) else { return Vec::new() };
    let portable = !target.ends_with(['a', 'f']);
    let runs = |architecture: &&str| {
        architecture_number(architecture).is_some_and(|number| number == least || (portable && number > least))
    };
    OCCUPANCY_ARCHITECTURES.iter().copied().filter(runs).collect()
}

fn estimate_occupancy(artifact: &mut KernelArtifact, launch: OccupancyLaunch) {
    let KernelArtifact { target, entries, not_measured, .. } = artifact;
    let architectures = runs_on(target);
    for entry in entries {
        let Some(threads) = block_threads(entry, launch) else {
            let why = "the threads of a block are not known: the code does not say them, and none were given";
            not_measured.push(NotMeasured { what: format!("occupancy of {}", entry.entry), why: why.to_string() });
            continue;
        };
        if entry.shared.dynamic && launch.dynamic_shared_bytes.is_none() {
            let what = format!("shared memory that a launch of {} adds", entry.entry);
            let why = "only the launch says it; occupancy is estimated without it".to_string();
            not_measured.push(NotMeasured { what, why });
        }
        let dynamic = if entry.shared.dynamic { launch.dynamic_shared_bytes.unwrap_or(0) } else { 0 };
        entry.occupancy = architectures
            .iter()
            .filter_map(|architecture| {
                let same = |one: &&CompiledMetrics| {
                    architecture_number(&one.architecture) == architecture_number(architecture)
                };
                let compiled = entry.compiled.iter().find(same);
                let registers = compiled.and_then(|compiled| compiled.registers);
                let fixed = compiled.and_then(|compiled| compiled.shared_bytes).unwrap_or(entry.shared.bytes);
                occupancy::estimate(architecture, threads, registers, fixed.saturating_add(dynamic))
            })
            .collect();
    }
}

/// Threads of a block: those that the code demands, those of the launch, or the most that the code allows.
fn block_threads(entry: &EntryMetrics, launch: OccupancyLaunch) -> Option<u64> {
    let written = entry.block.map(|block| (block.exact, block.total()));
    match written {
        Some((true, threads)) => Some(threads),
        Some((false, most)) => Some(launch.block_threads.unwrap_or(most)),
        None => launch.block_threads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_on_its_target_and_on_later_ones_unless_it_is_bound() {
        assert_eq!(runs_on("sm_80"), ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100"]);
        assert_eq!(runs_on("sm_90a"), ["sm_90"]);
        assert_eq!(runs_on("sm_100f"), ["sm_100"]);
        assert_eq!(runs_on("sm_120"), Vec::<&str>::new());
        assert_eq!(runs_on("texmode_unified"), Vec::<&str>::new());
    }

    #[test]
    fn the_code_goes_before_the_launch_where_it_demands_a_block() {
        let launch = OccupancyLaunch { block_threads: Some(64), dynamic_shared_bytes: None };
        let entry = |block: Option<(u64, bool)>| EntryMetrics {
            block: block.map(|(threads, exact)| gpuemu_model::artifact::BlockSize { threads: [threads, 1, 1], exact }),
            ..EntryMetrics::default()
        };
        assert_eq!(block_threads(&entry(Some((128, true))), launch), Some(128));
        assert_eq!(block_threads(&entry(Some((1024, false))), launch), Some(64));
        assert_eq!(block_threads(&entry(Some((1024, false))), OccupancyLaunch::default()), Some(1024));
        assert_eq!(block_threads(&entry(None), launch), Some(64));
        assert_eq!(block_threads(&entry(None), OccupancyLaunch::default()), None);
    }
}
