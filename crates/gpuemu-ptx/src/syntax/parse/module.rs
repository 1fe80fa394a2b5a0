//! The module: its head, and what stands outside of functions.

use super::super::module::{File, FunctionKind, Item, Module};
use super::super::types::StateSpace;
use super::cursor::Cursor;
use super::declaration::linkage;
use super::{Parsed, SyntaxError};

impl<'a> Cursor<'a> {
    /// Takes the whole text.
    pub(super) fn module(mut self) -> Parsed<'a, Module<'a>> {
        if self.peek_dotted()? != Some("version") {
            let mut error = self.unexpected("`.version`");
            error.message = format!("not PTX: {}", error.message);
            return Err(error);
        }
        self.dotted()?;
        let version = self.version()?;
        let target = match self.dotted()? {
            Some("target") => self.target()?,
            _ => return Err(self.unexpected("`.target` after `.version`")),
        };
        let mut module = Module { version, target, address_size: None, items: Vec::new() };
        if self.peek_dotted()? == Some("address_size") {
            self.dotted()?;
            module.address_size = Some(self.address_size()?);
        }
        while !self.at_end()? {
            module.items.push(self.item()?);
        }
        Ok(module)
    }

    fn version(&mut self) -> Parsed<'a, (u32, u32)> {
        self.peek()?;
        let start = self.place();
        let major = self.digits();
        let point = self.here() == Some(b'.');
        self.step(usize::from(point));
        let minor = if point { self.digits() } else { None };
        match (major, minor) {
            (Some(major), Some(minor)) => Ok((major, minor)),
            _ => {
                self.rewind(start);
                Err(self.unexpected("a version such as 8.4"))
            }
        }
    }

    fn digits(&mut self) -> Option<u32> {
        let start = self.place();
        while self.here().is_some_and(|byte| byte.is_ascii_digit()) {
            self.step(1);
        }
        self.since(start).parse().ok()
    }

    fn target(&mut self) -> Parsed<'a, Vec<&'a str>> {
        let mut names = vec![self.expect_name("an architecture such as sm_80")?];
        while self.take(b',')? {
            names.push(self.expect_name("an option of the target")?);
        }
        Ok(names)
    }

    fn address_size(&mut self) -> Parsed<'a, u32> {
        self.peek()?;
        let start = self.place();
        match self.natural("32 or 64 after .address_size")? {
            bits @ (32 | 64) => Ok(bits as u32),
            bits => Err(SyntaxError::new(self.since(start), format!("an address has 32 or 64 bits, not {bits}"))),
        }
    }

    fn item(&mut self) -> Parsed<'a, Item<'a>> {
        let start = self.place();
        let Some(mut word) = self.dotted()? else { return Err(self.unexpected("a directive outside of functions")) };
        let linkage = linkage(word);
        if linkage.is_some() {
            word = match self.dotted()? {
                Some(word) => word,
                None => return Err(self.unexpected(&format!("a variable or function after .{word}"))),
            };
        }
        let item = match word {
            "entry" => Item::Function(self.function(start, linkage, FunctionKind::Entry)?),
            "func" => Item::Function(self.function(start, linkage, FunctionKind::Function)?),
            "file" if linkage.is_none() => Item::File(self.file()?),
            "section" if linkage.is_none() => Item::Section(self.section()?),
            "pragma" if linkage.is_none() => Item::Pragma(self.pragma()?),
            "alias" if linkage.is_none() => {
                let name = self.expect_name("a function after .alias")?;
                self.expect(b',', "between the two functions of .alias")?;
                let other = self.expect_name("a second function after .alias")?;
                self.expect(b';', "after .alias")?;
                Item::Alias(name, other)
            }
            _ => match StateSpace::from_name(word) {
                Some(StateSpace::Parameter | StateSpace::Register | StateSpace::Local) | None => {
                    return Err(SyntaxError::new(word, format!("`.{word}` is no directive outside of functions")));
                }
                Some(space) => Item::Variables(self.variables(start, linkage, space)?),
            },
        };
        Ok(item)
    }

    fn file(&mut self) -> Parsed<'a, File<'a>> {
        let number = self.natural("the number of a file")?;
        let name = self.quoted("the name of a file")?;
        let stamp = if self.take(b',')? {
            let time = self.natural("a time stamp")?;
            self.expect(b',', "between a time stamp and a size")?;
            Some((time, self.natural("a size in bytes")?))
        } else {
            None
        };
        Ok(File { number, name, stamp })
    }
}
