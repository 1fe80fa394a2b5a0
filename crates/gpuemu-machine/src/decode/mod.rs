//! A parsed kernel becomes a list of compact instructions, once. What the machine does not know is refused here, by name
//! and line, before anything runs.

mod allocation;
mod control;
pub mod instruction;
mod layout;
mod matrices;
mod memory;
pub mod places;
mod slots;
mod warp;

use std::collections::HashMap;

use gpuemu_ptx::code::{Code, ModuleNames, Register};
use gpuemu_ptx::source::{PtxError, Source};
use gpuemu_ptx::syntax::{Function, Instruction, ScalarType};
use instruction::{Action, Decoded, Guard};
use layout::Layout;

use crate::approximations::Approximation;
use crate::registers::{Level, RegisterFile, RegisterWidth, Slot};
use crate::tensor_core::TensorCore;
pub use layout::ModuleVariable;
use places::Places;
use slots::Slots;
pub use slots::SpecialRegister;

/// How a kernel is decoded: what cannot be changed afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    pub tensor_core: TensorCore,
    /// How approximated functions round.
    pub approximation: Approximation,
    /// The instruction set to use.
    pub level: Level,
}

/// A parameter of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// Bytes that it takes.
    pub bytes: u64,
    /// The type of its elements.
    pub scalar: ScalarType,
    /// Its place among the parameters.
    pub offset: u64,
}

/// The registers that an instruction reads, and those that it writes.
pub type Uses = (Box<[Slot]>, Box<[Slot]>);

/// A decoded entry with all functions that it calls.
#[derive(Debug, Clone)]
pub struct DecodedEntry {
    pub name: String,
    /// All instructions: the entry's first.
    pub steps: Vec<Decoded>,
    /// The registers that each of them reads, and writes.
    pub uses: Vec<Uses>,
    /// Where each of them comes from.
    pub places: Places,
    /// The registers of a warp at its beginning: constants are in place.
    pub registers: RegisterFile,
    /// Rows of registers that may be read before anything wrote them, which hold zero at the beginning of a warp.
    pub zeroed: Vec<(Slot, u32)>,
    /// Where special registers are kept.
    pub specials: Vec<(SpecialRegister, Slot)>,
    pub parameters: Vec<Parameter>,
    pub parameter_bytes: u64,
    /// Variables of the module, which are the first allocations of a launch, in this order.
    pub variables: Vec<ModuleVariable>,
    /// Bytes of static shared memory; dynamic memory follows.
    pub static_shared_bytes: u32,
    /// Names and places of shared variables.
    pub shared_variables: Vec<(String, u32, u32)>,
    /// Bytes of a thread's own memory.
    pub frame_bytes: u32,
    /// Whether blocks can hear of each other before the launch ends: atomics, fences, volatile accesses.
    pub communicates: bool,
    /// The smallest piece of shared memory that an access touches.
    pub shared_granule: u32,
    /// Threads of a block that the code demands, and the most that it allows.
    pub required_block: Option<[u32; 3]>,
    /// Most threads of a block, where the code says.
    pub most_threads: Option<u64>,
}

/// What is known while a kernel is decoded.
struct Decoder<'s, 'm, 'a> {
    source: &'s Source,
    names: &'m ModuleNames<'m, 'a>,
    options: DecodeOptions,
    slots: Slots,
    layout: Layout,
    steps: Vec<Decoded>,
    uses: Vec<Uses>,
    places: Places,
    functions: HashMap<&'a str, u32>,
    /// Calls that are to be told where.
    calls: Vec<(usize, &'a str)>,
    zeroed: Vec<(Slot, u32)>,
    communicates: bool,
    shared_granule: u32,
}

/// What is known while a function is decoded.
pub(super) struct InFunction<'c, 'm, 'a> {
    code: &'c Code<'m, 'a>,
    /// The step that is decoded.
    step: usize,
    /// The slot of the first register of the function.
    registers: &'c [Slot],
    is_entry: bool,
}

