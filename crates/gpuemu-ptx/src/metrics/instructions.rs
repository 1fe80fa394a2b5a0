//! Instructions by what they do.

use gpuemu_model::artifact::InstructionCounts;

use super::steps;
use crate::code::Code;
use crate::syntax::Instruction;

/// What an instruction is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Loads, stores, atomics, copies and prefetches.
    Memory,
    /// Computation, comparison and conversion.
    Arithmetic,
    TensorCore,
    /// Branches, calls, returns, traps.
    Control,
    /// Barriers, fences, waits, votes.
    Synchronisation,
    /// Moves between registers and lanes.
    Movement,
}

pub fn group_of(instruction: &Instruction<'_>) -> Group {
    let waits = ["commit_group", "wait_group", "wait_all", "mbarrier", "fence", "wait", "commit"];
    let is_wait = || instruction.modifiers().any(|modifier| waits.contains(&modifier));
    match instruction.base() {
        "cp" if is_wait() => Group::Synchronisation,
        "ld" | "ldu" | "st" | "atom" | "red" | "cp" | "prefetch" | "prefetchu" | "ldmatrix" | "stmatrix" | "tex"
        | "tld4" | "txq" | "suld" | "sust" | "sured" | "suq" | "istypep" | "multimem" | "discard" | "applypriority"
        | "createpolicy" | "tensormap" => Group::Memory,
        "mma" => Group::TensorCore,
        "wmma" if instruction.has("load") || instruction.has("store") => Group::Memory,
        "wmma" => Group::TensorCore,
        "wgmma" if instruction.has("mma_async") => Group::TensorCore,
        "wgmma" => Group::Synchronisation,
        "tcgen05" if instruction.has("mma") => Group::TensorCore,
        "tcgen05" if is_wait() || instruction.has("alloc") || instruction.has("dealloc") => Group::Synchronisation,
        "tcgen05" => Group::Memory,
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "pmevent" => Group::Control,
        "bar"
        | "barrier"
        | "membar"
        | "fence"
        | "mbarrier"
        | "vote"
        | "match"
        | "redux"
        | "activemask"
        | "elect"
        | "nanosleep"
        | "griddepcontrol"
        | "setmaxnreg"
        | "clusterlaunchcontrol" => Group::Synchronisation,
        "mov" | "shfl" | "prmt" | "cvta" | "movmatrix" | "alloca" | "stacksave" | "stackrestore" | "mapa"
        | "getctarank" => Group::Movement,
        _ => Group::Arithmetic,
    }
}

pub(super) fn count(codes: &[Code<'_, '_>]) -> InstructionCounts {
    let mut counts = InstructionCounts::default();
    for step in steps(codes) {
        let instruction = step.instruction;
        counts.total += 1;
        counts.predicated += u64::from(instruction.guard.is_some());
        let group = match group_of(instruction) {
            Group::Memory => &mut counts.memory,
            Group::Arithmetic => &mut counts.arithmetic,
            Group::TensorCore => &mut counts.tensor_core,
            Group::Control => &mut counts.control,
            Group::Synchronisation => &mut counts.synchronisation,
            Group::Movement => &mut counts.movement,
        };
        *group += 1;
        match counts.forms.get_mut(instruction.opcode) {
            Some(count) => *count += 1,
            None => {
                counts.forms.insert(instruction.opcode.to_string(), 1);
            }
        }
    }
    counts
}
