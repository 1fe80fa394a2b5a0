//! Instructions against what the chip was recorded to answer, and those of real kernels.

mod real_kernels;
mod recorded;
mod refused;

use gpuemu_ptx::syntax::{Instruction, Operand, Statement, parse};

use super::pure_form;
use crate::approximations::Approximation;
use crate::registers::file::{LANES, RegisterFile, Slot};
use crate::registers::pure::{OperandShape, Pure, RegisterWidth};
use crate::registers::simd::Level;

const LEVELS: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

/// Rows of a register file that has `h0` to `h15`, `r0` to `r15`, `d0` to `d15` and `p0` to `p15`, room for numbers, and
/// the carry.
const ROWS: u32 = 256;
const CARRY: Slot = Slot(ROWS - 1);

/// The register of a name: its letter says how wide it is.
fn register(name: &str) -> (Slot, RegisterWidth) {
    let number: u32 = name[1..].parse().unwrap();
    assert!(number < 16, "{name}");
    match &name[..1] {
        "p" => (Slot(number), RegisterWidth::Predicate),
        "h" => (Slot(16 + number), RegisterWidth::B16),
        "r" => (Slot(32 + 2 * number), RegisterWidth::B32),
        _ => (Slot(64 + 4 * number), RegisterWidth::B64),
    }
}

fn write(file: &mut RegisterFile, (slot, width): (Slot, RegisterWidth), lane: usize, value: u64) {
    match width {
        RegisterWidth::Predicate => file.set_predicate(slot, u32::from(value != 0) << lane, 1 << lane),
        RegisterWidth::B16 => file.b16_mut(slot)[lane] = value as u16,
        RegisterWidth::B32 => file.b32_mut(slot)[lane] = value as u32,
        RegisterWidth::B64 => file.b64_mut(slot)[lane] = value,
    }
}

fn read(file: &RegisterFile, (slot, width): (Slot, RegisterWidth), lane: usize) -> u64 {
    match width {
        RegisterWidth::Predicate => u64::from(file.predicate(slot) >> lane & 1),
        RegisterWidth::B16 => file.b16(slot)[lane].into(),
        RegisterWidth::B32 => file.b32(slot)[lane].into(),
        RegisterWidth::B64 => file.b64(slot)[lane],
    }
}

fn shape(operand: &Operand<'_>) -> OperandShape {
    match operand {
        Operand::Name(name) => OperandShape::Register(register(name).1),
        Operand::Sink => OperandShape::Sink,
        Operand::Vector(parts) => OperandShape::Vector(parts.iter().map(shape).collect()),
        Operand::Pair(pair) => OperandShape::Pair(Box::new((shape(&pair.0), shape(&pair.1)))),
        _ => OperandShape::Immediate,
    }
}

fn flat<'a, 'b>(operand: &'a Operand<'b>, into: &mut Vec<&'a Operand<'b>>) {
    match operand {
        Operand::Vector(parts) => parts.iter().for_each(|part| flat(part, into)),
        Operand::Pair(pair) => {
            flat(&pair.0, into);
            flat(&pair.1, into);
        }
        one => into.push(one),
    }
}

/// Calls a function with each instruction of some code.
fn instructions(code: &str, mut with: impl FnMut(&Instruction<'_>)) {
    let text = format!(".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n{code};\n}}\n");
    let module = parse(&text).unwrap_or_else(|error| panic!("{code}: {error:?}"));
    for statement in module.entries().next().unwrap().body.as_ref().unwrap() {
        if let Statement::Instruction(instruction) = statement {
            with(instruction);
        }
    }
}

/// Runs code over a register file, for the lanes in a mask.
fn run(code: &str, file: &mut RegisterFile, mask: u32, approximation: Approximation, level: Level) {
    instructions(code, |instruction| {
        let shapes: Vec<_> = instruction.operands.iter().map(shape).collect();
        let form = pure_form(instruction, &shapes, approximation, level).unwrap().unwrap();
        let mut operands = Vec::new();
        instruction.operands.iter().for_each(|operand| flat(operand, &mut operands));
        let mut pure = Pure { execute: form.execute, slots: [Slot(0); 8], extra: form.extra };
        for (place, (operand, scalar)) in operands.iter().zip(&form.operands).enumerate() {
            pure.slots[place] = match operand {
                Operand::Name(name) => register(name).0,
                Operand::Integer(integer) => {
                    let slot = Slot(160 + 4 * place as u32);
                    let width = RegisterWidth::of(*scalar).unwrap();
                    (0..LANES).for_each(|lane| write(file, (slot, width), lane, integer.bits));
                    slot
                }
                _ => Slot(200 + 4 * place as u32),
            };
        }
        if form.carry {
            pure.slots[operands.len()] = CARRY;
        }
        (pure.execute)(file, &pure, mask);
    });
}
