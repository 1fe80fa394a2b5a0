//! What is judged, and what is expected of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use gpuemu_config::Invariant;
use gpuemu_tensor::DType;

use super::compare::{Forgiven, Rule};
use super::tolerance::Tolerance;
use crate::case::{Case, CaseDescriptor, Sampler};
use crate::ops::{Call, ExcuseKind, Expectation, Op, OpError};
use crate::schema::{Precision, Schema};

/// What is judged: an op, how it may round, and how much error it is allowed.
#[derive(Clone)]
pub struct Subject {
    op: Arc<dyn Op>,
    schema: Schema,
    fingerprint: String,
    /// The precision class that the kernel declares.
    pub precision: Precision,
    /// The error allowed where `tolerances` has none for the dtype of an output.
    pub tolerance: Tolerance,
    /// The error allowed, by the dtype of an output.
    pub tolerances: BTreeMap<DType, Tolerance>,
    /// Structural properties that are demanded of every output.
    pub invariants: Vec<Invariant>,
    /// What is not held against the kernel.
    pub forgiven: Forgiven,
    /// Whether errors are measured, not only judged.
    pub measured: bool,
}

impl Subject {
    /// An op judged by its bound, with the precision class of its schema.
    pub fn new(op: Arc<dyn Op>) -> Self {
        let schema = op.schema().clone();
        Self::with_schema(op, schema)
    }

    /// An op whose cases come from a narrowed schema.
    pub fn with_schema(op: Arc<dyn Op>, schema: Schema) -> Self {
        let (fingerprint, precision) = (schema.fingerprint(), schema.precision.clone());
        Self {
            op,
            schema,
            fingerprint,
            precision,
            tolerance: Tolerance::Bound,
            tolerances: BTreeMap::new(),
            invariants: Vec::new(),
            forgiven: Forgiven::default(),
            measured: false,
        }
    }

    /// The same subject with another schema of the same tensors: other sizes, say.
    pub fn reshaped(mut self, change: impl FnOnce(&mut Schema)) -> Self {
        change(&mut self.schema);
        self.fingerprint = self.schema.fingerprint();
        self
    }

    /// The op and its reference.
    pub fn op(&self) -> Arc<dyn Op> {
        self.op.clone()
    }

    /// Declares a precision class.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The schema that cases come from.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The fingerprint of the schema.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The descriptor that a case seed stands for.
    pub fn describe(&self, sampler: &Sampler, seed: u64) -> CaseDescriptor {
        sampler.describe(&self.schema, &self.fingerprint, seed)
    }

    /// The case that a seed would have stood for if it could be run.
    pub fn left_out(&self, sampler: &Sampler, seed: u64) -> Option<CaseDescriptor> {
        sampler.left_out(&self.schema, &self.fingerprint, seed)
    }

    /// Every element of every output must have an expectation: one that has none would pass unseen.
    fn check_reference(&self, case: &Case, expectations: &[Expectation]) -> Result<(), OpError> {
        let outputs = self.schema.outputs.iter().filter(|spec| spec.is_in(&case.descriptor));
        for (index, spec) in outputs.enumerate() {
            let shape = spec.shape(&case.descriptor.sizes).unwrap_or_default();
            let expected = if shape.contains(&0) { 0 } else { shape.iter().product() };
            let found = expectations.get(index).map(|expectation| expectation.values.len());
            if found != Some(expected) {
                let (op, output) = (self.schema.name.clone(), spec.name.clone());
                return Err(OpError::Reference { op, output, found: found.unwrap_or(0), expected });
            }
        }
        Ok(())
    }

    /// What the op must return for a case.
    pub fn expect(&self, case: &Case) -> Result<Vec<Expectation>, OpError> {
        let mut expectations = self.op.expect(&Call::new(&self.schema, case, &self.precision)?)?;
        self.check_reference(case, &expectations)?;
        if case.descriptor.dtype == DType::F64 {
            // The reference has no more range than the kernel: where an intermediate overflows it may
            // have overflowed itself, in another order, and knows nothing.
            let excuses = expectations.iter_mut().flat_map(|expectation| &mut expectation.excuses);
            excuses.for_each(|excuse| excuse.kind = ExcuseKind::Undetermined);
        }
        Ok(expectations)
    }

    /// The error allowed in outputs of a dtype.
    pub fn tolerance_of(&self, dtype: DType) -> Tolerance {
        self.tolerances.get(&dtype).copied().unwrap_or(self.tolerance)
    }

    /// The rule by which outputs of a dtype are compared.
    pub fn rule(&self, dtype: DType) -> Rule {
        let tolerance = self.tolerance_of(dtype);
        Rule { dtype, tolerance, rounding: self.precision.rounding, forgiven: self.forgiven }
    }
}
