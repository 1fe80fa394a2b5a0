//! Which steps write and which read each register.

use super::graph::Graph;
use crate::code::{Code, Register};

/// Lists of numbers, one for each of many.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// The lists of pairs of an owner and an item; items keep their order.
    pub fn of(owners: usize, pairs: impl Iterator<Item = (usize, u32)> + Clone) -> Self {
        let mut starts = vec![0u32; owners + 1];
        for (owner, _) in pairs.clone() {
            if let Some(count) = starts.get_mut(owner + 1) {
                *count += 1;
            }
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts.last().copied().unwrap_or_default() as usize];
        for (owner, item) in pairs {
            if owner < owners {
                items[next[owner] as usize] = item;
                next[owner] += 1;
            }
        }
        Self { starts, items }
    }

    /// The list of one.
    pub fn get(&self, owner: usize) -> &[u32] {
        match (self.starts.get(owner), self.starts.get(owner + 1)) {
            (Some(first), Some(end)) => self.items.get(*first as usize..*end as usize).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// A register as it is after some of its writes.
///
/// Compilers use a register for one thing before a loop and for another in it. A write without a guard begins a
/// new version for what reads it in the same block; what other blocks read is one version for all writes that the
/// end of a block is reached by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// Its place in a table of all versions.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where versions of registers are written and read.
#[derive(Debug, Clone, Default)]
pub struct Uses {
    versions: usize,
    /// The versions that each step reads, in the order of its registers.
    read: Lists,
    /// The versions that each step writes, in the order of its registers.
    written: Lists,
    /// For each version that ends with its block nothing, otherwise the register's version at the start of blocks.
    outlives: Vec<Option<u32>>,
    definitions: Lists,
    readers: Lists,
}

impl Uses {
    /// The uses of a function's registers.
    pub fn of(code: &Code<'_, '_>, graph: &Graph) -> Self {
        let mut numbering = Numbering::of(code);
        for block in 0..graph.len() {
            graph.steps(block).for_each(|step| numbering.step(step));
            numbering.end_block();
        }
        let Numbering { read, written, outlives, .. } = numbering;
        let versions = outlives.len();
        let flipped = |pairs: &[(u32, u32)]| pairs.iter().map(|(step, version)| (*version as usize, *step)).collect();
        let mut definitions: Vec<(usize, u32)> = flipped(&written);
        let kept = |version: usize| outlives.get(version).copied().flatten().map(|start| start as usize);
        let outliving = definitions.iter().filter_map(|(version, step)| Some((kept(*version)?, *step)));
        let outliving: Vec<(usize, u32)> = outliving.collect();
        definitions.extend(outliving);
        definitions.sort_unstable();
        definitions.dedup();
        let readers: Vec<(usize, u32)> = flipped(&read);
        let by_step = |pairs: Vec<(u32, u32)>| {
            let pairs = pairs.into_iter().map(|(step, version)| (step as usize, version));
            Lists::of(code.steps.len(), pairs.collect::<Vec<_>>().iter().copied())
        };
        Self {
            versions,
            read: by_step(read),
            written: by_step(written),
            definitions: Lists::of(versions, definitions.iter().copied()),
            readers: Lists::of(versions, readers.iter().copied()),
            outlives,
        }
    }

    /// How many versions there are.
    pub fn len(&self) -> usize {
        self.versions
    }

    /// Whether no register is mentioned.
    pub fn is_empty(&self) -> bool {
        self.versions == 0
    }

    /// The version of a register that a step reads.
    pub fn read(&self, code: &Code<'_, '_>, step: usize, register: Register) -> Option<Version> {
        let place = code.reads(step).iter().position(|read| *read == register)?;
        self.read.get(step).get(place).copied().map(Version)
    }

    /// The versions that a step reads, in the order of [`Code::reads`].
    pub fn reads(&self, step: usize) -> impl Iterator<Item = Version> + '_ {
        self.read.get(step).iter().copied().map(Version)
    }

    /// The version of a register that a step writes: the one that other blocks read, where it reaches them.
    pub fn written(&self, code: &Code<'_, '_>, step: usize, register: Register) -> Option<Version> {
        let place = code.writes(step).iter().position(|written| *written == register)?;
        let version = self.written.get(step).get(place).copied()?;
        Some(Version(self.outlives.get(version as usize).copied().flatten().unwrap_or(version)))
    }

    /// All versions that a step writes.
    pub fn results(&self, step: usize) -> impl Iterator<Item = Version> + '_ {
        self.written.get(step).iter().flat_map(|version| {
            let start = self.outlives.get(*version as usize).copied().flatten();
            [Some(*version), start.filter(|start| start != version)].into_iter().flatten().map(Version)
        })
    }

    /// The steps that write a version, in order.
    pub fn definitions(&self, version: Version) -> &[u32] {
        self.definitions.get(version.index())
    }

    /// The steps that read a version, in order.
    pub fn readers(&self, version: Version) -> &[u32] {
        self.readers.get(version.index())
    }
}

/// Gives versions their numbers. Those at the start of blocks have the numbers of their registers.
struct Numbering<'c, 'm, 'a> {
    code: &'c Code<'m, 'a>,
    writes: Vec<u32>,
    current: Vec<u32>,
    changed: Vec<Register>,
    read: Vec<(u32, u32)>,
    written: Vec<(u32, u32)>,
    outlives: Vec<Option<u32>>,
}

