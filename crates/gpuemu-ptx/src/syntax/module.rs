//! The parsed form of a PTX module. Names are parts of the text that was parsed.

use super::types::{ScalarType, StateSpace, VectorWidth};

/// Bytes of the text that something was read from.
///
/// All spans are equal: where something was written is not part of what was written, so two modules are
/// equal if they say the same.
#[derive(Debug, Clone, Copy, Default, Eq)]
pub struct Span {
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Module<'a> {
    /// `.version`: major and minor.
    pub version: (u32, u32),
    /// `.target`: the architecture, then options.
    pub target: Vec<&'a str>,
    /// `.address_size`, if given.
    pub address_size: Option<u32>,
    /// The rest, in order.
    pub items: Vec<Item<'a>>,
}

impl<'a> Module<'a> {
    /// The functions that can be launched and have code, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Function<'a>> {
        self.functions().filter(|function| function.kind == FunctionKind::Entry && function.body.is_some())
    }

    /// All functions, in order; one may be declared before it is defined.
    pub fn functions(&self) -> impl Iterator<Item = &Function<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }

    /// The definition of a function.
    pub fn defined(&self, name: &str) -> Option<&Function<'a>> {
        self.functions().find(|function| function.name == name && function.body.is_some())
    }

    /// Variables outside of functions, in order.
    pub fn variables(&self) -> impl Iterator<Item = &Declaration<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Variables(declaration) => Some(declaration),
            _ => None,
        })
    }

    /// The name that `.file` gives to a number.
    pub fn file(&self, number: u64) -> Option<&'a str> {
        self.items.iter().find_map(|item| match item {
            Item::File(file) if file.number == number => Some(file.name),
            _ => None,
        })
    }

    /// The architecture, as in `sm_80`.
    pub fn architecture(&self) -> &'a str {
        self.target.first().copied().unwrap_or_default()
    }
}

/// Something outside of functions.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<'a> {
    Variables(Declaration<'a>),
    /// A function, declared or defined.
    Function(Function<'a>),
    /// `.file`
    File(File<'a>),
    /// `.section`
    Section(Section<'a>),
    /// `.pragma`
    Pragma(Vec<&'a str>),
    /// `.alias` of the first name for the second.
    Alias(&'a str, &'a str),
}

/// Who else sees a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum Linkage {
    Extern,
    Visible,
    Weak,
    Common,
}

/// Variables of one kind: `.reg .b32 %r<4>, %x;`
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration<'a> {
    /// Where it was written.
    pub span: Span,
    /// Who else sees it.
    pub linkage: Option<Linkage>,
    pub space: StateSpace,
    /// The bank of `.const[n]`.
    pub bank: Option<u32>,
    /// What `.attribute(...)` says.
    pub attributes: Vec<Attribute<'a>>,
    /// `.align`, in bytes.
    pub alignment: Option<u64>,
    /// Elements of a vector.
    pub vector: Option<VectorWidth>,
    /// The type of a value.
    pub scalar: ScalarType,
    /// What a parameter points to, where it says so with `.ptr`.
    pub pointer: Option<Pointer>,
    pub variables: Vec<Variable<'a>>,
}

impl Declaration<'_> {
    /// Bytes of one element; 0 where it has none in memory.
    pub fn element_bytes(&self) -> u64 {
        self.scalar.bytes().unwrap_or(0) * self.vector.map_or(1, VectorWidth::elements)
    }

    /// Bytes that a variable of this declaration has, if they fit a u64 and its length is known.
    pub fn bytes(&self, variable: &Variable<'_>) -> Option<u64> {
        let mut bytes = self.element_bytes();
        for dimension in &variable.dimensions {
            bytes = bytes.checked_mul((*dimension)?)?;
        }
        Some(bytes)
    }

    /// Alignment in bytes: the one that is written, or that of an element.
    pub fn alignment_bytes(&self) -> u64 {
        self.alignment.unwrap_or_else(|| self.element_bytes()).max(1)
    }
}

/// One name of a declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable<'a> {
    /// The name; without the number where it stands for many.
    pub name: &'a str,
    /// `%r<4>` is %r0 to %r3.
    pub count: Option<u32>,
    /// Dims of an array; the first may be left open.
    pub dimensions: Vec<Option<u64>>,
    /// What it holds at first.
    pub initialiser: Option<Initialiser<'a>>,
}

