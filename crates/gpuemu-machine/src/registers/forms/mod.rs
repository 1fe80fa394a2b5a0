//! Which function an instruction is that only touches registers.

mod approximate;
mod bits;
mod carry;
mod compare;
mod convert;
mod convert_fast;
mod float;
mod halves;
mod integer;
pub mod lanes;
mod moves;
mod soft;
mod words;

#[cfg(test)]
mod tests;

use gpuemu_ptx::syntax::{Instruction, ScalarType};
use soft::Arithmetic;
use words::{Found, Words};

use super::pure::{OperandShape, PureForm, RegisterWidth};
use super::simd::Level;
use crate::approximations::Approximation;

/// How an instruction is done that only touches registers; none if it is not one of these. What is wrong with a form
/// that is not known is said; nothing is guessed.
///
/// Operands are as written, results first. Negated predicates have been replaced by registers.
pub fn pure_form(
    instruction: &Instruction<'_>,
    operands: &[OperandShape],
    approximation: Approximation,
    level: Level,
) -> Result<Option<PureForm>, String> {
    let mut words = Words::of(instruction, level);
    let Some(form) = by_base(&mut words, instruction, operands, approximation)? else { return Ok(None) };
    fits(instruction, operands, &form)?;
    Ok(Some(form))
}

fn by_base(
    words: &mut Words<'_>,
    instruction: &Instruction<'_>,
    operands: &[OperandShape],
    approximation: Approximation,
) -> Found {
    match instruction.base() {
        "mov" => moves::copy(words, operands),
        "cvt" => convert::convert(words, operands),
        "selp" => compare::select(words),
        "slct" => compare::select_by_sign(words),
        "setp" => compare::set_predicate(words, operands),
        "set" => compare::set_value(words),
        "testp" => compare::test(words),
        base @ ("and" | "or" | "xor" | "not" | "cnot") => {
            let scalar = words.scalar()?;
            bits::logic(words, base, scalar)
        }
        base @ ("shl" | "shr") => {
            let scalar = words.scalar()?;
            bits::shift(words, base == "shl", scalar)
        }
        "shf" => bits::funnel(words),
        "lop3" => bits::logic3(words, instruction),
        "prmt" => bits::permute(words),
        base @ ("popc" | "clz" | "brev") => bits::count(words, base),
        "bfind" => bits::find(words),
        base @ ("fns" | "bfi" | "bfe") => bits::field(words, base),
        base @ ("bmsk" | "szext") => bits::extend(words, base),
        base @ ("dp4a" | "dp2a") => bits::dot(words, base == "dp2a"),
        base @ ("mul24" | "mad24") => integer::product_of_24_bits(words, base == "mad24"),
        "rem" => {
            let scalar = words.scalar()?;
            integer::remainder(words, scalar)
        }
        "sad" => {
            let scalar = words.scalar()?;
            integer::distance(words, scalar)
        }
        base @ ("addc" | "subc" | "madc") => {
            let (scalar, out) = (words.scalar()?, words.take("cc"));
            match base {
                "addc" => carry::add(words, scalar, (true, out)),
                "subc" => carry::subtract(words, scalar, (true, out)),
                _ => carry::multiply_add(words, scalar, (true, out)),
            }
        }
        "copysign" => float::copy_sign(words),
        "fma" => {
            let scalar = words.scalar()?;
            float::arithmetic(words, Arithmetic::Fused, scalar)
        }
        base @ ("ex2" | "lg2" | "sin" | "cos" | "tanh" | "rsqrt") => {
            if !words.take("approx") {
                return words.unknown("it needs `.approx`");
            }
            let scalar = words.scalar()?;
            approximate::unary(words, base, scalar, approximation)
        }
        base @ ("rcp" | "sqrt") => {
            let scalar = words.scalar()?;
            if words.take("approx") {
                return approximate::unary(words, base, scalar, approximation);
            }
            let arithmetic = if base == "rcp" { Arithmetic::Reciprocal } else { Arithmetic::Root };
            float::arithmetic(words, arithmetic, scalar)
        }
        base @ ("add" | "sub" | "mul" | "mad" | "div" | "abs" | "neg" | "min" | "max") => {
            of_any_number(words, base, approximation)
        }
        _ => Ok(None),
    }
}

