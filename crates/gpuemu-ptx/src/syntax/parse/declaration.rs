//! Variables: registers, memory and parameters.

use super::super::module::{Attribute, Declaration, Initialiser, Linkage, Pointer, Symbol, Variable};
use super::super::types::{ScalarType, StateSpace, VectorWidth};
use super::cursor::Cursor;
use super::number::Number;
use super::{Parsed, SyntaxError};

/// What a directive before a name says of it.
pub(super) fn linkage(word: &str) -> Option<Linkage> {
    match word {
        "extern" => Some(Linkage::Extern),
        "visible" => Some(Linkage::Visible),
        "weak" => Some(Linkage::Weak),
        "common" => Some(Linkage::Common),
        _ => None,
    }
}

impl<'a> Cursor<'a> {
    /// Takes variables up to their semicolon; the state space was just taken.
    pub(super) fn variables(
        &mut self,
        start: usize,
        linkage: Option<Linkage>,
        space: StateSpace,
    ) -> Parsed<'a, Declaration<'a>> {
        let mut declaration = self.declaration_head(start, linkage, space)?;
        loop {
            let mut variable = self.variable()?;
            if self.take(b'=')? {
                variable.initialiser = Some(self.initialiser()?);
            }
            declaration.variables.push(variable);
            match self.peek()? {
                Some(b',') => self.step(1),
                Some(b';') => break,
                _ => return Err(self.unexpected("',' or ';' after a variable")),
            }
        }
        self.step(1);
        declaration.span = self.span_since(start);
        Ok(declaration)
    }

    /// Takes one parameter of a function; its state space comes next.
    pub(super) fn parameter(&mut self) -> Parsed<'a, Declaration<'a>> {
        self.peek()?;
        let start = self.place();
        let space = match self.dotted()? {
            Some("param") => StateSpace::Parameter,
            Some("reg") => StateSpace::Register,
            Some(other) => return Err(SyntaxError::new(other, format!("a parameter is .param or .reg, not .{other}"))),
            None => return Err(self.unexpected("a parameter")),
        };
        let mut declaration = self.declaration_head(start, None, space)?;
        declaration.variables.push(self.variable()?);
        declaration.span = self.span_since(start);
        Ok(declaration)
    }

    /// Takes what stands before the names. The words come in several orders.
    fn declaration_head(
        &mut self,
        start: usize,
        linkage: Option<Linkage>,
        space: StateSpace,
    ) -> Parsed<'a, Declaration<'a>> {
        let bank = match space {
            StateSpace::Constant if self.take(b'[')? => {
                let bank = self.natural32("the number of a constant bank")?;
                self.expect(b']', "after the number of a constant bank")?;
                Some(bank)
            }
            _ => None,
        };
        let (mut attributes, mut alignment, mut vector) = (Vec::new(), None, None);
        let (mut scalar, mut pointer) = (None, None::<Pointer>);
        while let Some(word) = self.dotted()? {
            match word {
                "align" => {
                    let bytes = self.natural("an alignment in bytes")?;
                    if !bytes.is_power_of_two() {
                        return Err(SyntaxError::new(word, format!("an alignment of {bytes} is no power of two")));
                    }
                    match &mut pointer {
                        Some(pointer) => pointer.alignment = Some(bytes),
                        None => alignment = Some(bytes),
                    }
                }
                "attribute" => attributes = self.attributes()?,
                "ptr" => pointer = Some(Pointer { space: None, alignment: None }),
                _ => {
                    if let Some(width) = VectorWidth::from_name(word) {
                        vector = Some(width);
                    } else if let Some(found) = ScalarType::from_name(word) {
                        if scalar.replace(found).is_some() {
                            return Err(SyntaxError::new(word, format!("a second type, .{word}")));
                        }
                    } else if let (Some(pointer), Some(space)) = (&mut pointer, StateSpace::from_name(word)) {
                        pointer.space = Some(space);
                    } else {
                        return Err(SyntaxError::new(word, format!("`.{word}` says nothing of a variable")));
                    }
                }
            }
        }
        let Some(scalar) = scalar else { return Err(self.unexpected("the type of a variable")) };
        let span = self.span_since(start);
        let variables = Vec::with_capacity(1);
        Ok(Declaration { span, linkage, space, bank, attributes, alignment, vector, scalar, pointer, variables })
    }

