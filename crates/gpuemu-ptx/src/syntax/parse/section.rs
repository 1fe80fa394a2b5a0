//! Data for debuggers.

use super::super::module::{Integer, Section, SectionData, SectionValue};
use super::super::types::ScalarType;
use super::cursor::Cursor;
use super::{Parsed, SyntaxError};

impl<'a> Cursor<'a> {
    /// Takes a section; `.section` was just taken.
    pub(super) fn section(&mut self) -> Parsed<'a, Section<'a>> {
        self.peek()?;
        let start = self.place();
        if self.dotted()?.is_none() {
            return Err(self.unexpected("the name of a section"));
        }
        let name = self.since(start);
        self.expect(b'{', "after the name of a section")?;
        let mut data = Vec::new();
        loop {
            match self.peek()? {
                Some(b'}') => break,
                Some(b'.') => data.push(self.section_values()?),
                // Some writers end a line with a semicolon.
                Some(b';') => self.step(1),
                _ => {
                    let label = self.expect_name("data, a label or '}' in a section")?;
                    self.expect(b':', "after a label")?;
                    data.push(SectionData::Label(label));
                }
            }
        }
        self.step(1);
        Ok(Section { name, data })
    }

    fn section_values(&mut self) -> Parsed<'a, SectionData<'a>> {
        let Some(word) = self.dotted()? else { return Err(self.unexpected("data in a section")) };
        let scalar = ScalarType::from_name(word).filter(|scalar| scalar.bytes().is_some());
        let Some(scalar) = scalar else {
            return Err(SyntaxError::new(word, format!("`.{word}` is no type of data in a section")));
        };
        let mut values = Vec::with_capacity(1);
        loop {
            values.push(self.section_value()?);
            if !self.take(b',')? {
                return Ok(SectionData::Values(scalar, values));
            }
        }
    }

    fn section_value(&mut self) -> Parsed<'a, SectionValue<'a>> {
        let start = match self.peek()? {
            Some(byte) if byte.is_ascii_digit() || byte == b'-' => {
                let negative = self.take(b'-')?;
                let bits = self.natural("a number")?;
                let value = if negative { Integer::signed((bits as i64).wrapping_neg()) } else { natural(bits) };
                return Ok(SectionValue::Integer(value));
            }
            _ => self.place(),
        };
        let name = match self.dotted()? {
            Some(_) => self.since(start),
            None => self.expect_name("a value in a section")?,
        };
        match self.peek()? {
            Some(b'+') => {
                self.step(1);
                let offset = self.natural("a number of bytes")?;
                Ok(SectionValue::Address(name, offset as i64))
            }
            Some(b'-') => {
                self.step(1);
                match self.name()? {
                    Some(other) => Ok(SectionValue::Distance(name, other)),
                    None => {
                        let offset = self.natural("a number of bytes or a label")?;
                        Ok(SectionValue::Address(name, (offset as i64).wrapping_neg()))
                    }
                }
            }
            _ => Ok(SectionValue::Address(name, 0)),
        }
    }
}

fn natural(bits: u64) -> Integer {
    Integer { bits, unsigned: bits > i64::MAX as u64 }
}
