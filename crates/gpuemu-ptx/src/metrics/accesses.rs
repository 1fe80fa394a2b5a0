//! How memory is accessed.

use std::collections::BTreeMap;

use gpuemu_model::artifact::GlobalAccess;

use super::steps;
use crate::code::Code;
use crate::syntax::{Instruction, Operand, VectorWidth};

/// Accesses that name global memory, by kind and width.
pub(super) fn global(codes: &[Code<'_, '_>]) -> Vec<GlobalAccess> {
    let mut counts: BTreeMap<(&str, Option<u64>, u64), u64> = BTreeMap::new();
    for step in steps(codes) {
        let instruction = step.instruction;
        if let Some(kind) = kind_of(instruction).filter(|_| instruction.has("global")) {
            let (bytes, vector) = width(instruction, kind);
            *counts.entry((kind, bytes, vector)).or_insert(0) += 1;
        }
    }
    let access = |((kind, bytes, vector), count): ((&str, _, _), _)| GlobalAccess {
        kind: kind.to_string(),
        bytes,
        vector,
        count,
    };
    counts.into_iter().map(access).collect()
}

/// Loads from and stores to local memory.
pub(super) fn local(codes: &[Code<'_, '_>]) -> (u64, u64) {
    let count = |base: &str| {
        let accesses = steps(codes).filter(|step| step.instruction.base() == base && step.instruction.has("local"));
        accesses.count() as u64
    };
    (count("ld"), count("st"))
}

fn kind_of(instruction: &Instruction<'_>) -> Option<&'static str> {
    match instruction.base() {
        "ld" | "ldu" => Some("load"),
        "st" => Some("store"),
        "atom" | "red" => Some("atomic"),
        "cp" => Some("copy"),
        _ => None,
    }
}

/// Bytes that a thread moves at once, and elements of its vector.
fn width(instruction: &Instruction<'_>, kind: &str) -> (Option<u64>, u64) {
    if kind == "copy" {
        // cp.async takes its size as a number; bulk copies take a register.
        return match instruction.operands.get(2) {
            Some(Operand::Integer(size)) => (Some(size.bits), 1),
            _ => (None, 1),
        };
    }
    let vector = instruction.modifiers().find_map(VectorWidth::from_name).map_or(1, VectorWidth::elements);
    let element = instruction.types().last().and_then(|scalar| scalar.bytes());
    (element.map(|bytes| bytes * vector), vector)
}
