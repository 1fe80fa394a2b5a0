//! P4: what the compiled code of a wrong kernel shows beside that of the right one, without running either.

use std::collections::BTreeMap;

use gpuemu_config::ArtifactChecks;
use gpuemu_engine::oracle::naive::{NaiveInputs, NaiveSetting};
use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::artifact::{ConstantChange, KernelArtifact, ToolUse};
use gpuemu_ptx::diff::compare;
use gpuemu_ptx::inspect::Inspector;
use gpuemu_ptx::tools::Toolchain;
use gpuemu_runners::kernels::CompiledKernel;
use gpuemu_tensor::DType;
use serde::Serialize;

use super::{Progress, subject_of};
use crate::compiled;
use crate::kernel_run::default_parameters;
use crate::published::{Entry, KERNELS, Role, RunnerChoice};

/// A measure of both kernels of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measure {
    pub name: &'static str,
    /// Of the right kernel; nothing if not measured.
    pub right: Option<u64>,
    pub wrong: Option<u64>,
}

impl Measure {
    /// Wrong minus right; nothing if one was not measured.
    pub fn delta(&self) -> Option<i64> {
        i64::try_from(self.wrong?).ok()?.checked_sub(i64::try_from(self.right?).ok()?)
    }
}

/// The names of the measures, in order.
pub const MEASURES: [&str; 9] = [
    "declared registers",
    "instructions",
    "arithmetic instructions",
    "memory instructions",
    "control instructions",
    "loops",
    "shared bytes",
    "hardware registers",
    "machine instructions",
];

/// What the published study counted: virtual registers and instructions of the PTX.
pub const PUBLISHED_MEASURES: [usize; 2] = [0, 1];

/// Measures that need NVIDIA's assembler.
pub const ASSEMBLED_MEASURES: [usize; 2] = [7, 8];

/// What the compiled code of a pair shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The file of the right kernel that is shown.
    pub right: String,
    /// The file of the wrong one.
    pub wrong: String,
    /// Measures of both, as in [`MEASURES`].
    pub measures: Vec<Measure>,
    /// Fingerprints of the constants of both.
    pub fingerprints: [String; 2],
    pub constants: Vec<ConstantChange>,
    /// Compiled forms that both kernels have: one for each dtype and tile.
    pub forms: usize,
    /// Of them, those in which some count differs.
    pub forms_by_count: usize,
    /// Of them, those in which the constants differ.
    pub forms_by_constants: usize,
    /// Of them, those in which either differs.
    pub forms_seen: usize,
}

impl Compared {
    /// Whether some count that the PTX alone gives differs.
    pub fn seen_by_count(&self) -> bool {
        let own = |place: &usize| !ASSEMBLED_MEASURES.contains(place);
        let differs = |measure: &Measure| measure.right != measure.wrong;
        self.measures.iter().enumerate().any(|(place, measure)| own(&place) && differs(measure))
    }

    /// Whether the fingerprint of constants differs.
    pub fn seen_by_constants(&self) -> bool {
        self.fingerprints[0] != self.fingerprints[1]
    }
}

/// A wrong kernel and the right one.
#[derive(Debug, Clone)]
pub struct Pair {
    pub bug: Entry,
    pub control: Entry,
    /// What their code shows; nothing where they are not compiled.
    pub compared: Option<Compared>,
}

/// What was measured of all pairs.
#[derive(Debug, Clone)]
pub struct Study {
    /// The pairs, in the order of the published table.
    pub pairs: Vec<Pair>,
    /// The programs that helped.
    pub tools: Vec<ToolUse>,
    /// What was not measured, and why.
    pub not_measured: BTreeMap<String, String>,
}

/// How many units of progress the study reports.
pub fn work() -> u64 {
    KERNELS.iter().filter(|entry| entry.role() == Role::Bug).count() as u64
}

/// Runs the study with the tools that were found, if any.
pub fn run(toolchain: &Toolchain, progress: Progress<'_>) -> Result<Study, String> {
    let mut study = Study { pairs: Vec::new(), tools: Vec::new(), not_measured: BTreeMap::new() };
    for bug in KERNELS.iter().filter(|entry| entry.role() == Role::Bug) {
        let control = bug.control().ok_or_else(|| format!("kernel '{}' has no control", bug.name))?;
        let compared = match (compiled::find(control.name)?, compiled::find(bug.name)?) {
            (Some(right), Some(wrong)) => Some(study.compare(bug, &right, &wrong, toolchain)?),
            _ => None,
        };
        study.pairs.push(Pair { bug: *bug, control: *control, compared });
        progress(1);
    }
    Ok(study)
}

