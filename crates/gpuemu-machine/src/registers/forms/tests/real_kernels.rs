//! Every instruction of the kernels that are checked in is known.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use gpuemu_ptx::special_registers::is_special;
use gpuemu_ptx::syntax::StateSpace;

use super::*;

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            into.push(path);
        }
    }
}

/// The widths of registers, and the stems of numbered ones.
type Registers<'a> = HashMap<&'a str, Option<RegisterWidth>>;

fn flatten<'a, 'b>(
    statements: &'a [Statement<'b>],
    code: &mut Vec<&'a Instruction<'b>>,
    registers: &mut Registers<'b>,
) {
    for statement in statements {
        match statement {
            Statement::Instruction(instruction) => code.push(instruction),
            Statement::Block(inner) => flatten(inner, code, registers),
            Statement::Variables(declaration) if declaration.space == StateSpace::Register => {
                for variable in &declaration.variables {
                    registers.insert(variable.name, RegisterWidth::of(declaration.scalar));
                }
            }
            _ => {}
        }
    }
}

fn width(name: &str, registers: &Registers<'_>) -> Option<RegisterWidth> {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
    registers.get(name).or_else(|| registers.get(stem)).copied().flatten()
}

fn real_shape(operand: &Operand<'_>, registers: &Registers<'_>) -> OperandShape {
    let of = |name: &str| match width(name, registers) {
        Some(width) => OperandShape::Register(width),
        None if is_special(name) => OperandShape::Register(match name {
            "%clock64" | "%globaltimer" => RegisterWidth::B64,
            _ => RegisterWidth::B32,
        }),
        None => OperandShape::Immediate,
    };
    match operand {
        Operand::Name(name) | Operand::Not(name) => of(name),
        Operand::Component(name, _) => of(name),
        Operand::Sink => OperandShape::Sink,
        Operand::Vector(parts) => OperandShape::Vector(parts.iter().map(|part| real_shape(part, registers)).collect()),
        Operand::Pair(pair) => {
            OperandShape::Pair(Box::new((real_shape(&pair.0, registers), real_shape(&pair.1, registers))))
        }
        _ => OperandShape::Immediate,
    }
}

#[test]
fn instructions_of_real_kernels_are_known() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpuemu-ptx/tests/data/ptx"), &mut paths);
    let (mut known, mut refused, mut others) = (0, BTreeMap::new(), BTreeMap::new());
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let module = parse(&text).unwrap();
        for function in module.functions() {
            let (mut code, mut registers) = (Vec::new(), Registers::new());
            flatten(function.body.as_deref().unwrap_or_default(), &mut code, &mut registers);
            for instruction in code {
                let shapes: Vec<_> =
                    instruction.operands.iter().map(|operand| real_shape(operand, &registers)).collect();
                match pure_form(instruction, &shapes, Approximation::Chip, Level::Baseline) {
                    Ok(Some(_)) => known += 1,
                    Ok(None) => *others.entry(instruction.base().to_string()).or_insert(0) += 1,
                    Err(why) => {
                        refused.insert(why, path.clone());
                    }
                }
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(known > 20_000, "{known}");
    let not_pure: Vec<_> = "activemask atom bar barrier bra brkpt brx call clusterlaunchcontrol cp createpolicy cvta \
        discard elect exit fence getctarank griddepcontrol isspacep istypep ld ldmatrix ldu mapa match \
        mbarrier membar mma movmatrix multimem nanosleep prefetch prefetchu red redux ret setmaxnreg \
        shfl st stmatrix suld suq sured sust tcgen05 tensormap tex tld4 trap txq vote wgmma \
        wmma"
        .split(' ')
        .collect();
    for base in others.keys() {
        assert!(not_pure.contains(&base.as_str()), "{base} is not known");
    }
}
