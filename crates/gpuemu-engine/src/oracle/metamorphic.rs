//! Metamorphic cases: a property of the op turns a case into another one that amplifies a bug.
//!
//! The transformed inputs are judged against the reference evaluated on them. The outputs of the
//! two cases are not required to agree in bits: a kernel may tile another shape otherwise.

use gpuemu_tensor::{Stream, Tensor};

use crate::case::{Case, Strategy, materialise};
use crate::schema::{Property, Schema};

/// One case in this many gets a metamorphic twin.
const EVERY: u64 = 8;

/// A transformed case and the property it comes from.
pub struct Twin {
    pub property: Property,
    /// What was done, in words.
    pub transformation: String,
    pub case: Case,
}

/// The twin of a case, decided by its seed alone; `None` for most.
pub fn twin(schema: &Schema, case: &Case) -> Option<Twin> {
    let mut stream = Stream::new(case.descriptor.seed, "metamorphic");
    if !stream.chance(1, EVERY) {
        return None;
    }
    let property = *stream.pick(&schema.properties)?;
    transform(schema, case, property, &mut stream)
}

/// A case transformed by a property, if the case allows it.
pub fn transform(schema: &Schema, case: &Case, property: Property, stream: &mut Stream) -> Option<Twin> {
    let (case, transformation) = match property {
        Property::Homogeneous { input, .. } => {
            let exponent = [-3, 2, 5][stream.below(3) as usize];
            let factor = 2f64.powi(exponent);
            (change(schema, case, input, |x| x * factor)?, format!("{input} scaled by 2^{exponent}"))
        }
        Property::ShiftInvariant { input } => {
            let shift = [8.0, -16.0, 64.0][stream.below(3) as usize];
            (change(schema, case, input, |x| x + shift)?, format!("{input} shifted by {shift}"))
        }
        Property::Linear { input } => {
            let mut descriptor = case.descriptor.clone();
            descriptor.values = Strategy::Integers;
            (materialise(schema, &descriptor).ok()?, format!("small whole numbers, {input} and all: sums are exact"))
        }
        Property::PermutationEquivariant => (reverse_batch(schema, case)?, "batch in reverse order".to_string()),
        Property::BatchInvariant => (half_batch(schema, case)?, "first half of the batch alone".to_string()),
        Property::MaskedOutIgnored { mask, inputs } => {
            (garbage_behind_mask(schema, case, mask, inputs)?, "NaN behind the mask".to_string())
        }
        // Holds element by element already; a row sum adds nothing to the bound.
        Property::RowStochastic => return None,
    };
    Some(Twin { property, transformation, case })
}

fn position(schema: &Schema, input: &str) -> Option<usize> {
    schema.inputs.iter().position(|spec| spec.name == input)
}

fn change(schema: &Schema, case: &Case, input: &str, change: impl Fn(f64) -> f64) -> Option<Case> {
    let index = position(schema, input)?;
    let tensor = case.inputs.get(index)?.as_ref()?;
    let values: Vec<f64> = tensor.to_f64().into_iter().map(change).collect();
    let mut changed = case.clone();
    changed.inputs[index] = Some(Tensor::from_f64(tensor.dtype(), tensor.shape().to_vec(), &values).ok()?);
    Some(changed)
}

/// Rearranges the flattened batch of every tensor that has one. Tensors without share it unchanged.
fn rebatch(schema: &Schema, case: &Case, entries: &[usize], batch: Vec<usize>) -> Option<Case> {
    let mut rearranged = case.clone();
    for (spec, tensor) in schema.inputs.iter().zip(&mut rearranged.inputs) {
        let Some(old) = tensor.as_ref().filter(|_| spec.batch) else { continue };
        let bytes = old.to_contiguous_bytes();
        let total = case.descriptor.sizes.batch_count();
        let entry_bytes = bytes.len() / total.max(1);
        let mut moved = Vec::with_capacity(entries.len() * entry_bytes);
        for entry in entries {
            moved.extend_from_slice(&bytes[entry * entry_bytes..(entry + 1) * entry_bytes]);
        }
        let mut shape = batch.clone();
        shape.extend_from_slice(&old.shape()[case.descriptor.sizes.batch.len()..]);
        *tensor = Some(Tensor::contiguous(old.dtype(), shape, &moved).ok()?);
    }
    rearranged.descriptor.sizes.batch = batch;
    Some(rearranged)
}

fn reverse_batch(schema: &Schema, case: &Case) -> Option<Case> {
    let batch = case.descriptor.sizes.batch.clone();
    let total = case.descriptor.sizes.batch_count();
    let entries: Vec<usize> = (0..total).rev().collect();
    if total < 2 { None } else { rebatch(schema, case, &entries, batch) }
}

fn half_batch(schema: &Schema, case: &Case) -> Option<Case> {
    let mut batch = case.descriptor.sizes.batch.clone();
    let first = batch.first_mut().filter(|first| **first >= 2)?;
    *first /= 2;
    let entries: Vec<usize> = (0..batch.iter().product()).collect();
    rebatch(schema, case, &entries, batch)
}

/// NaN in every key that the mask hides from all queries.
fn garbage_behind_mask(schema: &Schema, case: &Case, mask: &str, inputs: &[&str]) -> Option<Case> {
    let mask = case.inputs.get(position(schema, mask)?)?.as_ref()?;
    let [_, keys] = mask.shape() else { return None };
    let flags = mask.to_f64();
    let hidden: Vec<bool> =
        (0..*keys).map(|key| flags.iter().skip(key).step_by(*keys).all(|flag| *flag == 0.0)).collect();
    if !hidden.contains(&true) || flags.is_empty() {
        return None;
    }
    let mut changed = case.clone();
    for input in inputs {
        let tensor = changed.inputs.get_mut(position(schema, input)?)?.as_mut()?;
        let width = tensor.shape().last().copied().unwrap_or(1);
        let mut values = tensor.to_f64();
        for (row, vector) in values.chunks_exact_mut(width.max(1)).enumerate() {
            if hidden[row % keys] {
                vector.fill(f64::NAN);
            }
        }
        *tensor = Tensor::from_f64(tensor.dtype(), tensor.shape().to_vec(), &values).ok()?;
    }
    Some(changed)
}
