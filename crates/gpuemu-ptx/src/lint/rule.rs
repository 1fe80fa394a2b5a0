//! The rules that are built in.

use gpuemu_model::artifact::Severity;

/// A rule of the linter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name, by which it is silenced and its severity changed.
    pub name: &'static str,
    /// The severity of what it finds, unless the configuration says otherwise. It may grade a finding lower.
    pub severity: Severity,
    pub heuristic: bool,
    /// What it finds, in a sentence.
    pub summary: &'static str,
    /// What it finds, why that matters, what to do, and how to silence it.
    pub explanation: &'static str,
}

/// Registers of a thread.
pub const MAX_REGISTERS: Rule = Rule {
    name: "max-registers",
    severity: Severity::Error,
    heuristic: false,
    summary: "A thread uses more registers than `max_registers` allows.",
    explanation: "The assembler gives each thread a number of registers. The more it needs, the fewer threads run at \
        once; at 255 the rest is spilled to memory. The figure is that of ptxas, the worst architecture is named. \
        Without ptxas the rule is not checked. Split the kernel, use smaller tiles or launch bounds, or raise \
        `max_registers` in `[kernels.artifact_checks]`. To silence the rule for a kernel add `max-registers` to \
        `allow` there.",
};

/// Registers that do not fit.
pub const MAX_SPILLS: Rule = Rule {
    name: "max-spills",
    severity: Severity::Error,
    heuristic: false,
    summary: "More registers are spilled to local memory than `max_spills` allows.",
    explanation: "What does not fit into registers is kept in local memory, which is as far away as global memory. \
        Spilled registers are the bytes of spill stores that ptxas reports, divided by 4. Without ptxas the rule is \
        not checked. Use smaller tiles, fewer stages or looser launch bounds, or raise `max_spills` in \
        `[kernels.artifact_checks]`. To silence the rule for a kernel add `max-spills` to `allow` there.",
};

/// Local memory of a thread.
pub const MAX_LOCAL_MEMORY: Rule = Rule {
    name: "max-local-memory",
    severity: Severity::Error,
    heuristic: false,
    summary: "A thread uses more bytes of local memory than `max_local_memory_bytes` allows.",
    explanation: "Arrays of a thread that are indexed by a value the compiler does not know live in local memory, \
        which is as far away as global memory. The rule counts the bytes that the PTX declares and the stack that ptxas \
        reports. Index such arrays by constants, by unrolling, or raise `max_local_memory_bytes` in \
        `[kernels.artifact_checks]`. To silence the rule for a kernel add `max-local-memory` to `allow` there.",
};

/// Instructions that must not appear.
pub const FORBIDDEN_INSTRUCTION: Rule = Rule {
    name: "forbidden-instruction",
    severity: Severity::Error,
    heuristic: false,
    summary: "An instruction of `forbidden_instructions` is there.",
    explanation: "Each pattern names an opcode and, after dots, modifiers that must follow in that order; others may \
        stand between them, and `*` stands for any letters. A pattern whose opcode has an upper-case letter, as \
        `LDG.E.SYS`, is one of machine code, for which a disassembler is needed. Change the kernel or the list. To \
        silence the rule for a kernel add `forbidden-instruction` to `allow` in `[kernels.artifact_checks]`.",
};

/// Instructions that must appear.
pub const REQUIRED_INSTRUCTION: Rule = Rule {
    name: "required-instruction",
    severity: Severity::Error,
    heuristic: false,
    summary: "An instruction of `required_instructions` is not there.",
    explanation: "A kernel that is meant to use tensor cores or asynchronous copies may silently be compiled without. \
        Patterns are written as for `forbidden-instruction`; each entry of the file must have one match. Change the \
        kernel or the list. To silence the rule for a kernel add `required-instruction` to `allow` in \
        `[kernels.artifact_checks]`.",
};

/// Shared memory of a block.
pub const SHARED_MEMORY_LIMIT: Rule = Rule {
    name: "shared-memory-limit",
    severity: Severity::Error,
    heuristic: false,
    summary: "Static shared memory is more than a block can have.",
    explanation: "Static shared memory is limited to 48 KiB on every architecture, and dynamic and static together to \
        what the target has. Code beyond that cannot be assembled or launched. Use smaller tiles, or dynamic shared \
        memory (`extern __shared__`) with a launch that asks for it. To silence the rule for a kernel add \
        `shared-memory-limit` to `allow` in `[kernels.artifact_checks]`.",
};

