//! What stands in the body of a function.

use super::super::module::{Location, Statement, TargetKind};
use super::super::types::StateSpace;
use super::cursor::Cursor;
use super::{Parsed, SyntaxError};

impl<'a> Cursor<'a> {
    /// Takes statements up to the brace that ends them; the one that begins them was just taken.
    pub(super) fn body(&mut self) -> Parsed<'a, Vec<Statement<'a>>> {
        let opened = self.place().saturating_sub(1);
        let mut statements = Vec::new();
        loop {
            let Some(byte) = self.peek()? else {
                let line = self.line_of(opened);
                return Err(self.unexpected(&format!("'}}' to end what '{{' begins in line {line}")));
            };
            match byte {
                b'}' => break,
                b'{' => {
                    self.step(1);
                    statements.push(Statement::Block(self.nested(Self::body)?));
                }
                b'@' => statements.push(Statement::Instruction(self.guarded_instruction()?)),
                b'.' => statements.push(self.directive()?),
                _ => statements.push(self.labelled_or_instruction()?),
            }
        }
        self.step(1);
        Ok(statements)
    }

    fn labelled_or_instruction(&mut self) -> Parsed<'a, Statement<'a>> {
        let start = self.place();
        let name = self.expect_name("an instruction, a label or '}'")?;
        if self.here() == Some(b'.') {
            return self.instruction(start, name, None).map(Statement::Instruction);
        }
        if self.peek()? == Some(b':') && self.ahead(1) != Some(b':') {
            self.step(1);
            return Ok(Statement::Label(name));
        }
        self.rewind(start + name.len());
        self.instruction(start, name, None).map(Statement::Instruction)
    }

    fn directive(&mut self) -> Parsed<'a, Statement<'a>> {
        let start = self.place();
        let Some(word) = self.dotted()? else { return Err(self.unexpected("a directive")) };
        match word {
            "loc" => self.location().map(Statement::Location),
            "pragma" => self.pragma().map(Statement::Pragma),
            "branchtargets" => Ok(Statement::Targets(TargetKind::Branch, self.names_to_semicolon("a label")?)),
            "calltargets" => Ok(Statement::Targets(TargetKind::Call, self.names_to_semicolon("a function")?)),
            "callprototype" => Ok(Statement::Prototype(Box::new(self.prototype(start)?))),
            _ => match StateSpace::from_name(word) {
                Some(space) => self.variables(start, None, space).map(Statement::Variables),
                None => Err(SyntaxError::new(word, format!("`.{word}` is no directive of a function's body"))),
            },
        }
    }

    fn location(&mut self) -> Parsed<'a, Location<'a>> {
        let file = self.natural("the number of a file after .loc")?;
        let line = self.natural("a line after .loc")?;
        let column = self.natural("a column after .loc")?;
        let mut location = Location { file, line, column, function_name: None, inlined_at: None };
        while self.take(b',')? {
            let word = self.expect_name("function_name or inlined_at")?;
            match word {
                "function_name" => {
                    let label = self.expect_name("the label of a function's name")?;
                    let offset = if self.take(b'+')? { self.natural("a number of bytes")? } else { 0 };
                    location.function_name = Some((label, offset));
                }
                "inlined_at" => {
                    let file = self.natural("the number of a file after inlined_at")?;
                    let line = self.natural("a line after inlined_at")?;
                    let column = self.natural("a column after inlined_at")?;
                    location.inlined_at = Some((file, line, column));
                }
                _ => return Err(SyntaxError::new(word, format!("`{word}` says nothing of a location"))),
            }
        }
        Ok(location)
    }

    /// Takes the texts of a `.pragma` and its semicolon.
    pub(super) fn pragma(&mut self) -> Parsed<'a, Vec<&'a str>> {
        let mut texts = vec![self.quoted("a text after .pragma")?];
        while self.take(b',')? {
            texts.push(self.quoted("a text after .pragma")?);
        }
        self.expect(b';', "after .pragma")?;
        Ok(texts)
    }

    fn names_to_semicolon(&mut self, what: &str) -> Parsed<'a, Vec<&'a str>> {
        let mut names = vec![self.expect_name(what)?];
        while self.take(b',')? {
            names.push(self.expect_name(what)?);
        }
        self.expect(b';', "after a list of targets")?;
        Ok(names)
    }
}
