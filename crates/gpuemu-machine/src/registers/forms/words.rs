//! The modifiers of an instruction, taken one after the other: what nobody takes is an error.

use gpuemu_ptx::syntax::{Instruction, ScalarType};

use crate::numerics::Rounding;
use crate::registers::pure::{Execute, PureForm};
use crate::registers::simd::{Level, Operation, execute};

/// What a form is looked up by.
pub struct Words<'a> {
    opcode: &'a str,
    words: Vec<&'a str>,
    /// The level that loops are compiled for.
    pub level: Level,
}

impl<'a> Words<'a> {
    /// The modifiers of an instruction.
    pub fn of(instruction: &Instruction<'a>, level: Level) -> Self {
        Self { opcode: instruction.opcode, words: instruction.modifiers().collect(), level }
    }

    /// Takes a word, and says whether it was there.
    pub fn take(&mut self, word: &str) -> bool {
        self.take_as(|other| (other == word).then_some(())).is_some()
    }

    /// Takes the first word that stands for something.
    pub fn take_as<T>(&mut self, meaning: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (place, found) = self.words.iter().enumerate().find_map(|(place, word)| Some((place, meaning(word)?)))?;
        self.words.remove(place);
        Some(found)
    }

    /// As above, where there must be one.
    pub fn need<T>(&mut self, what: &str, meaning: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        self.take_as(meaning).ok_or_else(|| format!("`{}` needs {what}", self.opcode))
    }

    pub fn scalar(&mut self) -> Result<ScalarType, String> {
        self.need("a type", ScalarType::from_name)
    }

    /// Takes `.rn`, `.rz`, `.rm` or `.rp`.
    pub fn rounding(&mut self) -> Option<Rounding> {
        self.take_as(|word| {
            Some(match word {
                "rn" => Rounding::Nearest,
                "rz" => Rounding::Zero,
                "rm" => Rounding::Down,
                "rp" => Rounding::Up,
                _ => return None,
            })
        })
    }

    /// Says that nothing is left.
    pub fn end(&self) -> Result<(), String> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(format!("`{}`: `.{word}` is not known here", self.opcode)),
        }
    }

    /// A form of an instruction that is known, but not with this type.
    pub fn refuse<T>(&self, scalar: ScalarType) -> Result<T, String> {
        Err(format!("`{}` does not exist for `{scalar}`", self.opcode))
    }

    /// A form of an instruction that does not exist.
    pub fn unknown<T>(&self, why: &str) -> Result<T, String> {
        Err(format!("`{}`: {why}", self.opcode))
    }

    /// The function of an operation at this level.
    pub fn execute<O: Operation>(&self) -> Execute {
        execute::<O>(self.level)
    }

    /// A form without carry, at this level.
    pub fn form<O: Operation>(&self, operands: &[ScalarType], extra: u32) -> Result<Option<PureForm>, String> {
        self.end()?;
        Ok(Some(PureForm { execute: self.execute::<O>(), operands: operands.to_vec(), carry: false, extra }))
    }

    /// A form that is rare and slow: compiled once.
    pub fn slow<O: Operation>(&self, operands: &[ScalarType], extra: u32) -> Result<Option<PureForm>, String> {
        self.end()?;
        Ok(Some(PureForm { execute: execute::<O>(Level::Baseline), operands: operands.to_vec(), carry: false, extra }))
    }

    pub fn carrying<O: Operation>(&self, operands: &[ScalarType]) -> Result<Option<PureForm>, String> {
        self.end()?;
        Ok(Some(PureForm { execute: self.execute::<O>(), operands: operands.to_vec(), carry: true, extra: 0 }))
    }
}

/// What a form is, or why there is none.
pub type Found = Result<Option<PureForm>, String>;