/// What `.ptr` says of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// Where it points to; anywhere if not said.
    pub space: Option<StateSpace>,
    /// Alignment of what it points to.
    pub alignment: Option<u64>,
}

/// A word in `.attribute(...)`, as `.managed` or `.unified(1, 2)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute<'a> {
    /// The word, without its dot.
    pub name: &'a str,
    pub arguments: Vec<Integer>,
}

/// What a variable holds at first.
#[derive(Debug, Clone, PartialEq)]
pub enum Initialiser<'a> {
    Integer(Integer),
    /// A number with a point.
    Float(Float),
    /// The address of something.
    Symbol(Symbol<'a>),
    List(Vec<Initialiser<'a>>),
}

/// The address of a variable or function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol<'a> {
    pub name: &'a str,
    pub offset: i64,
    /// Whether the address is one in the generic space.
    pub generic: bool,
    /// The bits that are taken of it, as in `0xFF00(name)`.
    pub mask: Option<u64>,
}

/// A whole number. PTX computes with 64 bits; a number is signed unless it says `U` or needs the top bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Integer {
    pub bits: u64,
    pub unsigned: bool,
}

impl Integer {
    pub const fn signed(value: i64) -> Self {
        Self { bits: value as u64, unsigned: false }
    }

    /// Its value as a signed number.
    pub const fn value(self) -> i64 {
        self.bits as i64
    }
}

/// A number with a point, by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Float {
    /// `0f3F800000`
    Single(u32),
    /// `0d3FF0000000000000`, and every decimal number.
    Double(u64),
}

impl Float {
    pub fn value(self) -> f64 {
        match self {
            Float::Single(bits) => f64::from(f32::from_bits(bits)),
            Float::Double(bits) => f64::from_bits(bits),
        }
    }
}

/// Whether a function can be launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`
    Entry,
    /// `.func`
    Function,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Function<'a> {
    /// Where its head was written.
    pub span: Span,
    /// Who else sees it.
    pub linkage: Option<Linkage>,
    /// Whether it can be launched.
    pub kind: FunctionKind,
    /// What `.attribute(...)` says.
    pub attributes: Vec<Attribute<'a>>,
    pub results: Vec<Declaration<'a>>,
    pub name: &'a str,
    /// What it takes: one declaration with one variable each.
    pub parameters: Vec<Declaration<'a>>,
    /// `.reqntid` and the like.
    pub directives: Vec<FunctionDirective<'a>>,
    /// Its code; none where it is only declared.
    pub body: Option<Vec<Statement<'a>>>,
}

impl Function<'_> {
    /// The numbers of a directive, such as `reqntid`.
    pub fn directive(&self, name: &str) -> Option<&[u64]> {
        self.directives.iter().find(|directive| directive.name == name).map(|directive| directive.numbers.as_slice())
    }
}

/// A directive between a function's head and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDirective<'a> {
    /// The word, without its dot.
    pub name: &'a str,
    pub numbers: Vec<u64>,
    /// Its texts (`.pragma`).
    pub texts: Vec<&'a str>,
}

