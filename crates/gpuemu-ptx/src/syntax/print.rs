//! Writes the parsed form back as PTX.

use std::fmt::{self, Display, Formatter};

use super::module::*;

/// Writes things with commas between them.
fn list<T>(
    formatter: &mut Formatter<'_>,
    things: &[T],
    mut write: impl FnMut(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (place, thing) in things.iter().enumerate() {
        if place > 0 {
            formatter.write_str(", ")?;
        }
        write(formatter, thing)?;
    }
    Ok(())
}

impl Display for Module<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, ".version {}.{}", self.version.0, self.version.1)?;
        writeln!(formatter, ".target {}", self.target.join(", "))?;
        if let Some(bits) = self.address_size {
            writeln!(formatter, ".address_size {bits}")?;
        }
        self.items.iter().try_for_each(|item| writeln!(formatter, "{item}"))
    }
}

impl Display for Item<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Item::Variables(declaration) => write!(formatter, "{declaration};"),
            Item::Function(function) => function.fmt(formatter),
            Item::File(File { number, name, stamp }) => {
                write!(formatter, ".file {number} \"{name}\"")?;
                stamp.map_or(Ok(()), |(time, size)| write!(formatter, ", {time}, {size}"))
            }
            Item::Section(section) => section.fmt(formatter),
            Item::Pragma(texts) => pragma(formatter, texts),
            Item::Alias(name, other) => write!(formatter, ".alias {name}, {other};"),
        }
    }
}

fn pragma(formatter: &mut Formatter<'_>, texts: &[&str]) -> fmt::Result {
    formatter.write_str(".pragma ")?;
    list(formatter, texts, |formatter, text| write!(formatter, "\"{text}\""))?;
    formatter.write_str(";")
}

impl Display for Linkage {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Linkage::Extern => ".extern ",
            Linkage::Visible => ".visible ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        })
    }
}

impl Display for Declaration<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.linkage.map_or(Ok(()), |linkage| linkage.fmt(formatter))?;
        self.space.fmt(formatter)?;
        self.bank.map_or(Ok(()), |bank| write!(formatter, "[{bank}]"))?;
        if !self.attributes.is_empty() {
            formatter.write_str(" ")?;
            attributes(formatter, &self.attributes)?;
        }
        self.alignment.map_or(Ok(()), |bytes| write!(formatter, " .align {bytes}"))?;
        self.vector.map_or(Ok(()), |vector| write!(formatter, " {vector}"))?;
        write!(formatter, " {}", self.scalar)?;
        if let Some(pointer) = self.pointer {
            formatter.write_str(" .ptr")?;
            pointer.space.map_or(Ok(()), |space| write!(formatter, " {space}"))?;
            pointer.alignment.map_or(Ok(()), |bytes| write!(formatter, " .align {bytes}"))?;
        }
        formatter.write_str(" ")?;
        list(formatter, &self.variables, |formatter, variable| variable.fmt(formatter))
    }
}

fn attributes(formatter: &mut Formatter<'_>, attributes: &[Attribute<'_>]) -> fmt::Result {
    formatter.write_str(".attribute(")?;
    list(formatter, attributes, |formatter, attribute| {
        write!(formatter, ".{}", attribute.name)?;
        if attribute.arguments.is_empty() {
            return Ok(());
        }
        formatter.write_str("(")?;
        list(formatter, &attribute.arguments, |formatter, argument| argument.fmt(formatter))?;
        formatter.write_str(")")
    })?;
    formatter.write_str(")")
}

impl Display for Variable<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)?;
        self.count.map_or(Ok(()), |count| write!(formatter, "<{count}>"))?;
        for dimension in &self.dimensions {
            match dimension {
                // A length may need the top bit, which only an unsigned number has.
                Some(length) => {
                    write!(formatter, "[{}]", Integer { bits: *length, unsigned: *length > i64::MAX as u64 })?
                }
                None => formatter.write_str("[]")?,
            }
        }
        match &self.initialiser {
            Some(initialiser) => write!(formatter, " = {initialiser}"),
            None => Ok(()),
        }
    }
}

impl Display for Initialiser<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Initialiser::Integer(integer) => integer.fmt(formatter),
            Initialiser::Float(float) => float.fmt(formatter),
            Initialiser::Symbol(symbol) => {
                symbol.mask.map_or(Ok(()), |mask| write!(formatter, "{mask}("))?;
                if symbol.generic {
                    write!(formatter, "generic({})", symbol.name)?;
                } else {
                    formatter.write_str(symbol.name)?;
                }
                offset(formatter, symbol.offset)?;
                symbol.mask.map_or(Ok(()), |_| formatter.write_str(")"))
            }
            Initialiser::List(values) => {
                formatter.write_str("{")?;
                list(formatter, values, |formatter, value| value.fmt(formatter))?;
                formatter.write_str("}")
            }
        }
    }
}

/// Bytes after a name; nothing where there are none.
fn offset(formatter: &mut Formatter<'_>, bytes: i64) -> fmt::Result {
    if bytes == 0 { Ok(()) } else { write!(formatter, "+{bytes}") }
}

impl Display for Integer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.unsigned { write!(formatter, "{}U", self.bits) } else { self.value().fmt(formatter) }
    }
}

impl Display for Float {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Float::Single(bits) => write!(formatter, "0f{bits:08X}"),
            Float::Double(bits) => write!(formatter, "0d{bits:016X}"),
        }
    }
}