/// Instructions for whole numbers and for floating-point ones.
fn of_any_number(words: &mut Words<'_>, base: &str, approximation: Approximation) -> Found {
    if let Some(signed) = integer::take_halves(words) {
        return match base {
            "add" => integer::add_halves(words),
            "min" | "max" => integer::extreme_halves(words, signed, base == "max"),
            _ => words.unknown("it does not exist for two halves of 16 bits"),
        };
    }
    let scalar = words.scalar()?;
    if scalar.is_float() {
        return match base {
            "add" => float::arithmetic(words, Arithmetic::Sum, scalar),
            "sub" => float::arithmetic(words, Arithmetic::Difference, scalar),
            "mul" => float::arithmetic(words, Arithmetic::Product, scalar),
            // `mad` has been `fma` since sm_20, for f32 and f64.
            "mad" if matches!(scalar, ScalarType::F32 | ScalarType::F64) => {
                float::arithmetic(words, Arithmetic::Fused, scalar)
            }
            "div" if words.take("full") => approximate::divide(words, scalar, true, approximation),
            "div" if words.take("approx") => approximate::divide(words, scalar, false, approximation),
            "div" => float::arithmetic(words, Arithmetic::Quotient, scalar),
            "abs" => float::arithmetic(words, Arithmetic::Magnitude, scalar),
            "neg" => float::arithmetic(words, Arithmetic::Opposite, scalar),
            "min" | "max" => float::extreme(words, scalar, base == "max"),
            _ => words.refuse(scalar),
        };
    }
    match base {
        "add" if words.take("cc") => carry::add(words, scalar, (false, true)),
        "sub" if words.take("cc") => carry::subtract(words, scalar, (false, true)),
        "mad" if words.take("cc") => carry::multiply_add(words, scalar, (false, true)),
        "add" => integer::add(words, scalar),
        "sub" => integer::subtract(words, scalar),
        "mul" => integer::multiply(words, scalar),
        "mad" => integer::multiply_add(words, scalar),
        "div" => integer::divide(words, scalar),
        "abs" => integer::magnitude(words, scalar),
        "neg" => integer::negate(words, scalar),
        _ => integer::extreme(words, scalar, base == "max"),
    }
}

/// The operands one after the other, and how many of them are results. Vectors are for `mov`, pairs for predicates.
fn flattened<'a>(
    instruction: &Instruction<'_>,
    operands: &'a [OperandShape],
) -> Result<(Vec<&'a OperandShape>, usize), String> {
    let (mut flat, mut results) = (Vec::new(), 0);
    let (vectors, pairs) = (instruction.base() == "mov", matches!(instruction.base(), "setp" | "lop3"));
    for (place, operand) in operands.iter().enumerate() {
        match operand {
            OperandShape::Vector(parts) if vectors => flat.extend(parts),
            OperandShape::Pair(pair) if pairs && place == 0 => flat.extend([&pair.0, &pair.1]),
            OperandShape::Vector(_) | OperandShape::Pair(_) => {
                return Err(format!("`{}` takes no vector or pair as operand {}", instruction.opcode, place + 1));
            }
            one => flat.push(one),
        }
        if place == 0 {
            results = flat.len();
        }
    }
    Ok((flat, results))
}

/// Whether there are as many operands as the form has, each as wide.
fn fits(instruction: &Instruction<'_>, operands: &[OperandShape], form: &PureForm) -> Result<(), String> {
    let opcode = instruction.opcode;
    let (flat, results) = flattened(instruction, operands)?;
    if flat.len() != form.operands.len() {
        return Err(format!("`{opcode}` takes {} operands, {} are given", form.operands.len(), flat.len()));
    }
    for (place, (shape, scalar)) in flat.into_iter().zip(&form.operands).enumerate() {
        let wrong = match shape {
            OperandShape::Register(width) => RegisterWidth::of(*scalar) != Some(*width),
            OperandShape::Immediate => place < results,
            OperandShape::Sink => place >= results,
            OperandShape::Vector(_) | OperandShape::Pair(_) => true,
        };
        if wrong {
            return Err(format!("`{opcode}`: operand {} does not fit `{scalar}`", place + 1));
        }
    }
    Ok(())
}
