//! Where registers, constants and special registers lie in the register file, and how operands find them.

use std::collections::HashMap;

use gpuemu_ptx::code::Meaning;
use gpuemu_ptx::syntax::{Float, Instruction, Operand, ScalarType};

use super::allocation::{Lifetime, places};
use super::instruction::{Action, Decoded};
use super::{Decoder, InFunction};
use crate::registers::forms::pure_form;
use crate::registers::pure::MOST_SLOTS;
use crate::registers::{LANES, OperandShape, Pure, RegisterFile, RegisterWidth, Slot};

/// A register that the hardware provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "named as in the PTX")]
pub enum SpecialRegister {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    DynamicSharedBytes,
    TotalSharedBytes,
}

impl SpecialRegister {
    fn from_name(name: &str, component: Option<&str>) -> Option<Self> {
        let axis = match component {
            None => None,
            Some("x") => Some(0),
            Some("y") => Some(1),
            Some("z") => Some(2),
            Some(_) => return None,
        };
        Some(match (name, axis) {
            ("%tid", Some(axis)) => Self::Tid(axis),
            ("%ntid", Some(axis)) => Self::Ntid(axis),
            ("%ctaid", Some(axis)) => Self::Ctaid(axis),
            ("%nctaid", Some(axis)) => Self::Nctaid(axis),
            ("%laneid", None) => Self::Laneid,
            ("%warpid", None) => Self::Warpid,
            ("%nwarpid", None) => Self::Nwarpid,
            ("%smid", None) => Self::Smid,
            ("%nsmid", None) => Self::Nsmid,
            ("%gridid", None) => Self::Gridid,
            ("%lanemask_eq", None) => Self::LanemaskEq,
            ("%lanemask_le", None) => Self::LanemaskLe,
            ("%lanemask_lt", None) => Self::LanemaskLt,
            ("%lanemask_ge", None) => Self::LanemaskGe,
            ("%lanemask_gt", None) => Self::LanemaskGt,
            ("%dynamic_smem_size", None) => Self::DynamicSharedBytes,
            ("%total_smem_size", None) => Self::TotalSharedBytes,
            _ => return None,
        })
    }

    const fn width(self) -> RegisterWidth {
        match self {
            SpecialRegister::Gridid => RegisterWidth::B64,
            _ => RegisterWidth::B32,
        }
    }
}

/// The register file while it is laid out.
#[derive(Debug, Default)]
pub(super) struct Slots {
    rows: u32,
    constants: HashMap<(RegisterWidth, u64), Slot>,
    specials: HashMap<SpecialRegister, Slot>,
    carry: Option<Slot>,
}

impl Slots {
    /// Room for a register.
    pub(super) fn register(&mut self, width: RegisterWidth, elements: u32) -> Slot {
        let slot = Slot(self.rows);
        self.rows += width.rows() * elements.max(1);
        slot
    }

    /// Room for the registers of a function, those that are never needed at once in the same place.
    pub(super) fn registers(&mut self, needed: &[(RegisterWidth, u32, Option<Lifetime>)]) -> Vec<Slot> {
        let (rows, end) = places(needed, self.rows);
        self.rows = end;
        rows.into_iter().map(Slot).collect()
    }

    /// A register that always holds a number.
    pub(super) fn constant(&mut self, width: RegisterWidth, bits: u64) -> Slot {
        if let Some(slot) = self.constants.get(&(width, bits)) {
            return *slot;
        }
        let slot = self.register(width, 1);
        self.constants.insert((width, bits), slot);
        slot
    }

    fn special(&mut self, register: SpecialRegister) -> Slot {
        if let Some(slot) = self.specials.get(&register) {
            return *slot;
        }
        let slot = self.register(register.width(), 1);
        self.specials.insert(register, slot);
        slot
    }

    /// The file at the beginning of a warp, and where special registers are.
    pub(super) fn finish(&self) -> (RegisterFile, Vec<(SpecialRegister, Slot)>) {
        let mut file = RegisterFile::new(self.rows as usize);
        for ((width, bits), slot) in &self.constants {
            match width {
                RegisterWidth::Predicate => file.set_predicate(*slot, if *bits != 0 { u32::MAX } else { 0 }, u32::MAX),
                RegisterWidth::B16 => *file.b16_mut(*slot) = [*bits as u16; LANES],
                RegisterWidth::B32 => *file.b32_mut(*slot) = [*bits as u32; LANES],
                RegisterWidth::B64 => *file.b64_mut(*slot) = [*bits; LANES],
            }
        }
        let mut specials: Vec<_> = self.specials.iter().map(|(register, slot)| (*register, *slot)).collect();
        specials.sort_unstable();
        (file, specials)
    }
}

