//! Which registers may differ between threads of a block, and which blocks not all of its threads run.

use std::collections::HashSet;

use super::control::ControlDependence;
use super::graph::Graph;
use super::uses::{Uses, Version};
use crate::code::{Code, Meaning};
use crate::syntax::{Address, AddressBase, Declaration, Instruction, Operand};

/// What may differ between threads of a block. A guess to the safe side for values; memory is taken to hold
/// for all threads what it holds for one.
#[derive(Debug, Clone)]
pub struct Divergence {
    versions: Vec<bool>,
    control: ControlDependence,
}

impl Divergence {
    /// What may differ in a function.
    pub fn of(code: &Code<'_, '_>, graph: &Graph, uses: &Uses) -> Self {
        let found = Self { versions: vec![false; uses.len()], control: ControlDependence::of(graph) };
        let own = code.function.parameters.iter().map(std::ptr::from_ref).collect();
        let mut search = Search { code, graph, uses, own, found, waiting: Vec::new() };
        for step in 0..code.steps.len() {
            search.source(step);
        }
        while let Some(version) = search.waiting.pop() {
            for step in uses.readers(version) {
                search.reached(*step as usize);
            }
        }
        search.found
    }

    /// Whether a version of a register may differ between threads.
    pub fn differs(&self, version: Version) -> bool {
        self.versions.get(version.index()).copied().unwrap_or_default()
    }

    /// The block whose branch decides which threads run a block; none where all run it.
    pub fn cause(&self, block: usize) -> Option<usize> {
        self.control.cause(block)
    }
}

struct Search<'c, 'm, 'a> {
    code: &'c Code<'m, 'a>,
    graph: &'c Graph,
    uses: &'c Uses,
    /// Parameters of the function itself; others are those of calls.
    own: HashSet<*const Declaration<'a>>,
    found: Divergence,
    waiting: Vec<Version>,
}

impl Search<'_, '_, '_> {
    fn taint(&mut self, version: Version) {
        if let Some(differs) = self.found.versions.get_mut(version.index())
            && !std::mem::replace(differs, true)
        {
            self.waiting.push(version);
        }
    }

    fn taint_results(&mut self, step: usize) {
        let uses = self.uses;
        uses.results(step).for_each(|version| self.taint(version));
    }

    /// A step whose results differ whatever it reads.
    fn source(&mut self, step: usize) {
        let code = self.code;
        let Some(instruction) = code.steps.get(step).map(|found| found.instruction) else { return };
        if self.differs_by_itself(step, instruction) {
            self.taint_results(step);
        }
    }

    fn differs_by_itself(&self, step: usize, instruction: &Instruction<'_>) -> bool {
        match instruction.base() {
            "atom" | "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" | "mma" | "wmma" | "wgmma"
            | "ldmatrix" | "movmatrix" | "tcgen05" | "mbarrier" | "call" => true,
            "ld" if instruction.has("local") => true,
            "ld" if ["volatile", "relaxed", "acquire", "mmio"].iter().any(|word| instruction.has(word)) => true,
            "ld" if instruction.has("param") => instruction.operands.iter().any(|operand| match operand {
                Operand::Address(Address { base: AddressBase::Name(name), .. }) => self.is_result_of_call(step, name),
                _ => false,
            }),
            _ => instruction.operands.iter().any(|operand| operand_differs(self.code, step, operand)),
        }
    }

    /// Parameters of a kernel are the same for all threads. Those of a function are taken to be: who calls it is not
    /// looked at.
    fn is_result_of_call(&self, step: usize, name: &str) -> bool {
        match self.code.meaning(step, name) {
            Some(Meaning::Parameter(declaration, _)) => !self.own.contains(&std::ptr::from_ref(declaration)),
            _ => false,
        }
    }

    /// A step that reads a register that differs.
    fn reached(&mut self, step: usize) {
        let Some(instruction) = self.code.steps.get(step).map(|found| found.instruction) else { return };
        match instruction.base() {
            // All threads of a barrier get one result.
            "bar" | "barrier" => {}
            "bra" | "brx" | "ret" | "exit" | "trap" => {
                if let Some(block) = self.graph.block_of(step)
                    && self.graph.branches(block)
                {
                    self.branch(block);
                }
            }
            _ => self.taint_results(step),
        }
    }

    fn branch(&mut self, block: usize) {
        let mut branches = vec![block];
        while let Some(branch) = branches.pop() {
            for marked in self.found.control.mark(self.graph, branch, block) {
                self.graph.steps(marked).for_each(|step| self.taint_results(step));
                // A branch that only some threads reach parts them from the others, whichever way it goes.
                if self.graph.branches(marked) {
                    branches.push(marked);
                }
            }
        }
    }
}

