//! Functions: what can be launched and what can be called.

use super::super::module::{Declaration, Function, FunctionDirective, FunctionKind, Linkage};
use super::cursor::Cursor;
use super::{Parsed, SyntaxError};

/// Directives between a function's head and its body, and the most numbers that each takes.
const DIRECTIVES: &[(&str, usize)] = &[
    ("abi_preserve", 1),
    ("abi_preserve_control", 1),
    ("blocksareclusters", 0),
    ("explicitcluster", 0),
    ("maxclusterrank", 1),
    ("maxnctapersm", 1),
    ("maxnreg", 1),
    ("maxntid", 3),
    ("minnctapersm", 1),
    ("noreturn", 0),
    ("reqnctapercluster", 3),
    ("reqntid", 3),
];

impl<'a> Cursor<'a> {
    /// Takes a function; `.entry` or `.func` was just taken.
    pub(super) fn function(
        &mut self,
        start: usize,
        linkage: Option<Linkage>,
        kind: FunctionKind,
    ) -> Parsed<'a, Function<'a>> {
        let mut attributes = Vec::new();
        let mut directives = Vec::new();
        loop {
            match self.peek_dotted()? {
                Some("attribute") => {
                    self.dotted()?;
                    attributes = self.attributes()?;
                }
                // Some write `.func .noreturn name`.
                Some(_) => directives.push(self.function_directive()?),
                None => break,
            }
        }
        let results = if self.peek()? == Some(b'(') { self.parameters()? } else { Vec::new() };
        let name = self.expect_name("the name of a function")?;
        let parameters = if self.peek()? == Some(b'(') { self.parameters()? } else { Vec::new() };
        let span = self.span_since(start);
        while self.peek()? == Some(b'.') {
            directives.push(self.function_directive()?);
        }
        let body = match self.peek()? {
            Some(b'{') => {
                self.step(1);
                Some(self.nested(Self::body)?)
            }
            Some(b';') => {
                self.step(1);
                None
            }
            _ => return Err(self.unexpected(&format!("the body of '{name}', or ';'"))),
        };
        Ok(Function { span, linkage, kind, attributes, results, name, parameters, directives, body })
    }

    /// Takes `(results) _ (parameters);` of a `.callprototype`.
    pub(super) fn prototype(&mut self, start: usize) -> Parsed<'a, Function<'a>> {
        let results = if self.peek()? == Some(b'(') { self.parameters()? } else { Vec::new() };
        let name = self.expect_name("'_' in a prototype")?;
        let parameters = if self.peek()? == Some(b'(') { self.parameters()? } else { Vec::new() };
        let mut directives = Vec::new();
        while self.peek()? == Some(b'.') {
            directives.push(self.function_directive()?);
        }
        self.expect(b';', "after a prototype")?;
        let span = self.span_since(start);
        let kind = FunctionKind::Function;
        let (linkage, attributes) = (None, Vec::new());
        Ok(Function { span, linkage, kind, attributes, results, name, parameters, directives, body: None })
    }

    fn parameters(&mut self) -> Parsed<'a, Vec<Declaration<'a>>> {
        self.step(1);
        let mut parameters = Vec::new();
        if self.take(b')')? {
            return Ok(parameters);
        }
        loop {
            parameters.push(self.parameter()?);
            match self.peek()? {
                Some(b',') => self.step(1),
                Some(b')') => break,
                _ => return Err(self.unexpected("',' or ')' after a parameter")),
            }
        }
        self.step(1);
        Ok(parameters)
    }

    fn function_directive(&mut self) -> Parsed<'a, FunctionDirective<'a>> {
        let Some(name) = self.dotted()? else { return Err(self.unexpected("a directive of a function")) };
        let mut numbers = Vec::new();
        if name == "pragma" {
            return Ok(FunctionDirective { name, numbers, texts: self.pragma()? });
        }
        let Some((_, most)) = DIRECTIVES.iter().find(|(known, _)| *known == name) else {
            return Err(SyntaxError::new(name, format!("`.{name}` is no directive of a function")));
        };
        if *most > 0 {
            numbers.push(self.natural("a number")?);
            while numbers.len() < *most && self.take(b',')? {
                numbers.push(self.natural("a number")?);
            }
        }
        Ok(FunctionDirective { name, numbers, texts: Vec::new() })
    }
}