/// What a number is as bits of a type.
fn bits_of(operand: &Operand<'_>, scalar: ScalarType) -> Result<u64, String> {
    match (operand, scalar) {
        (Operand::Float(Float::Single(_)), ScalarType::F64 | ScalarType::B64 | ScalarType::U64 | ScalarType::S64) => {
            Err(format!("a single-precision number where the type is {scalar}"))
        }
        (Operand::Float(Float::Single(bits)), _) => Ok(u64::from(*bits)),
        (Operand::Float(Float::Double(bits)), ScalarType::F64 | ScalarType::B64) => Ok(*bits),
        (Operand::Float(Float::Double(bits)), ScalarType::F32) => {
            Ok(u64::from((f64::from_bits(*bits) as f32).to_bits()))
        }
        (Operand::Integer(integer), ScalarType::F32) => Ok(u64::from((integer.value() as f32).to_bits())),
        (Operand::Integer(integer), ScalarType::F64) => Ok((integer.value() as f64).to_bits()),
        (Operand::Integer(integer), _) => Ok(integer.bits),
        _ => Err(format!("not a number of type {scalar}")),
    }
}

impl<'m, 'a> Decoder<'_, 'm, 'a> {
    /// The slot and width of a named register.
    pub(super) fn register(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        name: &str,
    ) -> Result<(Slot, RegisterWidth), String> {
        match at.code.meaning(at.step, name) {
            Some(Meaning::Register(register)) => {
                let info = at.code.registers.get(register.index()).ok_or("a register that is not there")?;
                let slot = at.registers.get(register.index()).ok_or("a register that is not there")?;
                let width = RegisterWidth::of(info.scalar).ok_or("a register of no width")?;
                Ok((*slot, width))
            }
            _ => Err(format!("'{name}' is no register")),
        }
    }

    /// The slot of something that is a register, or becomes one: a special register, the address of a variable.
    /// Nothing for numbers and what is thrown away, whose type the instruction says.
    fn placed(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        operand: &Operand<'a>,
    ) -> Result<Option<(Slot, RegisterWidth)>, String> {
        match operand {
            Operand::Name(name) => match at.code.meaning(at.step, name) {
                Some(Meaning::Register(_)) => self.register(at, name).map(Some),
                Some(Meaning::Special("WARP_SZ")) => Ok(None),
                Some(Meaning::Special(_)) => {
                    let special = SpecialRegister::from_name(name, None)
                        .ok_or_else(|| format!("special register '{name}' is not supported here"))?;
                    Ok(Some((self.slots.special(special), special.width())))
                }
                Some(Meaning::Variable(..) | Meaning::Parameter(..)) => Ok(None),
                Some(Meaning::Function(_)) => Err(format!("the address of function '{name}' is not supported")),
                Some(Meaning::Label(_)) | None => Err(format!("'{name}' is no operand")),
            },
            Operand::Component(name, component) => match at.code.meaning(at.step, name) {
                Some(Meaning::Special(_)) => {
                    let special = SpecialRegister::from_name(name, Some(component))
                        .ok_or_else(|| format!("special register '{name}.{component}' is not supported"))?;
                    Ok(Some((self.slots.special(special), special.width())))
                }
                _ => {
                    let (slot, width) = self.register(at, name)?;
                    let element = match *component {
                        "x" | "r" => 0,
                        "y" | "g" => 1,
                        "z" | "b" => 2,
                        "w" | "a" => 3,
                        _ => return Err(format!("'{name}' has no component '{component}'")),
                    };
                    Ok(Some((Slot(slot.0 + element * width.rows()), width)))
                }
            },
            Operand::Not(name) => {
                let (slot, width) = self.register(at, name)?;
                if width != RegisterWidth::Predicate {
                    return Err(format!("'{name}' is no predicate"));
                }
                let negated = self.slots.register(RegisterWidth::Predicate, 1);
                let mut slots = [Slot::default(); MOST_SLOTS];
                (slots[0], slots[1]) = (negated, slot);
                self.steps
                    .push(Decoded { guard: None, action: Action::Pure(Pure { execute: negate, slots, extra: 0 }) });
                Ok(Some((negated, RegisterWidth::Predicate)))
            }
            _ => Ok(None),
        }
    }

    /// The slot of an operand of a type.
    pub(super) fn operand(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        operand: &Operand<'a>,
        scalar: ScalarType,
    ) -> Result<(Slot, RegisterWidth), String> {
        if let Some(placed) = self.placed(at, operand)? {
            return Ok(placed);
        }
        let width = RegisterWidth::of(scalar).ok_or_else(|| format!("type {scalar} has no register"))?;
        let bits = match operand {
            Operand::Sink => return Ok((self.slots.register(width, 1), width)),
            Operand::Name("WARP_SZ") => LANES as u64,
            Operand::Name(name) => self.variable_address(at, name, 0)?,
            Operand::Symbol(name, offset) => self.variable_address(at, name, *offset)?,
            _ => bits_of(operand, scalar)?,
        };
        let bits = match width {
            RegisterWidth::Predicate => bits & 1,
            RegisterWidth::B16 => bits & 0xFFFF,
            RegisterWidth::B32 => bits & 0xFFFF_FFFF,
            RegisterWidth::B64 => bits,
        };
        Ok((self.slots.constant(width, bits), width))
    }

    /// As `operand`, for one that must have a width.
    pub(super) fn operand_of_width(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        operand: &Operand<'a>,
        scalar: ScalarType,
    ) -> Result<Slot, String> {
        let (slot, width) = self.operand(at, operand, scalar)?;
        if Some(width) != RegisterWidth::of(scalar) {
            return Err(format!("an operand is {width:?}, the instruction needs {scalar}"));
        }
        Ok(slot)
    }

    /// The address of a variable in its own space.
    pub(super) fn variable_address(&self, at: &InFunction<'_, 'm, 'a>, name: &str, offset: i64) -> Result<u64, String> {
        match at.code.meaning(at.step, name) {
            Some(Meaning::Variable(_, variable) | Meaning::Parameter(_, variable)) => {
                let (_, address) =
                    self.layout.place(variable).ok_or_else(|| format!("variable '{name}' has no place in memory"))?;
                Ok(address.wrapping_add_signed(offset))
            }
            _ => Err(format!("'{name}' is no variable")),
        }
    }

    fn shape(&mut self, at: &InFunction<'_, 'm, 'a>, operand: &Operand<'a>) -> Result<OperandShape, String> {
        Ok(match operand {
            Operand::Sink => OperandShape::Sink,
            Operand::Integer(_) | Operand::Float(_) | Operand::Symbol(..) => OperandShape::Immediate,
            Operand::Not(_) => OperandShape::Register(RegisterWidth::Predicate),
            Operand::Vector(elements) => {
                OperandShape::Vector(elements.iter().map(|element| self.shape(at, element)).collect::<Result<_, _>>()?)
            }
            Operand::Pair(pair) => OperandShape::Pair(Box::new((self.shape(at, &pair.0)?, self.shape(at, &pair.1)?))),
            Operand::Name(_) | Operand::Component(..) => match self.placed(at, operand)? {
                Some((_, width)) => OperandShape::Register(width),
                None => OperandShape::Immediate,
            },
            Operand::Address(_) | Operand::List(_) => return Err("an address where a register is needed".to_string()),
        })
    }

    /// An instruction that only touches registers; nothing if it is none.
    pub(super) fn pure(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Option<Action>, String> {
        let shapes =
            instruction.operands.iter().map(|operand| self.shape(at, operand)).collect::<Result<Vec<_>, _>>()?;
        let Some(form) = pure_form(instruction, &shapes, self.options.approximation, self.options.level)? else {
            return Ok(None);
        };
        let mut flat = Vec::new();
        for operand in &instruction.operands {
            flatten(operand, &mut flat);
        }
        if flat.len() != form.operands.len() || flat.len() + usize::from(form.carry) > MOST_SLOTS {
            return Err(format!("`{}` has {} operands, not {}", instruction.opcode, form.operands.len(), flat.len()));
        }
        let mut slots = [Slot::default(); MOST_SLOTS];
        for ((slot, operand), scalar) in slots.iter_mut().zip(&flat).zip(&form.operands) {
            *slot = self.operand_of_width(at, operand, *scalar)?;
        }
        if form.carry {
            let known = self.slots.carry;
            let carry = known.unwrap_or_else(|| self.slots.register(RegisterWidth::Predicate, 1));
            self.slots.carry = Some(carry);
            slots[flat.len()] = carry;
        }
        Ok(Some(Action::Pure(Pure { execute: form.execute, slots, extra: form.extra })))
    }
}

fn flatten<'o, 'a>(operand: &'o Operand<'a>, into: &mut Vec<&'o Operand<'a>>) {
    match operand {
        Operand::Vector(elements) => elements.iter().for_each(|element| flatten(element, into)),
        Operand::Pair(pair) => {
            flatten(&pair.0, into);
            flatten(&pair.1, into);
        }
        _ => into.push(operand),
    }
}

fn negate(file: &mut RegisterFile, pure: &Pure, mask: u32) {
    let bits = !file.predicate(pure.slots[1]);
    file.set_predicate(pure.slots[0], bits, mask);
}