/// Decodes an entry; the only one of the file if no name is given.
pub fn decode(source: &Source, entry: Option<&str>, options: DecodeOptions) -> Result<DecodedEntry, PtxError> {
    let module = source.parse()?;
    let entries: Vec<_> = module.entries().collect();
    let listed = || entries.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    let whole = |message: String| PtxError { file: source.name.clone(), position: None, message, excerpt: None };
    let found = match (entry, entries.as_slice()) {
        (_, []) => return Err(whole("has no entry that could be launched".to_string())),
        (None, [only]) => *only,
        (None, _) => return Err(whole(format!("has several entries, name one of them: {}", listed()))),
        (Some(name), _) => *entries
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| whole(format!("has no entry '{name}', only {}", listed())))?,
    };
    let names = ModuleNames::of(&module);
    let layout = Layout::of_module(&module, found).map_err(|error| source.error(&error))?;
    let decoder = Decoder {
        source,
        names: &names,
        options,
        slots: Slots::default(),
        layout,
        steps: Vec::new(),
        uses: Vec::new(),
        places: Places::of(source, &module),
        functions: HashMap::new(),
        calls: Vec::new(),
        zeroed: Vec::new(),
        communicates: false,
        shared_granule: 4,
    };
    decoder.entry(found)
}

impl<'m, 'a> Decoder<'_, 'm, 'a> {
    fn entry(mut self, entry: &'m Function<'a>) -> Result<DecodedEntry, PtxError> {
        // All functions are known, and all variables have their places, before the first instruction is decoded.
        let mut codes: Vec<Code<'m, 'a>> = Vec::new();
        let mut waiting = vec![entry];
        let mut callers = Vec::new();
        while let Some(function) = waiting.pop() {
            if codes.iter().any(|code| code.function.name == function.name) {
                continue;
            }
            let code = Code::of(function, self.names).map_err(|error| self.source.error(&error))?;
            let is_entry = codes.is_empty();
            self.layout.add_function(&code, is_entry).map_err(|error| self.source.error(&error))?;
            for step in 0..code.steps.len() {
                if let Some(callee) = control::callee(&code, step) {
                    callers.push((function.name, callee));
                    waiting.push(callee);
                }
            }
            codes.push(code);
        }
        self.layout.place_dynamic();
        if let Some(name) = control::recursive(&callers) {
            let span = self.source.span_of(entry.name).unwrap_or_default();
            return Err(self.source.error_at(span, format!("function '{name}' calls itself, which is not supported")));
        }
        for code in &codes {
            self.functions.insert(code.function.name, self.steps.len() as u32);
            self.function(code, code.function.name == entry.name)?;
        }
        for (step, callee) in std::mem::take(&mut self.calls) {
            if let (Action::Call(call), Some(target)) = (&mut self.steps[step].action, self.functions.get(callee)) {
                call.target = *target;
            }
        }
        let threads = |name: &str| entry.directive(name);
        let dimension = |numbers: &[u64], place: usize| numbers.get(place).map_or(1, |number| *number as u32);
        let required_block =
            threads("reqntid").map(|numbers| [dimension(numbers, 0), dimension(numbers, 1), dimension(numbers, 2)]);
        let most_threads = threads("maxntid").map(|numbers| numbers.iter().product());
        let (registers, specials) = self.slots.finish();
        Ok(DecodedEntry {
            name: entry.name.to_string(),
            steps: self.steps,
            uses: self.uses,
            places: self.places,
            registers,
            zeroed: self.zeroed,
            specials,
            parameters: self.layout.parameters,
            parameter_bytes: self.layout.parameter_bytes,
            variables: self.layout.variables,
            static_shared_bytes: self.layout.static_shared_bytes,
            shared_variables: self.layout.shared_variables,
            frame_bytes: self.layout.frame_bytes,
            communicates: self.communicates,
            shared_granule: self.shared_granule,
            required_block,
            most_threads,
        })
    }

    fn function(&mut self, code: &Code<'m, 'a>, is_entry: bool) -> Result<(), PtxError> {
        let mut needed = Vec::with_capacity(code.registers.len());
        let (lifetimes, unwritten) = allocation::lifetimes(code);
        for (register, lifetime) in code.registers.iter().zip(lifetimes) {
            let Some(width) = RegisterWidth::of(register.scalar) else {
                let message = format!("register '{}' of type {} is not supported", register.name, register.scalar);
                let span = self.source.span_of(register.name).unwrap_or_default();
                return Err(self.source.error_at(span, message));
            };
            needed.push((width, register.elements as u32, lifetime));
        }
        let registers = self.slots.registers(&needed);
        for register in unwritten {
            let (width, elements, _) = needed[register];
            self.zeroed.push((registers[register], width.rows() * elements.max(1)));
        }
        let mut begins = Vec::with_capacity(code.steps.len() + 1);
        for step in 0..code.steps.len() {
            begins.push(self.steps.len() as u32);
            let instruction = code.steps[step].instruction;
            let at = InFunction { code, step, registers: &registers, is_entry };
            self.places.next(self.source, &code.steps[step]);
            for register in code.writes(step) {
                let info = &code.registers[register.index()];
                if let Some(width) = RegisterWidth::of(info.scalar) {
                    self.places.writes(info.name, registers[register.index()], width);
                }
            }
            self.instruction(&at, instruction).map_err(|message| self.source.error_at(instruction.span, message))?;
            let slots = |used: &[Register]| used.iter().map(|register| registers[register.index()]).collect();
            // What helps an instruction reads what it reads, and writes nothing that others see.
            while self.uses.len() + 1 < self.steps.len() {
                self.uses.push((slots(code.reads(step)), Box::default()));
            }
            self.uses.push((slots(code.reads(step)), slots(code.writes(step))));
        }
        begins.push(self.steps.len() as u32);
        // Falling off the end is returning.
        self.places.repeat();
        self.steps.push(Decoded { guard: None, action: if is_entry { Action::Exit } else { Action::Return } });
        self.uses.push(Default::default());
        let first = begins.first().copied().unwrap_or_default() as usize;
        for decoded in &mut self.steps[first..] {
            match &mut decoded.action {
                Action::Branch(target) => *target = begins.get(*target as usize).copied().unwrap_or_default(),
                Action::BranchTable(_, targets) => {
                    for target in targets.iter_mut() {
                        *target = begins.get(*target as usize).copied().unwrap_or_default();
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn instruction(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &'m Instruction<'a>) -> Result<(), String> {
        let guard = match instruction.guard {
            Some(guard) => {
                let (slot, width) = self.register(at, guard.predicate)?;
                if width != RegisterWidth::Predicate {
                    return Err(format!("'{}' is no predicate", guard.predicate));
                }
                Some(Guard { slot, negated: guard.negated })
            }
            None => None,
        };
        let action = self.action(at, instruction)?;
        // Helpers of the instruction may stand before it: they are places of the same instruction.
        while self.places.len() <= self.steps.len() {
            self.places.repeat();
        }
        self.steps.push(Decoded { guard, action });
        Ok(())
    }

    fn action(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &'m Instruction<'a>) -> Result<Action, String> {
        let unknown = || format!("`{}` is not an instruction that the machine knows", instruction.opcode);
        match instruction.base() {
            "ld" | "ldu" | "st" | "atom" | "red" | "cp" | "cvta" | "isspacep" | "prefetch" | "prefetchu"
            | "discard" | "applypriority" | "fence" | "membar" => self.memory(at, instruction),
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "bar" | "barrier" | "nanosleep"
            | "pmevent" => self.control(at, instruction),
            "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => self.warp_wide(at, instruction),
            "mma" | "wmma" | "ldmatrix" | "stmatrix" => self.matrices(at, instruction),
            "mov" if self.is_clock(instruction) => self.clock(at, instruction),
            _ => self.pure(at, instruction)?.ok_or_else(unknown),
        }
    }
}
