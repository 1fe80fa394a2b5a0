//! Instructions that only chips after sm_89 have, which the machine does not run.

use gpuemu_ptx::source::Source;
use gpuemu_ptx::syntax::{Instruction, Statement};

/// Opcodes of which every form needs sm_90 or above.
const BASES: [&str; 10] = [
    "wgmma",
    "elect",
    "griddepcontrol",
    "setmaxnreg",
    "mapa",
    "getctarank",
    "tensormap",
    "multimem",
    "clusterlaunchcontrol",
    "tcgen05",
];

/// Forms that need sm_90 or above, of opcodes that have older ones too: the opcode, and a modifier that makes it new.
const FORMS: [(&str, &str); 13] = [
    ("cp", "bulk"),
    ("fence", "proxy"),
    ("fence", "cluster"),
    ("fence", "mbarrier_init"),
    ("barrier", "cluster"),
    ("mbarrier", "try_wait"),
    ("mbarrier", "expect_tx"),
    ("mbarrier", "complete_tx"),
    ("mbarrier", "cluster"),
    ("prefetch", "tensormap"),
    ("st", "async"),
    ("st", "bulk"),
    ("red", "async"),
];

/// The first instruction of a file that needs more than sm_89, and its line.
pub(super) fn above_sm_89(source: &Source) -> Option<(String, usize)> {
    let module = source.parse().ok()?;
    for function in module.functions() {
        let mut rest: Vec<&[Statement<'_>]> = function.body.as_deref().into_iter().collect();
        while let Some(statements) = rest.pop() {
            for statement in statements {
                match statement {
                    Statement::Instruction(instruction) if is_above(instruction) => {
                        return Some((instruction.opcode.to_string(), source.position(instruction.span).line));
                    }
                    Statement::Block(inner) => rest.push(inner),
                    _ => {}
                }
            }
        }
    }
    None
}

fn is_above(instruction: &Instruction<'_>) -> bool {
    let base = instruction.base();
    BASES.contains(&base) || FORMS.iter().any(|(opcode, modifier)| *opcode == base && instruction.has(modifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(instruction: &str) -> Source {
        let text = format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{{\n.reg .b64 %rd<4>;\n{{\n{instruction}\n}}\nret;\n}}\n"
        );
        Source::new("k.ptx", text)
    }

    #[test]
    fn only_new_forms_count() {
        let found = above_sm_89(&file("wgmma.fence.sync.aligned;"));
        assert_eq!(found, Some(("wgmma.fence.sync.aligned".to_string(), 8)));
        let found = above_sm_89(&file("fence.proxy.async.shared::cta;"));
        assert_eq!(found.map(|(opcode, _)| opcode).as_deref(), Some("fence.proxy.async.shared::cta"));
        for old in ["fence.acq_rel.gpu;", "cp.async.wait_group 0;", "bar.sync 0;", "mbarrier.inval.shared.b64 [%rd1];"]
        {
            assert_eq!(above_sm_89(&file(old)), None, "{old}");
        }
    }
}
