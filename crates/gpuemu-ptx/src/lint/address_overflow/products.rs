//! What a 32-bit value was multiplied by before it became part of an address.

use std::collections::HashSet;

use gpuemu_model::artifact::Severity;

use super::trace::Root;
use crate::flow::loops::{Components, strongly_connected};
use crate::flow::uses::Lists;
use crate::flow::{Value, Version};
use crate::lint::function::Analysed;
use crate::syntax::ScalarType;

/// How a product came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of two values that are not known when compiling.
    Variable,
    /// Of a value and a constant.
    Constant,
    /// By adding a value again and again in a loop.
    Loop,
}

/// A product that can wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Product {
    /// The instruction that makes it.
    pub step: usize,
    pub kind: Kind,
    pub severity: Severity,
    /// What it is multiplied by afterwards, still in 32 bits.
    pub factor: u64,
}

/// The most threads of a block. A factor that is no larger needs an improbable other to make a product wrap.
const MOST_THREADS: u64 = 1024;
/// How many definitions are looked at in a function before the search is given up.
const MOST_LOOKS: usize = 4_000_000;

/// Versions that are still to be looked at, and what they are multiplied by afterwards.
type Waiting = Vec<(Version, u64)>;

/// The search for products in a function.
pub(super) struct Products<'f, 'm, 'a> {
    function: &'f Analysed<'m, 'a>,
    /// Versions that are added to themselves in a loop are in one set.
    sums: Components,
    looks: usize,
}

impl<'f, 'm, 'a> Products<'f, 'm, 'a> {
    pub fn of(function: &'f Analysed<'m, 'a>) -> Self {
        let steps = 0..function.code.steps.len();
        let edges = steps.flat_map(|step| {
            let base = function.code.steps.get(step).map_or("", |step| step.instruction.base());
            let places: &[usize] = match base {
                "mov" => &[1],
                "add" | "sub" | "selp" => &[1, 2],
                _ => &[],
            };
            let result = function.result(step);
            places.iter().filter_map(move |place| Some((result?.index(), function.version(step, *place)?.0)))
        });
        let operands = Lists::of(function.uses.len(), edges);
        let sums = strongly_connected(function.uses.len(), |version| operands.get(version), |_| true);
        Self { function, sums, looks: 0 }
    }

    /// Whether the search was given up somewhere.
    pub fn exhausted(&self) -> bool {
        self.looks >= MOST_LOOKS
    }

    /// The product that most likely makes a value wrap.
    pub fn worst(&mut self, root: &Root) -> Option<Product> {
        let mut worst: Option<Product> = None;
        let mut seen = HashSet::new();
        let mut waiting = vec![(root.version, 1)];
        while let Some((version, factor)) = waiting.pop() {
            if self.exhausted() {
                break;
            }
            if !seen.insert(version) || !self.may_wrap(version, factor, root) {
                continue;
            }
            let definitions = self.function.uses.definitions(version);
            self.looks += definitions.len() + 1;
            for step in definitions {
                let found = self.definition(*step as usize, factor, root, &mut waiting);
                // A product with a constant is told only if its scale is: the other way round it is an index.
                let found = found.filter(|found| found.severity == Severity::Warning || root.scale.is_some());
                let rank = |product: &Product| (product.severity, product.kind != Kind::Constant);
                if let Some(found) = found
                    && worst.as_ref().is_none_or(|worst| rank(&found) > rank(worst))
                {
                    worst = Some(found);
                }
            }
        }
        worst
    }

    fn may_wrap(&self, version: Version, factor: u64, root: &Root) -> bool {
        self.function.values.of_version(version).most.saturating_mul(factor) >= root.limit()
    }