impl Display for Function<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.linkage.map_or(Ok(()), |linkage| linkage.fmt(formatter))?;
        formatter.write_str(match self.kind {
            FunctionKind::Entry => ".entry ",
            FunctionKind::Function => ".func ",
        })?;
        if !self.attributes.is_empty() {
            attributes(formatter, &self.attributes)?;
            formatter.write_str(" ")?;
        }
        head(formatter, self)?;
        match &self.body {
            None => formatter.write_str(";"),
            Some(body) => {
                formatter.write_str("\n{\n")?;
                statements(formatter, body)?;
                formatter.write_str("}")
            }
        }
    }
}

/// Results, name, parameters and directives.
fn head(formatter: &mut Formatter<'_>, function: &Function<'_>) -> fmt::Result {
    if !function.results.is_empty() {
        formatter.write_str("(")?;
        list(formatter, &function.results, |formatter, result| result.fmt(formatter))?;
        formatter.write_str(") ")?;
    }
    write!(formatter, "{}(", function.name)?;
    list(formatter, &function.parameters, |formatter, parameter| parameter.fmt(formatter))?;
    formatter.write_str(")")?;
    for FunctionDirective { name, numbers, texts } in &function.directives {
        formatter.write_str("\n")?;
        if name == &"pragma" {
            pragma(formatter, texts)?;
            continue;
        }
        write!(formatter, ".{name} ")?;
        list(formatter, numbers, |formatter, number| number.fmt(formatter))?;
    }
    Ok(())
}

fn statements(formatter: &mut Formatter<'_>, body: &[Statement<'_>]) -> fmt::Result {
    body.iter().try_for_each(|statement| writeln!(formatter, "{statement}"))
}

impl Display for Statement<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Instruction(instruction) => write!(formatter, "\t{instruction}"),
            Statement::Label(name) => write!(formatter, "{name}:"),
            Statement::Location(location) => location.fmt(formatter),
            Statement::Variables(declaration) => write!(formatter, "\t{declaration};"),
            Statement::Block(body) => {
                formatter.write_str("\t{\n")?;
                statements(formatter, body)?;
                formatter.write_str("\t}")
            }
            Statement::Pragma(texts) => pragma(formatter, texts),
            Statement::Targets(kind, names) => {
                formatter.write_str(match kind {
                    TargetKind::Branch => "\t.branchtargets ",
                    TargetKind::Call => "\t.calltargets ",
                })?;
                write!(formatter, "{};", names.join(", "))
            }
            Statement::Prototype(function) => {
                formatter.write_str("\t.callprototype ")?;
                head(formatter, function)?;
                formatter.write_str(";")
            }
        }
    }
}

impl Display for Location<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "\t.loc {} {} {}", self.file, self.line, self.column)?;
        if let Some((label, bytes)) = self.function_name {
            write!(formatter, ", function_name {label}")?;
            if bytes > 0 {
                write!(formatter, "+{bytes}")?;
            }
        }
        self.inlined_at.map_or(Ok(()), |(file, line, column)| write!(formatter, ", inlined_at {file} {line} {column}"))
    }
}

impl Display for Section<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, ".section {}\n{{", self.name)?;
        for data in &self.data {
            match data {
                SectionData::Label(name) => write!(formatter, "{name}:")?,
                SectionData::Values(scalar, values) => {
                    write!(formatter, "{scalar} ")?;
                    list(formatter, values, |formatter, value| match value {
                        SectionValue::Integer(integer) if integer.unsigned => integer.bits.fmt(formatter),
                        SectionValue::Integer(integer) => integer.value().fmt(formatter),
                        SectionValue::Address(name, bytes) => {
                            write!(formatter, "{name}")?;
                            if *bytes == 0 { Ok(()) } else { write!(formatter, "{bytes:+}") }
                        }
                        SectionValue::Distance(name, other) => write!(formatter, "{name}-{other}"),
                    })?;
                }
            }
            formatter.write_str("\n")?;
        }
        formatter.write_str("}")
    }
}

impl Display for Instruction<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if let Some(Guard { negated, predicate }) = self.guard {
            write!(formatter, "@{}{predicate} ", if negated { "!" } else { "" })?;
        }
        formatter.write_str(self.opcode)?;
        if !self.operands.is_empty() {
            formatter.write_str(" ")?;
            list(formatter, &self.operands, |formatter, operand| operand.fmt(formatter))?;
        }
        formatter.write_str(";")
    }
}

impl Display for Operand<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Name(name) => formatter.write_str(name),
            Operand::Component(name, component) => write!(formatter, "{name}.{component}"),
            Operand::Symbol(name, bytes) => write!(formatter, "{name}+{bytes}"),
            Operand::Integer(integer) => integer.fmt(formatter),
            Operand::Float(float) => float.fmt(formatter),
            Operand::Sink => formatter.write_str("_"),
            Operand::Not(name) => write!(formatter, "!{name}"),
            Operand::Pair(pair) => write!(formatter, "{}|{}", pair.0, pair.1),
            Operand::Vector(elements) => {
                formatter.write_str("{")?;
                list(formatter, elements, |formatter, element| element.fmt(formatter))?;
                formatter.write_str("}")
            }
            Operand::Address(address) => address.fmt(formatter),
            Operand::List(elements) => {
                formatter.write_str("(")?;
                list(formatter, elements, |formatter, element| element.fmt(formatter))?;
                formatter.write_str(")")
            }
        }
    }
}

impl Display for Address<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.base {
            AddressBase::Name(name) => write!(formatter, "[{name}")?,
            AddressBase::Absolute(bits) => {
                write!(formatter, "[{}", Integer { bits, unsigned: bits > i64::MAX as u64 })?;
            }
        }
        offset(formatter, self.offset)?;
        for rest in &self.rest {
            write!(formatter, ", {rest}")?;
        }
        formatter.write_str("]")
    }
}
