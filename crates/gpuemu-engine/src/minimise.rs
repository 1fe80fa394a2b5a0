//! Shrinks a failing case: dims, then layout, dtype and values, re-running the kernel each time
//! and keeping only what still fails for the same reason.

use std::str::FromStr;
use std::time::{Duration, Instant};

use gpuemu_tensor::{DType, Tensor};
use serde::Serialize;

use crate::case::{Case, CaseDescriptor, Layout, Strategy, materialise};
use crate::oracle::{Subject, judge};
use crate::runner::Runner;
use crate::schema::Sizes;
use crate::verdict::{Check, Finding, Verdict};

/// What may be shrunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MinimiseStrategy {
    /// Dims, layout, dtype and values.
    #[default]
    Combined,
    Dims,
    Values,
}

impl FromStr for MinimiseStrategy {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "combined" => Ok(Self::Combined),
            "binary-search-dims" => Ok(Self::Dims),
            "binary-search-values" => Ok(Self::Values),
            _ => Err(format!("unknown strategy '{name}'; known: combined, binary-search-dims, binary-search-values")),
        }
    }
}

/// How much may be spent.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Runs of the case.
    pub runs: usize,
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { runs: 2000, time: Duration::from_secs(60) }
    }
}

/// A passing case one step away from the smallest failing one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbour {
    /// The dim that differs.
    pub dimension: String,
    /// Its size in the failing case.
    pub fails: usize,
    /// Its size in the passing case.
    pub passes: usize,
}

/// The smallest failing case found.
#[derive(Debug, Clone)]
pub struct Minimised {
    /// The case, inputs included: values that were simplified have no seed of their own.
    pub case: Case,
    pub verdict: Verdict,
    /// A passing case next to it.
    pub neighbour: Option<Neighbour>,
    pub runs: usize,
    /// Whether inputs are no longer those that the descriptor generates.
    pub edited: bool,
}

/// Shrinks a failing case. `None` if it does not fail (any more).
pub fn minimise(
    subject: &Subject,
    descriptor: &CaseDescriptor,
    runner: &mut dyn Runner,
    strategy: MinimiseStrategy,
    budget: Budget,
) -> Option<Minimised> {
    let case = materialise(subject.schema(), descriptor).ok()?;
    minimise_case(subject, case, runner, strategy, budget)
}

/// Shrinks a failing case whose inputs are given.
pub fn minimise_case(
    subject: &Subject,
    case: Case,
    runner: &mut dyn Runner,
    strategy: MinimiseStrategy,
    budget: Budget,
) -> Option<Minimised> {
    let verdict = judge(subject, &case, runner);
    let reason = verdict.reason().filter(|_| verdict.failed())?;
    let deadline = Instant::now() + budget.time;
    let mut search =
        Search { subject, runner, reason, case, verdict, runs: 1, limit: budget.runs, deadline, edited: false };
    // A failure found by escalation is shrunk as the case that really failed.
    if let Some(failing) = search.verdict.failing_case.take() {
        search.try_descriptor(&failing);
    }
    let mut neighbour = None;
    if strategy != MinimiseStrategy::Values {
        while search.shrink_sizes() {}
        if strategy == MinimiseStrategy::Combined {
            search.plain_layout();
            search.simpler_dtype();
            search.simpler_strategy();
            while search.shrink_sizes() {}
        }
        neighbour = search.neighbour();
    }
    if strategy != MinimiseStrategy::Dims {
        search.simplify_values();
    }
    Some(Minimised { case: search.case, verdict: search.verdict, neighbour, runs: search.runs, edited: search.edited })
}

struct Search<'a> {
    subject: &'a Subject,
    runner: &'a mut dyn Runner,
    reason: Check,
    case: Case,
    verdict: Verdict,
    runs: usize,
    limit: usize,
    deadline: Instant,
    edited: bool,
}

