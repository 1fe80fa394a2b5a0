//! Loads, stores, atomics, asynchronous copies, fences and addresses.

use gpuemu_ptx::code::Meaning;
use gpuemu_ptx::syntax::{self, AddressBase, Instruction, Operand, ScalarType, StateSpace};

use super::instruction::{Action, Address, Atomic, CopyAsync, Fence, IsSpace, Ordering, Transfer};
use super::{Decoder, InFunction};
use crate::memory::Space;
use crate::numerics::atomic::{AtomicFunction, AtomicOperation, atomic};
use crate::registers::{RegisterWidth, Slot};

/// Modifiers that only advise caches, which the machine has none of.
fn is_hint(modifier: &str) -> bool {
    let stem = modifier.split("::").next().unwrap_or_default();
    matches!(stem, "ca" | "cg" | "cs" | "cv" | "lu" | "wb" | "wt" | "nc" | "L1" | "L2" | "level" | "unified")
        || matches!(modifier, "evict_first" | "evict_last" | "evict_normal" | "evict_unchanged" | "no_allocate")
}

fn state_space(modifier: &str) -> Option<Space> {
    // `shared::cta` is the block's own; that of a cluster is not known here.
    match modifier {
        "shared::cta" => Some(Space::Shared),
        "param::entry" | "param::func" => Some(Space::Parameter),
        _ => StateSpace::from_name(modifier).and_then(Space::of),
    }
}

/// What the modifiers of an access say.
struct Modifiers {
    space: Space,
    ordering: Ordering,
    scalar: ScalarType,
    elements: usize,
    others: Vec<String>,
}

fn modifiers(instruction: &Instruction<'_>) -> Result<Modifiers, String> {
    let mut found = Modifiers {
        space: Space::Generic,
        ordering: Ordering::default(),
        scalar: ScalarType::Pred,
        elements: 1,
        others: Vec::new(),
    };
    for modifier in instruction.modifiers() {
        if let Some(space) = state_space(modifier) {
            found.space = space;
        } else if let Some(scalar) = ScalarType::from_name(modifier) {
            found.scalar = scalar;
        } else {
            let strong = Ordering { strong: true, ..found.ordering };
            match modifier {
                "v2" => found.elements = 2,
                "v4" => found.elements = 4,
                "v8" => found.elements = 8,
                "weak" => {}
                "volatile" | "relaxed" | "mmio" => found.ordering = strong,
                "acquire" => found.ordering = Ordering { acquire: true, ..strong },
                "release" => found.ordering = Ordering { release: true, ..strong },
                "acq_rel" => found.ordering = Ordering { acquire: true, release: true, ..strong },
                "cta" => found.ordering.block_only = true,
                "gpu" | "sys" | "cluster" => found.ordering.block_only = false,
                hint if is_hint(hint) => {}
                other => found.others.push(other.to_string()),
            }
        }
    }
    Ok(found)
}