/// Neighbouring values that are moved one by one.
pub const SCALAR_ACCESS: Rule = Rule {
    name: "scalar-access",
    severity: Severity::Warning,
    heuristic: true,
    summary: "Neighbouring values of global memory are moved one by one where a vector could move them.",
    explanation: "A thread moves up to 16 bytes by one instruction. Several that move neighbouring bytes take more \
        instructions and make a warp touch each line of memory several times. The rule takes pointers and strides of \
        parameters for aligned, which it cannot know. Use a vector type such as `float4`, or tell the compiler of the \
        alignment. To silence the rule for a kernel add `scalar-access` to `allow` in `[kernels.artifact_checks]`.",
};

pub const LOCAL_MEMORY_IN_LOOP: Rule = Rule {
    name: "local-memory-in-loop",
    severity: Severity::Warning,
    heuristic: false,
    summary: "Local memory is read or written in a loop.",
    explanation: "Local memory is as far away as global memory; in a loop that is paid for in every turn. It comes of \
        arrays of a thread that are indexed by a value the compiler does not know. Unroll the loop, index by \
        constants, or use shared memory. To silence the rule for a kernel add `local-memory-in-loop` to `allow` in \
        `[kernels.artifact_checks]`.",
};

/// Offsets in 32 bits.
pub const ADDRESS_OVERFLOW: Rule = Rule {
    name: "address-overflow",
    severity: Severity::Warning,
    heuristic: true,
    summary: "The offset of a global access is multiplied in 32 bits and wraps in a large buffer.",
    explanation: "An offset such as row * stride that is computed in 32 bits and widened to an address afterwards is \
        wrong as soon as it reaches 2,147,483,648 (4,294,967,296 if unsigned): the access goes elsewhere, silently. \
        Tests with small tensors never see it. The finding says at which size of a buffer it happens. A product that \
        could only wrap with an improbable stride, or with a constant such as the size of a tile, is a note. Convert \
        one factor to 64 bits first: `(size_t)row * stride`, or `row.to(tl.int64) * stride`. The rule does not know \
        how large tensors are; to silence it for a kernel whose tensors are small add `address-overflow` to `allow` \
        in `[kernels.artifact_checks]`.",
};

/// Barriers that not all threads reach.
pub const DIVERGENT_BARRIER: Rule = Rule {
    name: "divergent-barrier",
    severity: Severity::Warning,
    heuristic: true,
    summary: "A barrier of the whole block stands where only some of its threads may come.",
    explanation: "A barrier without a number of threads waits for all threads of the block. Where a branch on the \
        index of a thread, or on what it loaded, decides who comes there, the kernel hangs or threads meet at \
        different barriers and read what is not written yet. Threads that leave the kernel before count as well. \
        Move the barrier out of the branch. The rule does not know values: a branch that all threads take alike may \
        look as if it differed. To silence it for a kernel add `divergent-barrier` to `allow` in \
        `[kernels.artifact_checks]`.",
};

/// The rules that are built in, in the order in which they are shown.
pub const fn rules() -> &'static [Rule] {
    &[
        MAX_REGISTERS,
        MAX_SPILLS,
        MAX_LOCAL_MEMORY,
        FORBIDDEN_INSTRUCTION,
        REQUIRED_INSTRUCTION,
        SHARED_MEMORY_LIMIT,
        SCALAR_ACCESS,
        LOCAL_MEMORY_IN_LOOP,
        ADDRESS_OVERFLOW,
        DIVERGENT_BARRIER,
    ]
}

/// The built-in rule of a name.
pub fn find(name: &str) -> Option<&'static Rule> {
    rules().iter().find(|rule| rule.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_and_says_how_to_silence_it() {
        for rule in rules() {
            assert_eq!(find(rule.name), Some(rule));
            assert!(rule.name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()));
            assert!(rule.explanation.contains(&format!("`{}`", rule.name)), "{}", rule.name);
            assert!(rule.explanation.contains("`allow`") && rule.summary.ends_with('.'), "{}", rule.name);
        }
        assert_eq!(find("no-such-rule"), None);
    }
}