impl Search<'_> {
    fn spent(&self) -> bool {
        self.runs >= self.limit || Instant::now() >= self.deadline
    }

    /// Judges a case; keeps it and says true if it fails for the same reason.
    fn try_case(&mut self, case: Case) -> bool {
        if self.spent() {
            return false;
        }
        self.runs += 1;
        let verdict = judge(self.subject, &case, self.runner);
        // Of several things that the machine finds, another one may come first where the case is smaller.
        let reason = |finding: &Finding| finding.check == self.reason;
        let same = verdict.failed() && verdict.failing_case.is_none() && verdict.failures.iter().any(reason);
        if same {
            self.case = case;
            self.verdict = verdict;
        }
        same
    }

    fn try_descriptor(&mut self, descriptor: &CaseDescriptor) -> bool {
        if !self.runner.covers(self.subject.schema(), descriptor) {
            return false;
        }
        match materialise(self.subject.schema(), descriptor) {
            Ok(case) => self.try_case(case),
            Err(_) => false,
        }
    }

    fn try_size(&mut self, slot: usize, size: usize) -> bool {
        let mut descriptor = self.case.descriptor.clone();
        set_size(&mut descriptor.sizes, slot, size);
        self.allows(&descriptor.sizes, slot) && self.try_descriptor(&descriptor)
    }

    fn allows(&self, sizes: &Sizes, slot: usize) -> bool {
        let Some((name, size)) = slot.checked_sub(sizes.batch.len()).and_then(|index| sizes.named.get(index)) else {
            return true;
        };
        // A parameter that is a size stays what it was.
        self.subject.schema().dimension(name).is_some_and(|dimension| dimension.allows(*size))
    }

    /// One round over all dims; true if something became smaller.
    fn shrink_sizes(&mut self) -> bool {
        let mut shrunk = self.drop_batch_dims();
        for slot in 0..slots(&self.case.descriptor.sizes) {
            let start = get_size(&self.case.descriptor.sizes, slot);
            // Jump to the smallest sizes first, then search between what passes and what fails.
            let quick = (1..start.min(5)).any(|size| self.try_size(slot, size));
            if !quick {
                let (mut passes, mut fails) = (start.min(4), start);
                while passes + 1 < fails && !self.spent() {
                    let middle = passes + (fails - passes) / 2;
                    if self.try_size(slot, middle) { fails = middle } else { passes = middle }
                }
            }
            // Failures of tile residues are not monotonic: step down as far as it goes.
            let mut size = get_size(&self.case.descriptor.sizes, slot);
            while size > 1 && self.try_size(slot, size - 1) {
                size -= 1;
            }
            shrunk |= get_size(&self.case.descriptor.sizes, slot) < start;
        }
        shrunk && !self.spent()
    }

    /// Removes leading dims of `...` one by one.
    fn drop_batch_dims(&mut self) -> bool {
        let mut dropped = false;
        while !self.case.descriptor.sizes.batch.is_empty() {
            let mut descriptor = self.case.descriptor.clone();
            descriptor.sizes.batch.remove(0);
            if !self.try_descriptor(&descriptor) {
                break;
            }
            dropped = true;
        }
        dropped
    }

    fn plain_layout(&mut self) {
        let mut descriptor = self.case.descriptor.clone();
        for index in 0..descriptor.layouts.len() {
            let old = std::mem::replace(&mut descriptor.layouts[index].1, Layout::Contiguous);
            if old != Layout::Contiguous && !self.try_descriptor(&descriptor) {
                descriptor.layouts[index].1 = old;
            }
        }
    }

    fn simpler_dtype(&mut self) {
        let mut descriptor = self.case.descriptor.clone();
        if descriptor.dtype != DType::F32 && self.subject.schema().dtypes.contains(&DType::F32) {
            descriptor.dtype = DType::F32;
            self.try_descriptor(&descriptor);
        }
    }

    fn simpler_strategy(&mut self) {
        for strategy in [Strategy::Integers, Strategy::Regular] {
            let mut descriptor = self.case.descriptor.clone();
            if descriptor.values == strategy {
                return;
            }
            descriptor.values = strategy;
            if self.try_descriptor(&descriptor) {
                return;
            }
        }
    }

    /// A passing size next to the failing one: one more first, as tiles round up.
    fn neighbour(&mut self) -> Option<Neighbour> {
        let sizes = self.case.descriptor.sizes.clone();
        for slot in (0..slots(&sizes)).rev() {
            let fails = get_size(&sizes, slot);
            for passes in [Some(fails + 1), fails.checked_sub(1).filter(|size| *size > 0)].into_iter().flatten() {
                let mut descriptor = self.case.descriptor.clone();
                set_size(&mut descriptor.sizes, slot, passes);
                if self.spent() || !self.allows(&descriptor.sizes, slot) {
                    continue;
                }
                let Ok(case) = materialise(self.subject.schema(), &descriptor) else { continue };
                self.runs += 1;
                let passed = judge(self.subject, &case, self.runner).outcome == crate::verdict::Outcome::Passed;
                if passed {
                    return Some(Neighbour { dimension: slot_name(&sizes, slot), fails, passes });
                }
            }
        }
        None
    }

    /// Binary search for the elements that matter: ever smaller runs of elements are zeroed, then
    /// what is left is rounded to few digits.
    fn simplify_values(&mut self) {
        for input in 0..self.case.inputs.len() {
            let real = self.subject.schema().inputs[input].is_real();
            let Some(count) = self.case.inputs[input].as_ref().filter(|_| real).map(Tensor::len) else { continue };
            let mut run = count;
            while run >= 1 && count > 0 {
                for start in (0..count).step_by(run) {
                    let end = (start + run).min(count);
                    self.edit(input, |index, value| if (start..end).contains(&index) { 0.0 } else { value });
                }
                run /= 2;
            }
            self.edit(input, |_, value| value.round());
            self.edit(input, |_, value| (value * 16.0).round() / 16.0);
        }
    }

    fn edit(&mut self, input: usize, change: impl Fn(usize, f64) -> f64) -> bool {
        let Some(tensor) = &self.case.inputs[input] else { return false };
        let old = tensor.to_f64();
        let new: Vec<f64> = old.iter().enumerate().map(|(index, value)| change(index, *value)).collect();
        if new.iter().zip(&old).all(|(new, old)| new.to_bits() == old.to_bits()) {
            return false;
        }
        let Ok(tensor) = Tensor::from_f64(tensor.dtype(), tensor.shape().to_vec(), &new) else { return false };
        // An edited input is contiguous; one whose layout matters is left alone.
        let name = &self.subject.schema().inputs[input].name;
        if self.case.descriptor.layout_of(name) != Layout::Contiguous {
            return false;
        }
        let mut case = self.case.clone();
        case.inputs[input] = Some(tensor);
        let kept = self.try_case(case);
        self.edited |= kept;
        kept
    }
}

fn slots(sizes: &Sizes) -> usize {
    sizes.batch.len() + sizes.named.len()
}

fn get_size(sizes: &Sizes, slot: usize) -> usize {
    let named = slot.checked_sub(sizes.batch.len()).and_then(|index| sizes.named.get(index));
    named.map(|(_, size)| *size).or_else(|| sizes.batch.get(slot).copied()).unwrap_or(0)
}

fn set_size(sizes: &mut Sizes, slot: usize, size: usize) {
    let rank = sizes.batch.len();
    if slot < rank {
        sizes.batch[slot] = size;
    } else if let Some((_, old)) = sizes.named.get_mut(slot - rank) {
        *old = size;
    }
}

fn slot_name(sizes: &Sizes, slot: usize) -> String {
    match slot.checked_sub(sizes.batch.len()).and_then(|index| sizes.named.get(index)) {
        Some((name, _)) => name.clone(),
        None => format!("...[{slot}]"),
    }
}