/// Something in a function.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement<'a> {
    Instruction(Instruction<'a>),
    /// A place to jump to.
    Label(&'a str),
    /// `.loc`: where the following instructions come from.
    Location(Location<'a>),
    Variables(Declaration<'a>),
    /// `{ ... }`: names in it are its own.
    Block(Vec<Statement<'a>>),
    /// `.pragma`
    Pragma(Vec<&'a str>),
    /// `label: .branchtargets ...;` or `.calltargets`: the names.
    Targets(TargetKind, Vec<&'a str>),
    /// `label: .callprototype ...;`
    Prototype(Box<Function<'a>>),
}

/// What a list of targets is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum TargetKind {
    Branch,
    Call,
}

/// `.loc`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location<'a> {
    /// Number of the `.file`.
    pub file: u64,
    /// Line, from 1; 0 if none.
    pub line: u64,
    pub column: u64,
    /// Label of the name of the function that was inlined, and bytes after it.
    pub function_name: Option<(&'a str, u64)>,
    /// Where it was inlined: file, line, column.
    pub inlined_at: Option<(u64, u64, u64)>,
}

/// `.file`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File<'a> {
    pub number: u64,
    pub name: &'a str,
    /// Time stamp and size.
    pub stamp: Option<(u64, u64)>,
}

/// `.section`: data for debuggers.
#[derive(Debug, Clone, PartialEq)]
pub struct Section<'a> {
    /// Its name, with its dot.
    pub name: &'a str,
    pub data: Vec<SectionData<'a>>,
}

/// Something in a section.
#[derive(Debug, Clone, PartialEq)]
pub enum SectionData<'a> {
    Label(&'a str),
    /// Numbers or addresses of a type.
    Values(ScalarType, Vec<SectionValue<'a>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionValue<'a> {
    Integer(Integer),
    /// A label or a section's name, and bytes after it.
    Address(&'a str, i64),
    /// The distance of the first label from the second.
    Distance(&'a str, &'a str),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Instruction<'a> {
    /// Where it was written, its guard included.
    pub span: Span,
    /// Only lanes where this holds execute it.
    pub guard: Option<Guard<'a>>,
    /// The opcode with all modifiers, as in `ld.global.v4.b32`.
    pub opcode: &'a str,
    pub operands: Vec<Operand<'a>>,
}

impl<'a> Instruction<'a> {
    /// The opcode without modifiers, as in `ld`.
    pub fn base(&self) -> &'a str {
        self.opcode.split('.').next().unwrap_or_default()
    }

    /// The modifiers, without their dots.
    pub fn modifiers(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.opcode.split('.').skip(1)
    }

    /// Whether a modifier is there; `shared` also stands for `shared::cta`.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers()
            .any(|word| word.strip_prefix(modifier).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")))
    }

    /// The types among the modifiers, in order.
    pub fn types(&self) -> impl Iterator<Item = ScalarType> + use<'a> {
        self.modifiers().filter_map(ScalarType::from_name)
    }

    /// How many of the first operands are written.
    pub fn results(&self) -> usize {
        let none = match self.base() {
            "st" | "red" | "bar" | "barrier" | "bra" | "brx" | "ret" | "exit" | "trap" | "brkpt" | "membar"
            | "fence" | "prefetch" | "prefetchu" | "cp" | "stmatrix" | "nanosleep" | "pmevent" | "discard"
            | "applypriority" | "griddepcontrol" | "setmaxnreg" | "sust" | "sured" | "stackrestore" => true,
            "mbarrier" => {
                !(self.has("arrive") || self.has("test_wait") || self.has("try_wait") || self.has("pending_count"))
                    || matches!(self.operands.first(), Some(Operand::Address(_)))
            }
            // (results), function, (arguments): only the first list is written, and it may be missing.
            "call" => !matches!(self.operands.as_slice(), [Operand::List(_), _, ..]),
            "multimem" => !self.has("ld_reduce"),
            "wmma" => self.has("store"),
            "wgmma" => !self.has("mma_async"),
            "tcgen05" => !self.has("ld"),
            "clusterlaunchcontrol" => self.has("try_cancel"),
            "tensormap" => true,
            _ => false,
        };
        let reducing = matches!(self.base(), "bar" | "barrier") && self.has("red");
        usize::from((!none || reducing) && !self.operands.is_empty())
    }
}

/// `@%p` or `@!%p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard<'a> {
    /// Whether it must not hold.
    pub negated: bool,
    pub predicate: &'a str,
}

/// What an instruction is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// A register, variable, label or function.
    Name(&'a str),
    /// One element of a vector register or special register, as in `%tid.x`: the name, then the element.
    Component(&'a str, &'a str),
    /// The address of a variable and bytes after it.
    Symbol(&'a str, i64),
    Integer(Integer),
    /// A number with a point.
    Float(Float),
    /// `_`: the result is not wanted.
    Sink,
    /// `!%p`
    Not(&'a str),
    /// `%p|%q`
    Pair(Box<(Operand<'a>, Operand<'a>)>),
    /// `{%r1, %r2}`
    Vector(Vec<Operand<'a>>),
    /// `[%rd1+4]`
    Address(Address<'a>),
    /// `(%r1, %r2)` of a call.
    List(Vec<Operand<'a>>),
}

/// A place in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Address<'a> {
    pub base: AddressBase<'a>,
    pub offset: i64,
    /// What stands after a comma: coordinates in a tensor or texture, a sampler.
    pub rest: Vec<Operand<'a>>,
}

/// What an address starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressBase<'a> {
    /// A register or a variable.
    Name(&'a str),
    Absolute(u64),
}