    /// Takes `(.managed, .unified(1, 2))`.
    pub(super) fn attributes(&mut self) -> Parsed<'a, Vec<Attribute<'a>>> {
        self.expect(b'(', "after .attribute")?;
        let mut attributes = Vec::new();
        loop {
            let Some(name) = self.dotted()? else { return Err(self.unexpected("an attribute")) };
            let mut arguments = Vec::new();
            if self.take(b'(')? {
                loop {
                    arguments.push(self.whole("a number")?);
                    if !self.take(b',')? {
                        break;
                    }
                }
                self.expect(b')', "after the numbers of an attribute")?;
            }
            attributes.push(Attribute { name, arguments });
            if !self.take(b',')? {
                break;
            }
        }
        self.expect(b')', "after attributes")?;
        Ok(attributes)
    }

    fn variable(&mut self) -> Parsed<'a, Variable<'a>> {
        let name = self.expect_name("the name of a variable")?;
        let mut variable = Variable { name, count: None, dimensions: Vec::new(), initialiser: None };
        if self.take(b'<')? {
            variable.count = Some(self.natural32("a number of registers")?);
            self.expect(b'>', "after a number of registers")?;
        }
        while self.take(b'[')? {
            if self.take(b']')? {
                variable.dimensions.push(None);
                continue;
            }
            self.peek()?;
            let start = self.place();
            let length = self.whole("the length of an array")?;
            if !length.unsigned && length.value() < 0 {
                let text = self.since(start);
                return Err(SyntaxError::new(text, format!("an array of {} elements", length.value())));
            }
            variable.dimensions.push(Some(length.bits));
            self.expect(b']', "after the length of an array")?;
        }
        Ok(variable)
    }

    fn initialiser(&mut self) -> Parsed<'a, Initialiser<'a>> {
        match self.peek()? {
            Some(b'{') => self.nested(|cursor| {
                cursor.step(1);
                let mut values = Vec::new();
                if cursor.take(b'}')? {
                    return Ok(Initialiser::List(values));
                }
                loop {
                    values.push(cursor.initialiser()?);
                    match cursor.peek()? {
                        Some(b',') => cursor.step(1),
                        Some(b'}') => break,
                        _ => return Err(cursor.unexpected("',' or '}' in the values of a variable")),
                    }
                }
                cursor.step(1);
                Ok(Initialiser::List(values))
            }),
            _ => match self.name()? {
                Some(name) => self.symbol(name, None).map(Initialiser::Symbol),
                None => self.initial_number(),
            },
        }
    }

    fn initial_number(&mut self) -> Parsed<'a, Initialiser<'a>> {
        let start = self.place();
        if self.here().is_some_and(|byte| byte.is_ascii_digit()) {
            let number = self.number()?;
            match (self.peek()?, number) {
                (Some(b',' | b'}' | b';'), number) => return Ok(initial(number)),
                // 0xFF00(name): some bytes of an address.
                (Some(b'('), Number::Integer(mask)) => {
                    self.step(1);
                    let name = self.expect_name("the name of a variable after a mask")?;
                    let symbol = self.symbol(name, Some(mask.bits))?;
                    self.expect(b')', "after the address that a mask is taken of")?;
                    return Ok(Initialiser::Symbol(symbol));
                }
                _ => self.rewind(start),
            }
        }
        self.expression().map(initial)
    }

    fn symbol(&mut self, name: &'a str, mask: Option<u64>) -> Parsed<'a, Symbol<'a>> {
        let mut symbol = Symbol { name, offset: 0, generic: false, mask };
        if name == "generic" && self.take(b'(')? {
            symbol.name = self.expect_name("the name of a variable")?;
            symbol.generic = true;
            self.expect(b')', "after generic(")?;
        }
        if matches!(self.peek()?, Some(b'+' | b'-')) {
            self.take(b'+')?;
            symbol.offset = self.whole("a number of bytes")?.value();
        }
        Ok(symbol)
    }
}

fn initial(number: Number) -> Initialiser<'static> {
    match number {
        Number::Integer(integer) => Initialiser::Integer(integer),
        Number::Float(float) => Initialiser::Float(float),
    }
}