    /// What a definition multiplies; what it is made of otherwise waits to be looked at.
    fn definition(&self, step: usize, factor: u64, root: &Root, waiting: &mut Waiting) -> Option<Product> {
        let function = self.function;
        let instruction = function.code.steps.get(step)?.instruction;
        let mut push = |place: usize| {
            waiting.extend(function.version(step, place).map(|version| (version, factor)));
        };
        match instruction.base() {
            "mov" => push(1),
            "cvt" if instruction.types().all(|kind| kind.bytes() == Some(4) && !kind.is_float()) => push(1),
            "add" | "sub" => {
                push(1);
                push(2);
                return self.grown(step, factor);
            }
            "or" | "selp" | "min" | "max" => {
                push(1);
                push(2);
            }
            "and" => {
                // A mask that only clears low bits rounds down; any other bounds its result.
                for (place, mask) in [(1, 2), (2, 1)] {
                    let mask = instruction.operands.get(mask).and_then(|mask| function.constant(step, mask));
                    if mask.is_some_and(|mask| mask < 0) {
                        push(place);
                    }
                }
            }
            "mul" | "mad" if instruction.has("lo") && is_narrow(instruction.types().next()) => {
                push(3);
                return self.multiplied(step, factor, root, waiting);
            }
            "shl" if is_narrow(instruction.types().next()) => {
                let (value, by) = (function.value(step, 1), function.value(step, 2));
                let Some(by) = by.constant.and_then(|by| u32::try_from(by).ok()).filter(|by| *by < 32) else {
                    return Some(Product { step, kind: Kind::Variable, severity: severity(value, by, factor), factor });
                };
                let scaled = factor.saturating_mul(1 << by);
                waiting.extend(function.version(step, 1).map(|version| (version, scaled)));
                let wraps = value.most.saturating_mul(scaled) >= root.limit();
                return wraps.then_some(Product { step, kind: Kind::Constant, severity: Severity::Note, factor });
            }
            _ => {}
        }
        None
    }

    fn multiplied(&self, step: usize, factor: u64, root: &Root, waiting: &mut Waiting) -> Option<Product> {
        let (left, right) = (self.function.value(step, 1), self.function.value(step, 2));
        if left.most.saturating_mul(right.most).saturating_mul(factor) < root.limit() {
            return None;
        }
        let (place, constant) = match (left.constant, right.constant) {
            (Some(_), Some(_)) => return None,
            (None, None) => {
                let severity = severity(left, right, factor);
                let product = Product { step, kind: Kind::Variable, severity, factor };
                return (!self.undoes_division(step)).then_some(product);
            }
            (Some(constant), None) => (2, constant),
            (None, Some(constant)) => (1, constant),
        };
        let scaled = factor.saturating_mul(constant.unsigned_abs());
        waiting.extend(self.function.version(step, place).map(|version| (version, scaled)));
        Some(Product { step, kind: Kind::Constant, severity: Severity::Note, factor })
    }

    /// Whether a quotient is multiplied by its own divisor: that never exceeds what was divided.
    fn undoes_division(&self, step: usize) -> bool {
        let function = self.function;
        let factors = [function.version(step, 1), function.version(step, 2)];
        let divides = |quotient: Option<Version>, divisor: Option<Version>| {
            let Some(quotient) = quotient else { return false };
            let [definition] = function.uses.definitions(quotient) else { return false };
            let definition = *definition as usize;
            let base = function.code.steps.get(definition).map_or("", |step| step.instruction.base());
            base == "div" && divisor.is_some() && function.version(definition, 2) == divisor
        };
        divides(factors[0], factors[1]) || divides(factors[1], factors[0])
    }

    /// A sum that is added to itself in a loop is a product of the loop's turns.
    fn grown(&self, step: usize, factor: u64) -> Option<Product> {
        let function = self.function;
        let set = |version: Version| self.sums.of.get(version.index()).copied().flatten();
        let own = set(function.result(step)?);
        let inside = |place: usize| function.version(step, place).is_some_and(|version| set(version) == own);
        let place = match (inside(1), inside(2)) {
            (true, false) => 2,
            (false, true) => 1,
            _ => return None,
        };
        let by = function.value(step, place);
        if by.constant.is_some() || by.most <= MOST_THREADS {
            return None;
        }
        let severity = if by.sources.data { Severity::Warning } else { Severity::Note };
        Some(Product { step, kind: Kind::Loop, severity, factor })
    }
}

/// A product that only an improbable stride makes wrap, or one of launch sizes alone, is worth a note.
fn severity(left: Value, right: Value, factor: u64) -> Severity {
    let data = left.sources.data || right.sources.data;
    let smaller = left.most.min(right.most).saturating_mul(factor);
    if data && smaller > MOST_THREADS { Severity::Warning } else { Severity::Note }
}

fn is_narrow(kind: Option<ScalarType>) -> bool {
    kind.and_then(ScalarType::bytes) == Some(4)
}
