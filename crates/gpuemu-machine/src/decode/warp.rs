//! Instructions that lanes of a warp do together.

use gpuemu_ptx::syntax::{Instruction, Operand, ScalarType};

use super::instruction::{Action, Match, Reduce, Shuffle, ShuffleMode, Vote, VoteMode};
use super::{Decoder, InFunction};
use crate::registers::RegisterWidth;

impl<'m, 'a> Decoder<'_, 'm, 'a> {
    pub(super) fn warp_wide(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Action, String> {
        let unknown = || format!("`{}` is not a form that the machine knows", instruction.opcode);
        let words: Vec<&str> = instruction.modifiers().collect();
        let operands = instruction.operands.as_slice();
        match (instruction.base(), words.as_slice()) {
            ("shfl", ["sync", mode, "b32"]) => self.shuffle(at, mode, operands, true),
            ("shfl", [mode, "b32"]) => self.shuffle(at, mode, operands, false),
            ("vote", ["sync", mode, "pred" | "b32"]) => self.vote(at, mode, operands, true),
            ("vote", [mode, "pred" | "b32"]) => self.vote(at, mode, operands, false),
            ("match", [mode @ ("any" | "all"), "sync", scalar @ ("b32" | "b64")]) => {
                let scalar = if *scalar == "b32" { ScalarType::B32 } else { ScalarType::B64 };
                self.matching(at, *mode == "all", scalar, operands)
            }
            ("redux", ["sync", operation, scalar]) => {
                let combine = reduction(operation, scalar).ok_or_else(unknown)?;
                let [result, source, members] = operands else { return Err(unknown()) };
                Ok(Action::Reduce(Box::new(Reduce {
                    combine,
                    result: self.operand_of_width(at, result, ScalarType::B32)?,
                    source: self.operand_of_width(at, source, ScalarType::B32)?,
                    members: self.operand_of_width(at, members, ScalarType::B32)?,
                })))
            }
            ("activemask", ["b32"]) => match operands {
                [result] => Ok(Action::ActiveMask(self.operand_of_width(at, result, ScalarType::B32)?)),
                _ => Err(unknown()),
            },
            ("elect", ["sync"]) => match operands {
                [Operand::Pair(pair), members] => Ok(Action::Elect(
                    self.operand_of_width(at, &pair.0, ScalarType::B32)?,
                    self.operand_of_width(at, &pair.1, ScalarType::Pred)?,
                    self.operand_of_width(at, members, ScalarType::B32)?,
                )),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }

    fn shuffle(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        mode: &str,
        operands: &[Operand<'a>],
        synchronised: bool,
    ) -> Result<Action, String> {
        let mode = match mode {
            "up" => ShuffleMode::Up,
            "down" => ShuffleMode::Down,
            "bfly" => ShuffleMode::Butterfly,
            "idx" => ShuffleMode::Index,
            _ => return Err(format!("a shuffle cannot be '{mode}'")),
        };
        let [result, source, lane, bounds, members @ ..] = operands else {
            return Err("a shuffle needs a result, a source, a lane and bounds".to_string());
        };
        let (result, in_range) = match result {
            Operand::Pair(pair) => (&pair.0, Some(&pair.1)),
            one => (one, None),
        };
        let members = match (synchronised, members) {
            (true, [members]) => Some(self.operand_of_width(at, members, ScalarType::B32)?),
            (false, []) => None,
            _ => return Err("a shuffle with a wrong number of operands".to_string()),
        };
        Ok(Action::Shuffle(Box::new(Shuffle {
            mode,
            result: self.operand_of_width(at, result, ScalarType::B32)?,
            in_range: in_range.map(|slot| self.operand_of_width(at, slot, ScalarType::Pred)).transpose()?,
            source: self.operand_of_width(at, source, ScalarType::B32)?,
            lane: self.operand_of_width(at, lane, ScalarType::B32)?,
            bounds: self.operand_of_width(at, bounds, ScalarType::B32)?,
            members,
        })))
    }

    fn vote(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        mode: &str,
        operands: &[Operand<'a>],
        synchronised: bool,
    ) -> Result<Action, String> {
        let mode = match mode {
            "all" => VoteMode::All,
            "any" => VoteMode::Any,
            "uni" => VoteMode::Uniform,
            "ballot" => VoteMode::Ballot,
            _ => return Err(format!("a vote cannot be '{mode}'")),
        };
        let (result, source, members) = match (synchronised, operands) {
            (true, [result, source, members]) => (result, source, Some(members)),
            (false, [result, source]) => (result, source, None),
            _ => return Err("a vote with a wrong number of operands".to_string()),
        };
        let kind = if mode == VoteMode::Ballot { ScalarType::B32 } else { ScalarType::Pred };
        let (source, width) = self.operand(at, source, ScalarType::Pred)?;
        if width != RegisterWidth::Predicate {
            return Err("a vote needs a predicate".to_string());
        }
        Ok(Action::Vote(Box::new(Vote {
            mode,
            result: self.operand_of_width(at, result, kind)?,
            source,
            members: members.map(|members| self.operand_of_width(at, members, ScalarType::B32)).transpose()?,
        })))
    }

    fn matching(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        all: bool,
        scalar: ScalarType,
        operands: &[Operand<'a>],
    ) -> Result<Action, String> {
        let [result, source, members] = operands else {
            return Err("a match needs a result, a value and a mask".to_string());
        };
        let (result, predicate) = match result {
            Operand::Pair(pair) => (&pair.0, Some(&pair.1)),
            one => (one, None),
        };
        let width = RegisterWidth::of(scalar).ok_or("a match needs 32 or 64 bits")?;
        Ok(Action::Match(Box::new(Match {
            all,
            result: self.operand_of_width(at, result, ScalarType::B32)?,
            predicate: predicate.map(|slot| self.operand_of_width(at, slot, ScalarType::Pred)).transpose()?,
            source: (self.operand_of_width(at, source, scalar)?, width),
            members: self.operand_of_width(at, members, ScalarType::B32)?,
        })))
    }

    pub(super) fn is_clock(&self, instruction: &Instruction<'a>) -> bool {
        const CLOCKS: [&str; 6] =
            ["%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"];
        matches!(instruction.operands.as_slice(), [_, Operand::Name(name)] if CLOCKS.contains(name))
    }

    pub(super) fn clock(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Action, String> {
        let scalar = instruction.types().next().ok_or("the type is missing")?;
        let result = instruction.operands.first().ok_or("the result is missing")?;
        let (slot, width) = self.operand(at, result, scalar)?;
        Ok(Action::Clock(slot, width))
    }
}

fn reduction(operation: &str, scalar: &str) -> Option<fn(u32, u32) -> u32> {
    Some(match (operation, scalar) {
        ("add", "u32" | "s32") => u32::wrapping_add,
        ("min", "u32") => u32::min,
        ("max", "u32") => u32::max,
        ("min", "s32") => |left, right| (left as i32).min(right as i32) as u32,
        ("max", "s32") => |left, right| (left as i32).max(right as i32) as u32,
        ("and", "b32") => |left, right| left & right,
        ("or", "b32") => |left, right| left | right,
        ("xor", "b32") => |left, right| left ^ right,
        _ => return None,
    })
}
