//! P1: `allclose` as people really run it, on one shape with five random inputs, over several shapes, inputs and
//! tolerances; and our verdict beside it.

use gpuemu_engine::oracle::naive::{NaiveInputs, NaiveSetting, accepted, tolerance};
use gpuemu_engine::oracle::{Subject, Tolerance};
use gpuemu_engine::runner::RunnerKind;
use gpuemu_engine::schema::Sizes;
use gpuemu_tensor::DType;
use rayon::prelude::*;
use serde::Serialize;

use super::{Progress, subject_of};
use crate::detection::DTYPES;
use crate::kernel_run::{self, CaseCounts, default_parameters};
use crate::published::{Entry, KERNELS, Role, RunnerChoice};

/// A check that is tried: its name, and the error it allows for a dtype.
pub struct UsualCheck {
    pub name: &'static str,
    allowed: fn(DType) -> Tolerance,
}

/// The checks that are tried.
pub const CHECKS: [UsualCheck; 3] = [
    UsualCheck { name: "torch assert_close", allowed: assert_close },
    UsualCheck { name: "1e-4 / 1e-2", allowed: by_dtype },
    UsualCheck { name: "1e-2", allowed: |_| Tolerance::Fixed { atol: 1e-2, rtol: 1e-2 } },
];

/// What `torch.testing.assert_close` allows where nothing is said.
fn assert_close(dtype: DType) -> Tolerance {
    let rtol = match dtype {
        DType::F16 => 1e-3,
        DType::BF16 => 1.6e-2,
        _ => 1.3e-6,
    };
    Tolerance::Fixed { atol: 1e-5, rtol }
}

fn by_dtype(dtype: DType) -> Tolerance {
    Tolerance::Fixed { atol: tolerance(dtype), rtol: tolerance(dtype) }
}

/// The shapes that are tried: the corpus's own, then widths of what is reduced.
pub const SHAPES: [(&str, Option<usize>); 8] = [
    ("corpus", None),
    ("64", Some(64)),
    ("128", Some(128)),
    ("256", Some(256)),
    ("512", Some(512)),
    ("1024", Some(1024)),
    ("77", Some(77)),
    ("1000", Some(1000)),
];

/// Rows of the shapes that are a width.
pub const ROWS: usize = 16;

/// What the checks said in one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The shape, by its name in [`SHAPES`].
    pub shape: &'static str,
    pub inputs: &'static str,
    pub dtype: DType,
    /// For each of [`CHECKS`] whether it accepts; nothing where the kernel does not cover the shape.
    pub accepted: Option<Vec<bool>>,
}

/// One kernel of the study.
#[derive(Debug, Clone)]
pub struct Row {
    pub entry: Entry,
    pub runner: RunnerKind,
    /// What the usual checks said.
    pub answers: Vec<Answer>,
    pub counts: CaseCounts,
}

impl Row {
    /// In how many settings a check accepts, and in how many it was run.
    pub fn accepted(&self, check: usize, chosen: impl Fn(&Answer) -> bool) -> (usize, usize) {
        let run = self.answers.iter().filter(|answer| chosen(answer)).filter_map(|answer| answer.accepted.as_ref());
        run.fold((0, 0), |(yes, all), accepted| (yes + usize::from(accepted.get(check) == Some(&true)), all + 1))
    }

    /// Whether our verdict on the kernel is right.
    pub fn verdict_is_right(&self) -> bool {
        (self.counts.detected > 0) == (self.entry.role() == Role::Bug)
    }
}

/// How many units of progress a study of so many cases reports.
pub fn work(cases: u64) -> u64 {
    KERNELS.len() as u64 * (cases + (SHAPES.len() * NaiveInputs::ALL.len() * DTYPES.len()) as u64)
}

/// Runs the study. Ours has `cases` cases for each kernel.
pub fn run(choice: RunnerChoice, base_seed: u64, cases: u64, progress: Progress<'_>) -> Result<Vec<Row>, String> {
    KERNELS.iter().map(|entry| row(entry, choice, base_seed, cases, progress)).collect()
}

fn row(entry: &Entry, choice: RunnerChoice, base_seed: u64, cases: u64, progress: Progress<'_>) -> Result<Row, String> {
    let subject = subject_of(entry, choice)?;
    let ours = kernel_run::run(entry, choice, &subject, base_seed, cases, progress)?;
    let mut settings = Vec::new();
    for (shape, width) in SHAPES {
        for inputs in NaiveInputs::ALL {
            settings.extend(DTYPES.map(|dtype| (shape, setting(entry, &subject, width, inputs, dtype, base_seed))));
        }
    }
    let answers = settings.par_iter().map(|(shape, setting)| {
        let answer = answer(entry, choice, &subject, shape, setting);
        progress(1);
        answer
    });
    let answers = answers.collect::<Result<_, _>>()?;
    Ok(Row { entry: *entry, runner: ours.runner.kind, answers, counts: ours.counts })
}

fn answer(
    entry: &Entry,
    choice: RunnerChoice,
    subject: &Subject,
    shape: &'static str,
    setting: &NaiveSetting,
) -> Result<Answer, String> {
    let mut runner = entry.runner(choice)?;
    let covered = runner.covers(subject.schema(), &setting.descriptor(subject, 0));
    let checks: Vec<&dyn Fn(DType) -> Tolerance> = CHECKS.iter().map(|check| &check.allowed as _).collect();
    let accepted = match covered {
        true => Some(accepted(subject, runner.as_mut(), setting, &checks)?),
        false => None,
    };
    Ok(Answer { shape, inputs: setting.inputs.name(), dtype: setting.dtype, accepted })
}

fn setting(
    entry: &Entry,
    subject: &Subject,
    width: Option<usize>,
    inputs: NaiveInputs,
    dtype: DType,
    base_seed: u64,
) -> NaiveSetting {
    let parameters = default_parameters(subject);
    NaiveSetting { sizes: sizes(entry, width), parameters, dtype, inputs, base_seed }
}

/// The corpus's own shape, or one whose reduced dim has this width.
fn sizes(entry: &Entry, width: Option<usize>) -> Sizes {
    let mut sizes = entry.naive_sizes();
    let Some(width) = width else { return sizes };
    match entry.op() {
        "matmul" => sizes.set("K", width),
        "attention" => sizes.set("N", width),
        _ if sizes.get("H").is_some() => {
            sizes.batch = vec![ROWS];
            sizes.set("H", width);
        }
        // A flat kernel reduces nothing: its tensor is as large as that of a row kernel.
        _ => sizes.batch = vec![ROWS, width],
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::find;

    #[test]
    fn a_width_is_that_of_the_reduced_dim() {
        let shown = |name: &str| sizes(find(name).unwrap(), Some(77)).to_string();
        assert_eq!(shown("matmul"), "M=64 K=77 N=64");
        assert!(shown("attention").contains("N=77"), "{}", shown("attention"));
        assert!(shown("softmax").contains("H=77"), "{}", shown("softmax"));
        assert!(!shown("relu").contains("H=") && shown("relu").contains("77"), "{}", shown("relu"));
    }

    #[test]
    fn tolerances_are_those_of_the_framework() {
        assert_eq!(assert_close(DType::F32), Tolerance::Fixed { atol: 1e-5, rtol: 1.3e-6 });
        assert_eq!(assert_close(DType::BF16), Tolerance::Fixed { atol: 1e-5, rtol: 1.6e-2 });
        assert_eq!(by_dtype(DType::F16), Tolerance::Fixed { atol: 1e-2, rtol: 1e-2 });
    }
}
