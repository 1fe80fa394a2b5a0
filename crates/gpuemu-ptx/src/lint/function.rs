//! One function with all that rules ask of it.

use crate::code::{Code, Register};
use crate::flow::{Graph, Loops, Uses, Value, Values, Version};
use crate::syntax::Operand;

/// A function and how control and values move in it.
pub(crate) struct Analysed<'m, 'a> {
    pub code: Code<'m, 'a>,
    pub graph: Graph,
    pub loops: Loops,
    pub uses: Uses,
    pub values: Values,
}

impl<'m, 'a> Analysed<'m, 'a> {
    pub fn of(code: Code<'m, 'a>) -> Self {
        let graph = Graph::of(&code);
        let loops = Loops::of(&graph);
        let uses = Uses::of(&code, &graph);
        let values = Values::of(&code, &uses);
        Self { code, graph, loops, uses, values }
    }
}

impl Analysed<'_, '_> {
    /// The version of a register that an operand of a step is, for operands that are read.
    pub fn version(&self, step: usize, place: usize) -> Option<Version> {
        self.uses.read(&self.code, step, self.register(step, place)?)
    }

    /// The version of a register that a step writes as its first operand.
    pub fn result(&self, step: usize) -> Option<Version> {
        self.uses.written(&self.code, step, self.register(step, 0)?)
    }

    /// The register that an operand of a step is.
    pub fn register(&self, step: usize, place: usize) -> Option<Register> {
        match self.code.steps.get(step)?.instruction.operands.get(place)? {
            Operand::Name(name) => self.code.register(step, name),
            _ => None,
        }
    }

    /// What is known of an operand of a step.
    pub fn value(&self, step: usize, place: usize) -> Value {
        let operand = self.code.steps.get(step).and_then(|found| found.instruction.operands.get(place));
        let known = operand.and_then(|operand| self.values.operand(&self.code, &self.uses, step, operand));
        known.unwrap_or(Value::data(u64::MAX))
    }

    /// The value of an operand that is always the same.
    pub fn constant(&self, step: usize, operand: &Operand<'_>) -> Option<i64> {
        self.values.operand(&self.code, &self.uses, step, operand)?.constant
    }
}