impl Study {
    fn compare(
        &mut self,
        bug: &Entry,
        right: &CompiledKernel,
        wrong: &CompiledKernel,
        toolchain: &Toolchain,
    ) -> Result<Compared, String> {
        let shown = [shown_file(bug, right)?, shown_file(bug, wrong)?];
        let artifacts = [inspect(shown[0], toolchain)?, inspect(shown[1], toolchain)?];
        for artifact in &artifacts {
            self.tools
                .extend(artifact.tools.iter().filter(|tool| !self.tools.contains(tool)).cloned().collect::<Vec<_>>());
            let known = artifact.not_measured.iter().map(|not| (not.what.clone(), not.why.clone()));
            // What only a launch says, and occupancy, which hangs on it, are not of the study.
            self.not_measured.extend(known.filter(|(what, _)| !what.contains(" of ")));
        }
        let mut compared = compared(shown, &artifacts)?;
        // What tools say of every form would take minutes, and the counts are those of the PTX.
        let bare = Toolchain::default();
        let forms = wrong.launch_table().variants.iter().filter_map(|variant| {
            let twin = right.launch_table().variants.iter().find(|other| other.when.text() == variant.when.text())?;
            Some([twin.ptx.as_str(), variant.ptx.as_str()])
        });
        for form in forms {
            let found = self::compared(form, &[inspect(form[0], &bare)?, inspect(form[1], &bare)?])?;
            compared.forms += 1;
            compared.forms_by_count += usize::from(found.seen_by_count());
            compared.forms_by_constants += usize::from(found.seen_by_constants());
            compared.forms_seen += usize::from(found.seen_by_count() || found.seen_by_constants());
        }
        Ok(compared)
    }
}

/// The file that runs the corpus's own shape in float32.
fn shown_file<'k>(bug: &Entry, kernel: &'k CompiledKernel) -> Result<&'k str, String> {
    let subject = subject_of(bug, RunnerChoice::Ptx)?;
    let (sizes, parameters) = (bug.naive_sizes(), default_parameters(&subject));
    let setting = NaiveSetting { sizes, parameters, dtype: DType::F32, inputs: NaiveInputs::Uniform, base_seed: 0 };
    let descriptor = setting.descriptor(&subject, 0);
    let found = kernel.variant(subject.schema(), &descriptor);
    found.ok_or_else(|| format!("kernel '{}' does not cover {}", kernel.name(), descriptor.sizes))
}

fn inspect(file: &str, toolchain: &Toolchain) -> Result<KernelArtifact, String> {
    let inspector = Inspector { toolchain, architectures: &[], rules: &[], launch: OccupancyLaunch::default() };
    let report = inspector.text(&compiled::source(file)?, &ArtifactChecks::default());
    report.artifact.ok_or_else(|| report.message.unwrap_or_else(|| format!("{file} cannot be measured")))
}

fn compared(files: [&str; 2], artifacts: &[KernelArtifact; 2]) -> Result<Compared, String> {
    let [right, wrong] = artifacts.each_ref().map(measures);
    let (right, wrong) = (right?, wrong?);
    let pairs = MEASURES.iter().zip(right.values).zip(wrong.values);
    Ok(Compared {
        right: files[0].to_string(),
        wrong: files[1].to_string(),
        measures: pairs.map(|((name, right), wrong)| Measure { name, right, wrong }).collect(),
        fingerprints: [right.fingerprint, wrong.fingerprint],
        constants: compare(&artifacts[0], &artifacts[1], 0.0).into_iter().flat_map(|found| found.constants).collect(),
        forms: 0,
        forms_by_count: 0,
        forms_by_constants: 0,
        forms_seen: 0,
    })
}

struct Measured {
    values: [Option<u64>; MEASURES.len()],
    fingerprint: String,
}

fn measures(artifact: &KernelArtifact) -> Result<Measured, String> {
    let [entry] = artifact.entries.as_slice() else {
        return Err(format!("{} has {} entries, not one", artifact.kernel, artifact.entries.len()));
    };
    let counts = &entry.instructions;
    let assembled = entry.compiled.first();
    let machine = assembled.and_then(|compiled| compiled.sass.as_ref()).map(|sass| sass.values().sum());
    let values = [
        Some(entry.registers.values().sum()),
        Some(counts.total),
        Some(counts.arithmetic),
        Some(counts.memory),
        Some(counts.control),
        Some(entry.loops),
        Some(entry.shared.bytes),
        assembled.and_then(|compiled| compiled.registers),
        machine,
    ];
    Ok(Measured { values, fingerprint: entry.constants.fingerprint.clone() })
}
