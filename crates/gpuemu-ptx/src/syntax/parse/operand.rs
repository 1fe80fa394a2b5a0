//! Instructions and what they are given.

use super::super::module::{Address, AddressBase, Guard, Instruction, Integer, Operand};
use super::super::opcodes::is_opcode;
use super::cursor::Cursor;
use super::number::Number;
use super::{Parsed, SyntaxError};

/// More letters than any opcode has.
const LONGEST_OPCODE: usize = 40;

impl<'a> Cursor<'a> {
    /// Takes an instruction under a guard; `@` comes next.
    pub(super) fn guarded_instruction(&mut self) -> Parsed<'a, Instruction<'a>> {
        let start = self.place();
        self.step(1);
        let negated = self.take(b'!')?;
        let predicate = self.expect_name("a predicate after '@'")?;
        if !self.peek()?.is_some_and(|byte| byte.is_ascii_alphabetic()) {
            return Err(self.unexpected("an instruction after its guard"));
        }
        let base = self.expect_name("an instruction after its guard")?;
        self.instruction(start, base, Some(Guard { negated, predicate }))
    }

    /// Takes an instruction whose first word was just taken.
    pub(super) fn instruction(
        &mut self,
        start: usize,
        base: &'a str,
        guard: Option<Guard<'a>>,
    ) -> Parsed<'a, Instruction<'a>> {
        let opcode_start = self.place() - base.len();
        self.skip_modifiers();
        let opcode = self.since(opcode_start);
        if !is_opcode(base) {
            // Junk may be one word of a megabyte, which is not shown whole.
            let shown = base.get(..base.floor_char_boundary(LONGEST_OPCODE)).unwrap_or_default();
            let message = format!("`{shown}` is no instruction of PTX");
            return Err(SyntaxError::new(base, message));
        }
        // ptxas takes `add .s32` as well, which no compiler writes: the opcode would be no part of the text.
        if self.peek()? == Some(b'.')
            && let Some(modifier) = self.peek_dotted()?.filter(|word| word.starts_with(char::is_alphabetic))
        {
            let message = format!("a blank before `.{modifier}`: write `{opcode}.{modifier}`");
            return Err(SyntaxError::new(modifier, message));
        }
        let is_call = base == "call";
        let mut operands = Vec::new();
        if self.peek()? != Some(b';') {
            operands.reserve_exact(4);
            loop {
                operands.push(self.operand(is_call)?);
                match self.peek()? {
                    Some(b',') => self.step(1),
                    Some(b';') => break,
                    _ => return Err(self.unexpected(&format!("',' or ';' in the operands of `{opcode}`"))),
                }
            }
        }
        self.step(1);
        Ok(Instruction { span: self.span_since(start), guard, opcode, operands })
    }

    fn operand(&mut self, is_call: bool) -> Parsed<'a, Operand<'a>> {
        match self.peek()? {
            Some(b'[') => self.nested(Self::address).map(Operand::Address),
            Some(b'{') => self.nested(|cursor| cursor.operands(b'}', is_call)).map(Operand::Vector),
            Some(b'(') if is_call => self.nested(|cursor| cursor.operands(b')', is_call)).map(Operand::List),
            Some(b'!') if self.ahead(1).is_some_and(|byte| !byte.is_ascii_digit() && byte != b'(') => {
                self.step(1);
                self.expect_name("a predicate after '!'").map(Operand::Not)
            }
            Some(b'"') => Err(self.unexpected("an operand")),
            _ => match self.name()? {
                Some(name) => self.named(name),
                None => self.immediate(),
            },
        }
    }

    /// What a name begins.
    fn named(&mut self, name: &'a str) -> Parsed<'a, Operand<'a>> {
        let first = match self.here() {
            Some(b'.') => match self.dotted()? {
                Some(component) => Operand::Component(name, component),
                None => return Err(self.unexpected("a component after '.'")),
            },
            _ if name == "_" => Operand::Sink,
            _ if name == "WARP_SZ" => Operand::Integer(Integer::signed(32)),
            _ => Operand::Name(name),
        };
        match (self.peek()?, &first) {
            (Some(b'|'), _) => {
                self.step(1);
                let second = self.expect_name("a second result after '|'")?;
                let second = if second == "_" { Operand::Sink } else { Operand::Name(second) };
                Ok(Operand::Pair(Box::new((first, second))))
            }
            (Some(b'+' | b'-'), Operand::Name(_)) => Ok(Operand::Symbol(name, self.offset()?)),
            (Some(b'['), Operand::Name(_)) => {
                Err(self.error_of(1, format!("`{name}[...]` as an operand: give the address as [{name}+bytes]")))
            }
            _ => Ok(first),
        }
    }

    /// Bytes after a name; '+' or '-' comes next.
    fn offset(&mut self) -> Parsed<'a, i64> {
        // A minus belongs to the number, and a plus may stand before one.
        self.take(b'+')?;
        Ok(self.whole("a number of bytes")?.value())
    }

    fn immediate(&mut self) -> Parsed<'a, Operand<'a>> {
        let start = self.place();
        // Nearly every immediate is a plain number: expressions cost ten times as much.
        if self.here().is_some_and(|byte| byte.is_ascii_digit()) {
            let number = self.number()?;
            if matches!(self.peek()?, Some(b',' | b';' | b'}' | b']' | b')')) {
                return Ok(operand_of(number));
            }
            self.rewind(start);
        } else if !matches!(self.here(), Some(b'-' | b'+' | b'~' | b'!' | b'(' | b'.')) {
            return Err(self.unexpected("an operand"));
        }
        self.expression().map(operand_of)
    }

    fn operands(&mut self, end: u8, is_call: bool) -> Parsed<'a, Vec<Operand<'a>>> {
        self.step(1);
        let mut operands = Vec::new();
        if self.take(end)? {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand(is_call)?);
            match self.peek()? {
                Some(b',') => self.step(1),
                Some(byte) if byte == end => break,
                _ => return Err(self.unexpected(&format!("',' or '{}'", char::from(end)))),
            }
        }
        self.step(1);
        Ok(operands)
    }

    fn address(&mut self) -> Parsed<'a, Address<'a>> {
        self.step(1);
        let (base, offset) = match self.name()? {
            Some(name) => {
                let offset = if matches!(self.peek()?, Some(b'+' | b'-')) { self.offset()? } else { 0 };
                (AddressBase::Name(name), offset)
            }
            None => (AddressBase::Absolute(self.whole("an address")?.bits), 0),
        };
        let mut rest = Vec::new();
        while self.take(b',')? {
            rest.push(self.operand(false)?);
        }
        self.expect(b']', "after an address")?;
        Ok(Address { base, offset, rest })
    }
}

fn operand_of(number: Number) -> Operand<'static> {
    match number {
        Number::Integer(integer) => Operand::Integer(integer),
        Number::Float(float) => Operand::Float(float),
    }
}
