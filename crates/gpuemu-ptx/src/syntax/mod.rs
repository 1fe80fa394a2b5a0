//! PTX as it is written: its parsed form, how it is read and how it is written back.

mod module;
mod opcodes;
mod parse;
mod print;
mod types;

pub use module::*;
pub use opcodes::{OPCODES, is_opcode};
pub use parse::{SyntaxError, parse};
pub use types::{ScalarType, StateSpace, VectorWidth};
