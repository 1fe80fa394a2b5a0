//! The opcodes of PTX, without their modifiers.

/// Every opcode that is known of the PTX ISA up to version 9.4, sorted.
pub const OPCODES: &[&str] = &[
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "applypriority",
    "atom",
    "bar",
    "barrier",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "bra",
    "brev",
    "brkpt",
    "brx",
    "call",
    "clusterlaunchcontrol",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "cp",
    "createpolicy",
    "cvt",
    "cvta",
    "discard",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "exit",
    "fence",
    "fma",
    "fns",
    "getctarank",
    "griddepcontrol",
    "isspacep",
    "istypep",
    "ld",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "membar",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "multimem",
    "nanosleep",
    "neg",
    "not",
    "or",
    "pmevent",
    "popc",
    "prefetch",
    "prefetchu",
    "prmt",
    "rcp",
    "red",
    "redux",
    "rem",
    "ret",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setmaxnreg",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "spcompress",
    "spdecompress",
    "sqrt",
    "st",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "sub",
    "subc",
    "suld",
    "suq",
    "sured",
    "sust",
    "szext",
    "tanh",
    "tcgen05",
    "tensormap",
    "testp",
    "tex",
    "tld4",
    "trap",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vote",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "wgmma",
    "wmma",
    "xor",
];

/// Slots of the table below: twice the opcodes and more, so that most words need one look.
const SLOTS: usize = 512;

/// Where each opcode is, by what [`slot`] says of it; the next free slot where that is taken. 0 is free.
const TABLE: [u8; SLOTS] = table();

const fn table() -> [u8; SLOTS] {
    let mut table = [0; SLOTS];
    let mut place = 0;
    while place < OPCODES.len() {
        let mut at = slot(OPCODES[place].as_bytes());
        while table[at] != 0 {
            at = (at + 1) % SLOTS;
        }
        table[at] = place as u8 + 1;
        place += 1;
    }
    table
}

const fn slot(word: &[u8]) -> usize {
    let (mut hash, mut place) = (word.len() as u32, 0);
    while place < word.len() && place < 8 {
        hash = hash.wrapping_mul(31) ^ word[place] as u32;
        place += 1;
    }
    (hash.wrapping_mul(0x9E37_79B9) >> 23) as usize
}

/// Whether a word is an opcode. Asked of every instruction: a search by halves took a sixth of all parsing.
pub fn is_opcode(word: &str) -> bool {
    let mut at = slot(word.as_bytes());
    while let Some(place) = TABLE.get(at).copied().filter(|place| *place != 0) {
        if OPCODES.get(usize::from(place) - 1) == Some(&word) {
            return true;
        }
        at = (at + 1) % SLOTS;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_sorted_and_found() {
        assert!(OPCODES.is_sorted());
        assert!(OPCODES.len() < SLOTS / 2 && OPCODES.iter().all(|opcode| is_opcode(opcode)));
        assert!(!is_opcode("") && !is_opcode("move") && !is_opcode("MOV"));
    }
}