impl<'m, 'a> Decoder<'_, 'm, 'a> {
    pub(super) fn memory(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Action, String> {
        match instruction.base() {
            "ld" | "ldu" => self.load(at, instruction),
            "st" => self.store(at, instruction),
            "atom" | "red" => self.atomic(at, instruction),
            "cp" => self.copy(at, instruction),
            "cvta" => self.convert_address(at, instruction),
            "isspacep" => self.is_space(at, instruction),
            "fence" | "membar" => self.fence(instruction),
            // Hints: nothing that they do can be seen.
            "prefetch" | "prefetchu" | "applypriority" => Ok(Action::Nothing),
            _ => Err(format!("`{}` is not supported", instruction.opcode)),
        }
    }

    /// An address operand in a space.
    pub(super) fn address(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        operand: Option<&Operand<'a>>,
        space: Space,
    ) -> Result<Address, String> {
        let Some(Operand::Address(syntax::Address { base, offset, rest })) = operand else {
            return Err("an address in brackets is missing".to_string());
        };
        if !rest.is_empty() {
            return Err("an address of several parts is not supported".to_string());
        }
        match base {
            AddressBase::Absolute(absolute) => {
                Ok(Address { base: None, offset: (*absolute as i64).wrapping_add(*offset), space })
            }
            AddressBase::Name(name) => match at.code.meaning(at.step, name) {
                Some(Meaning::Register(_)) => {
                    let (slot, width) = self.register(at, name)?;
                    if !matches!(width, RegisterWidth::B32 | RegisterWidth::B64) {
                        return Err(format!("'{name}' is too narrow for an address"));
                    }
                    Ok(Address { base: Some((slot, width)), offset: *offset, space })
                }
                Some(Meaning::Variable(_, variable) | Meaning::Parameter(_, variable)) => {
                    let (own, address) = self
                        .layout
                        .place(variable)
                        .ok_or_else(|| format!("variable '{name}' has no place in memory"))?;
                    // Parameters of calls lie in the thread's own memory, whatever the instruction calls it.
                    let fits =
                        space == own || space == Space::Generic || (space == Space::Parameter && own == Space::Local);
                    if !fits {
                        return Err(format!("variable '{name}' lies in {} memory", own.name()));
                    }
                    let offset = (address as i64).wrapping_add(*offset);
                    Ok(Address { base: None, offset, space: own })
                }
                _ => Err(format!("'{name}' is no address")),
            },
        }
    }

    /// Notes what an access means for the whole kernel.
    fn note(&mut self, address: Address, lane_bytes: usize, ordering: Ordering) {
        let shared = matches!(address.space, Space::Shared | Space::Generic);
        if shared {
            self.shared_granule = self.shared_granule.min(lane_bytes.max(1) as u32);
        }
        if ordering.strong && matches!(address.space, Space::Global | Space::Generic) {
            self.communicates = true;
        }
    }

    fn elements<'o>(&self, operand: Option<&'o Operand<'a>>, count: usize) -> Result<Vec<&'o Operand<'a>>, String> {
        let elements: Vec<_> = match operand {
            Some(Operand::Vector(elements)) => elements.iter().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        if elements.len() != count {
            return Err(format!("{count} registers are needed, {} are there", elements.len()));
        }
        Ok(elements)
    }

    fn load(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &Instruction<'a>) -> Result<Action, String> {
        let found = modifiers(instruction)?;
        refuse_others(&found.others)?;
        let [results, source] = instruction.operands.as_slice() else {
            return Err(format!("`{}` with a cache policy or a wrong number of operands", instruction.opcode));
        };
        let bytes = memory_bytes(found.scalar)?;
        let address = self.address(at, Some(source), found.space)?;
        let mut registers = Vec::new();
        for element in self.elements(Some(results), found.elements)? {
            registers.push(match element {
                Operand::Sink => None,
                _ => Some(self.loaded(at, element, found.scalar)?),
            });
        }
        self.note(address, bytes * registers.len(), found.ordering);
        Ok(Action::Load(Box::new(Transfer {
            address,
            element_bytes: bytes as u8,
            signed: matches!(found.scalar, ScalarType::S8 | ScalarType::S16 | ScalarType::S32),
            registers,
            ordering: found.ordering,
        })))
    }

    /// The register that an element goes to: as wide as the element, or wider.
    fn loaded(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        operand: &Operand<'a>,
        scalar: ScalarType,
    ) -> Result<(Slot, RegisterWidth), String> {
        let (slot, width) = self.operand(at, operand, scalar)?;
        if width == RegisterWidth::Predicate || RegisterWidth::of(scalar).is_none_or(|needed| width < needed) {
            return Err(format!("a register is too narrow for {scalar}"));
        }
        Ok((slot, width))
    }

    fn store(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &Instruction<'a>) -> Result<Action, String> {
        let found = modifiers(instruction)?;
        refuse_others(&found.others)?;
        let [target, values] = instruction.operands.as_slice() else {
            return Err(format!("`{}` with a cache policy or a wrong number of operands", instruction.opcode));
        };
        let bytes = memory_bytes(found.scalar)?;
        let address = self.address(at, Some(target), found.space)?;
        if address.space == Space::Parameter {
            return Err("parameters of an entry cannot be written".to_string());
        }
        let mut registers = Vec::new();
        for element in self.elements(Some(values), found.elements)? {
            registers.push(Some(self.loaded(at, element, found.scalar)?));
        }
        self.note(address, bytes * registers.len(), found.ordering);
        Ok(Action::Store(Box::new(Transfer {
            address,
            element_bytes: bytes as u8,
            signed: false,
            registers,
            ordering: found.ordering,
        })))
    }

    fn atomic(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &Instruction<'a>) -> Result<Action, String> {
        let found = modifiers(instruction)?;
        let mut operation = None;
        let mut noftz = false;
        for other in &found.others {
            match AtomicOperation::from_word(other) {
                Some(known) => operation = Some(known),
                None if other == "noftz" => noftz = true,
                None => return Err(format!("`.{other}` is not known in `{}`", instruction.opcode)),
            }
        }
        let operation = operation.ok_or_else(|| format!("`{}` names no operation", instruction.opcode))?;
        let bytes = memory_bytes(found.scalar)?;
        let unknown = || format!("`{}` is not a form that the machine knows", instruction.opcode);
        let function = |shared: bool| -> Result<AtomicFunction, String> {
            atomic(operation, found.scalar, shared, noftz).ok_or_else(unknown)
        };
        let reduces = instruction.base() == "red";
        let mut operands = instruction.operands.iter();
        let results = if reduces { None } else { operands.next() };
        let address = self.address(at, operands.next(), found.space)?;
        let mut values = Vec::new();
        for element in self.elements(operands.next(), found.elements)? {
            values.push(self.loaded(at, element, found.scalar)?);
        }
        let swap = match (operation, operands.next()) {
            (AtomicOperation::CompareAndSwap, Some(operand)) => Some(self.loaded(at, operand, found.scalar)?),
            (AtomicOperation::CompareAndSwap, None) => return Err("the value to be swapped in is missing".to_string()),
            (_, None) => None,
            (_, Some(_)) => return Err("a cache policy is not supported".to_string()),
        };
        let mut kept = Vec::new();
        if let Some(results) = results {
            for element in self.elements(Some(results), found.elements)? {
                kept.push(match element {
                    Operand::Sink => None,
                    _ => Some(self.loaded(at, element, found.scalar)?),
                });
            }
        }
        let ordering = Ordering { strong: true, ..found.ordering };
        self.note(address, bytes, ordering);
        Ok(Action::Atomic(Box::new(Atomic {
            address,
            element_bytes: bytes as u8,
            functions: [function(false)?, function(true)?],
            results: kept,
            operands: values,
            swap,
            ordering,
        })))
    }

    fn copy(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &Instruction<'a>) -> Result<Action, String> {
        let words: Vec<&str> = instruction.modifiers().filter(|word| !is_hint(word)).collect();
        match words.as_slice() {
            ["async", "commit_group"] => Ok(Action::CommitGroup),
            ["async", "wait_all"] => Ok(Action::WaitGroup(None)),
            ["async", "wait_group"] => match instruction.operands.as_slice() {
                [Operand::Integer(number)] => u32::try_from(number.value())
                    .map(|number| Action::WaitGroup(Some(number)))
                    .map_err(|_| format!("cannot wait until {} groups are left", number.value())),
                _ => Err("the number of groups must be a constant".to_string()),
            },
            ["async", "shared" | "shared::cta", "global"] => self.copy_async(at, instruction),
            _ => Err(format!("`{}` is not a form that the machine knows", instruction.opcode)),
        }
    }

    fn copy_async(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &Instruction<'a>) -> Result<Action, String> {
        let mut operands = instruction.operands.iter();
        let target = self.address(at, operands.next(), Space::Shared)?;
        let source = self.address(at, operands.next(), Space::Global)?;
        let bytes = match operands.next() {
            Some(Operand::Integer(bytes)) if matches!(bytes.value(), 4 | 8 | 16) => bytes.value() as u8,
            _ => return Err("4, 8 or 16 bytes can be copied".to_string()),
        };
        let (mut read_bytes, mut ignore_source) = (None, None);
        match operands.next() {
            None => {}
            Some(operand) => {
                let (slot, width) = self.operand(at, operand, ScalarType::U32)?;
                match width {
                    RegisterWidth::B32 => read_bytes = Some(slot),
                    RegisterWidth::Predicate => ignore_source = Some(slot),
                    _ => return Err("the number of bytes read must have 32 bits".to_string()),
                }
            }
        }
        if operands.next().is_some() {
            return Err("a cache policy is not supported".to_string());
        }
        self.note(target, usize::from(bytes), Ordering::default());
        Ok(Action::CopyAsync(Box::new(CopyAsync { target, source, bytes, read_bytes, ignore_source })))
    }

    fn convert_address(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Action, String> {
        let words: Vec<&str> = instruction.modifiers().collect();
        let (to_space, space, scalar) = match words.as_slice() {
            ["to", space, scalar] => (true, *space, *scalar),
            [space, scalar] => (false, *space, *scalar),
            _ => return Err(format!("`{}` is not a form that the machine knows", instruction.opcode)),
        };
        let space = state_space(space).ok_or_else(|| format!("`.{space}` is no space of memory"))?;
        let base = space.window_base();
        if scalar != "u64" && base != 0 {
            return Err("generic addresses have 64 bits".to_string());
        }
        let scalar = ScalarType::from_name(scalar).ok_or("the type of an address is missing")?;
        let [result, source] = instruction.operands.as_slice() else {
            return Err(format!("`{}` needs two operands", instruction.opcode));
        };
        let result = self.operand_of_width(at, result, scalar)?;
        let source = self.operand_of_width(at, source, scalar)?;
        let added = if to_space { base.wrapping_neg() } else { base };
        let added = self.slots.constant(RegisterWidth::B64, added);
        let mut slots = [Slot::default(); crate::registers::pure::MOST_SLOTS];
        (slots[0], slots[1], slots[2]) = (result, source, added);
        let execute = if scalar == ScalarType::U64 { add_base } else { keep_base };
        Ok(Action::Pure(crate::registers::Pure { execute, slots, extra: 0 }))
    }

    fn is_space(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &Instruction<'a>) -> Result<Action, String> {
        let space = instruction.modifiers().find_map(state_space).ok_or("the space is missing")?;
        let [result, source] = instruction.operands.as_slice() else {
            return Err(format!("`{}` needs two operands", instruction.opcode));
        };
        let result = self.operand_of_width(at, result, ScalarType::Pred)?;
        let address = self.operand(at, source, ScalarType::U64)?;
        Ok(Action::IsSpace(Box::new(IsSpace { result, address, space })))
    }

    fn fence(&mut self, instruction: &Instruction<'_>) -> Result<Action, String> {
        let mut block_only = false;
        for word in instruction.modifiers() {
            match word {
                "cta" => block_only = true,
                "gpu" | "gl" | "sys" | "sc" | "acq_rel" | "acquire" | "release" => {}
                _ => return Err(format!("`{}` is not a form that the machine knows", instruction.opcode)),
            }
        }
        self.communicates |= !block_only;
        Ok(Action::Fence(Fence { block_only }))
    }
}

fn refuse_others(others: &[String]) -> Result<(), String> {
    match others.first() {
        Some(other) => Err(format!("modifier `.{other}` is not known")),
        None => Ok(()),
    }
}

fn memory_bytes(scalar: ScalarType) -> Result<usize, String> {
    match scalar.bytes() {
        Some(bytes @ (1 | 2 | 4 | 8)) => Ok(bytes as usize),
        _ => Err(format!("type {scalar} cannot be loaded or stored")),
    }
}

fn add_base(file: &mut crate::registers::RegisterFile, pure: &crate::registers::Pure, mask: u32) {
    let base = file.b64(pure.slots[2])[0];
    let mut result = *file.b64(pure.slots[1]);
    for address in &mut result {
        *address = address.wrapping_add(base);
    }
    file.set_b64(pure.slots[0], &result, mask);
}

fn keep_base(file: &mut crate::registers::RegisterFile, pure: &crate::registers::Pure, mask: u32) {
    let result = *file.b32(pure.slots[1]);
    file.set_b32(pure.slots[0], &result, mask);
}