fn operand_differs(code: &Code<'_, '_>, step: usize, operand: &Operand<'_>) -> bool {
    let (name, element) = match operand {
        Operand::Name(name) => (*name, None),
        Operand::Component(name, element) => (*name, Some(*element)),
        _ => return false,
    };
    let special = name.starts_with("%clock") || name.starts_with("%lanemask_") || name.starts_with("%globaltimer");
    if !special && !matches!(name, "%tid" | "%laneid" | "%warpid") {
        return false;
    }
    if !matches!(code.meaning(step, name), Some(Meaning::Special(_))) {
        return false;
    }
    // A block that is one thread wide has one index there.
    let place = match element {
        Some("x") => 0,
        Some("y") => 1,
        Some("z") => 2,
        _ => return true,
    };
    let required = code.function.directive("reqntid");
    name != "%tid" || required.is_none_or(|sizes| sizes.get(place).is_some_and(|size| *size != 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::uses::tests::{with_code, with_directives};

    fn check(code: &Code<'_, '_>, differing: &[&str], uniform: &[&str]) {
        let graph = Graph::of(code);
        let divergence = Divergence::of(code, &graph, &Uses::of(code, &graph));
        let differs = |name: &&str| divergence.differs(Version(code.register(0, name).unwrap().0));
        assert!(differing.iter().all(differs), "{differing:?}");
        assert!(!uniform.iter().any(differs), "{uniform:?}");
    }

    #[test]
    fn what_comes_of_a_thread_index_differs_and_what_comes_of_a_block_index_does_not() {
        let body = "mov.u32 %r1, %tid.x;\n mov.u32 %r2, %ctaid.x;\n ld.param.u32 %r3, [n];\n add.s32 %r4, %r1, %r3;\n\
                    add.s32 %r5, %r2, %r3;\n ld.global.u32 %r6, [%rd1];\n cvt.u64.u32 %rd2, %r1;\n\
                    ld.global.u32 %r7, [%rd2];\n atom.global.add.u32 %r8, [%rd1], 1;\n\
                    ld.local.u32 %r9, [%rd1];\n bar.red.popc.u32 %r10, 0, %p1;\n setp.lt.s32 %p1, %r1, 4;\n ret;";
        with_code(body, |code| {
            check(code, &["%r1", "%r4", "%r7", "%r8", "%r9"], &["%r2", "%r3", "%r5", "%r6", "%r10"]);
        });
    }

    #[test]
    fn what_is_written_under_a_branch_that_differs_differs_after_it() {
        let body = "mov.u32 %r1, %tid.x;\n setp.lt.s32 %p1, %r1, 4;\n mov.u32 %r2, 0;\n mov.u32 %r3, 0;\n\
                    @%p1 bra B;\n mov.u32 %r2, 1;\n B: mov.u32 %r4, 1;\n @%p1 mov.u32 %r5, 1;\n ret;";
        with_code(body, |code| check(code, &["%r2", "%r5"], &["%r3", "%r4"]));
    }

    #[test]
    fn a_register_that_first_holds_something_else_is_told_apart() {
        // As compilers write it: the zero of an accumulator also starts the counter.
        let body = "mov.b32 %r1, 0;\n mov.b32 %r2, %r1;\n L: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 \
                    {%r1, %r3, %r4, %r5}, {%r6, %r7, %r8, %r9}, {%r10, %r11}, {%r1, %r3, %r4, %r5};\n\
                    add.s32 %r2, %r2, 1;\n setp.ne.b32 %p1, %r2, %r20;\n @%p1 bra L;\n ret;";
        with_code(body, |code| check(code, &["%r1"], &["%r2", "%p1"]));
    }

    #[test]
    fn the_result_of_a_call_differs() {
        let body = "ld.param.u32 %r3, [n];\n { .param .b32 given; .param .b32 result;\n st.param.b32 [given], %r3;\n\
                    call.uni (result), vprintf, (given);\n ld.param.b32 %r1, [result]; }\n ret;";
        let text = crate::flow::uses::tests::module_text("", body);
        let declared = ".visible .entry";
        let text =
            text.replace(declared, &format!(".extern .func (.param .b32 r) vprintf(.param .b32 x);\n{declared}"));
        let source = crate::Source::new("call.ptx", text);
        let module = source.parse().unwrap();
        let names = crate::code::ModuleNames::of(&module);
        check(&Code::of(module.entries().next().unwrap(), &names).unwrap(), &["%r1"], &["%r3"]);
    }

    #[test]
    fn a_block_one_thread_wide_has_one_index() {
        let body = "mov.u32 %r1, %tid.y;\n mov.u32 %r2, %tid.x;\n ret;";
        with_directives(".reqntid 128", body, |code| check(code, &["%r2"], &["%r1"]));
        with_directives(".maxntid 128", body, |code| check(code, &["%r1", "%r2"], &[]));
    }
}