impl<'c, 'm, 'a> Numbering<'c, 'm, 'a> {
    fn of(code: &'c Code<'m, 'a>) -> Self {
        let registers = code.registers.len();
        let mut writes = vec![0u32; registers];
        for register in (0..code.steps.len()).flat_map(|step| code.writes(step)) {
            if let Some(count) = writes.get_mut(register.index()) {
                *count += 1;
            }
        }
        let current = (0..registers as u32).collect();
        let outlives = vec![None; registers];
        Self { code, writes, current, changed: Vec::new(), read: Vec::new(), written: Vec::new(), outlives }
    }

    fn step(&mut self, step: usize) {
        let code = self.code;
        for register in code.reads(step) {
            if let Some(version) = self.current.get(register.index()) {
                self.read.push((step as u32, *version));
            }
        }
        let guarded = code.steps.get(step).is_some_and(|step| step.instruction.guard.is_some());
        for register in code.writes(step) {
            let several = self.writes.get(register.index()).is_some_and(|count| *count > 1);
            let Some(version) = self.current.get_mut(register.index()) else { continue };
            // What is written under a guard joins what was there before.
            if several && !guarded {
                *version = self.outlives.len() as u32;
                self.outlives.push(None);
                self.changed.push(*register);
            }
            self.written.push((step as u32, *version));
        }
    }

    fn end_block(&mut self) {
        for register in self.changed.drain(..) {
            let Some(version) = self.current.get_mut(register.index()) else { continue };
            if let Some(outlives) = self.outlives.get_mut(*version as usize).filter(|_| *version != register.0) {
                *outlives = Some(register.0);
            }
            *version = register.0;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::code::ModuleNames;
    use crate::source::Source;

    /// The text of a module with one entry.
    pub fn module_text(directives: &str, body: &str) -> String {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry kernel(.param .u64 a, .param .u64 b, \
             .param .u32 n, .param .u32 stride, .param .u64 wide)\n{directives}\n{{\n.reg .pred %p<16>;\n\
             .reg .b16 %rs<8>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n.reg .f32 %f<32>;\n{body}\n}}\n"
        )
    }

    /// Does something with the code of an entry.
    pub fn with_code(body: &str, then: impl FnOnce(&Code<'_, '_>)) {
        with_directives("", body, then);
    }

    /// Does something with the code of an entry that has directives.
    pub fn with_directives(directives: &str, body: &str, then: impl FnOnce(&Code<'_, '_>)) {
        let source = Source::new("test.ptx", module_text(directives, body));
        let module = source.parse().unwrap();
        let names = ModuleNames::of(&module);
        let code = Code::of(module.entries().next().unwrap(), &names).unwrap();
        then(&code);
    }

    #[test]
    fn writers_and_readers_are_listed_in_order() {
        with_code("mov.u32 %r1, 0;\n add.s32 %r1, %r1, %r2;\n st.global.u32 [%rd1], %r1;\n ret;", |code| {
            let uses = Uses::of(code, &Graph::of(code));
            let register = |name| code.register(1, name).unwrap();
            let first = uses.read(code, 1, register("%r1")).unwrap();
            let second = uses.read(code, 2, register("%r1")).unwrap();
            assert_eq!((uses.definitions(first), uses.readers(first)), ([0].as_slice(), [1].as_slice()));
            assert_eq!((uses.definitions(second), uses.readers(second)), ([1].as_slice(), [2].as_slice()));
            let unwritten = uses.read(code, 1, register("%r2")).unwrap();
            assert!(uses.definitions(unwritten).is_empty());
        });
    }

    #[test]
    fn what_is_written_again_in_a_loop_is_another_version_before_it() {
        let body = "mov.u32 %r1, 0;\n mov.u32 %r2, %r1;\n L: add.s32 %r2, %r2, 1;\n mov.u32 %r1, %tid.x;\n\
                    @%p1 bra L;\n st.global.u32 [%rd1], %r2;\n ret;";
        with_code(body, |code| {
            let uses = Uses::of(code, &Graph::of(code));
            let read = |step: usize, name: &str| uses.read(code, step, code.register(step, name).unwrap()).unwrap();
            assert_eq!(uses.definitions(read(1, "%r1")), [0]);
            assert_eq!(uses.definitions(read(2, "%r2")), [1, 2]);
            assert_eq!(read(2, "%r2"), read(5, "%r2"));
            assert_eq!(uses.written(code, 2, code.register(2, "%r2").unwrap()), Some(read(2, "%r2")));
        });
    }

    #[test]
    fn what_is_written_under_a_guard_joins_what_was_there() {
        with_code("mov.u32 %r1, 0;\n @%p1 mov.u32 %r1, 1;\n mov.u32 %r2, %r1;\n mov.u32 %r1, 2;\n ret;", |code| {
            let uses = Uses::of(code, &Graph::of(code));
            let read = uses.read(code, 2, code.register(2, "%r1").unwrap()).unwrap();
            assert_eq!(uses.definitions(read), [0, 1]);
        });
    }
}
