//! Machine instructions counted by opcode, in the form that all of NVIDIA's disassemblers print them in.

use std::collections::BTreeMap;

/// Opcodes of one function, as in `LDG.E.128`, and how often each occurs.
pub type OpcodeCounts = BTreeMap<String, u64>;

/// Counts the instructions of one function after the other.
///
/// `NOP`s after the last instruction of a function are not counted: they only fill its room up.
#[derive(Debug, Default)]
pub(super) struct Counter {
    functions: BTreeMap<String, OpcodeCounts>,
    current: Option<(String, OpcodeCounts)>,
    pending_padding: u64,
}

const PADDING: &str = "NOP";

impl Counter {
    /// What follows is of this function.
    pub(super) fn begin(&mut self, function: &str) {
        self.end();
        self.current = Some((function.to_string(), OpcodeCounts::new()));
    }

    /// What follows is of no function.
    pub(super) fn end(&mut self) {
        if let Some((name, counts)) = self.current.take() {
            self.functions.insert(name, counts);
        }
        self.pending_padding = 0;
    }

    /// A line: an instruction, or something else that does not count.
    pub(super) fn line(&mut self, line: &str) {
        let (Some((_, counts)), Some(opcode)) = (&mut self.current, opcode_of(line)) else {
            return;
        };
        if opcode == PADDING {
            self.pending_padding += 1;
            return;
        }
        if self.pending_padding > 0 {
            *counts.entry(PADDING.to_string()).or_default() += self.pending_padding;
            self.pending_padding = 0;
        }
        match counts.get_mut(opcode) {
            Some(count) => *count += 1,
            None => {
                counts.insert(opcode.to_string(), 1);
            }
        }
    }

    pub(super) fn finish(mut self) -> BTreeMap<String, OpcodeCounts> {
        self.end();
        self.functions
    }
}

/// The opcode of "/*00d0*/  @!P1 BRA `(.L_x_0) ;", without its predicate.
fn opcode_of(line: &str) -> Option<&str> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    if address.is_empty() || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let instruction = rest.trim_start_matches([' ', '\t', '{']);
    let instruction = match instruction.strip_prefix('@') {
        Some(predicated) => predicated.split_once(char::is_whitespace)?.1.trim_start(),
        None => instruction,
    };
    let opcode = instruction.split(|character: char| character.is_whitespace() || character == ';').next()?;
    opcode.starts_with(|character: char| character.is_ascii_uppercase()).then_some(opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_read_without_predicates_and_encodings() {
        let cases = [
            ("        /*00d0*/              @!P1 BRA `(.L_x_0) ;", Some("BRA")),
            ("        /*0bf0*/              @!UP0 UIADD3 UR4, UR4, 0x1, URZ ; /* 0x0 */", Some("UIADD3")),
            ("        /*01f0*/              @P2 LDG.E.128 R4, [R2.64] ;  /* 0x0000000402041981 */", Some("LDG.E.128")),
            ("        /*05b0*/                   NOP;                    /* 0x0000000000007918 */", Some("NOP")),
            ("                                                           /* 0x000fe40000000f00 */", None),
            (".L_x_1:", None),
            ("        .size           k,(.L_x_3 - k)", None),
            ("/*0000*/", None),
            ("/*0000*/ @P0", None),
            ("/**/ MOV R1, R2 ;", None),
        ];
        for (line, expected) in cases {
            assert_eq!(opcode_of(line), expected, "{line}");
        }
    }

    #[test]
    fn only_padding_at_the_end_is_left_out() {
        let mut counter = Counter::default();
        counter.line("/*0000*/ LOST ;");
        counter.begin("k");
        for opcode in ["NOP", "MOV", "NOP", "EXIT", "MOV", "NOP", "NOP"] {
            counter.line(&format!("/*0000*/ {opcode};"));
        }
        counter.begin("empty");
        counter.line("/*0000*/ NOP;");
        let functions = counter.finish();
        let counts = [("EXIT", 1), ("MOV", 2), ("NOP", 2)].map(|(opcode, count)| (opcode.to_string(), count));
        assert_eq!(functions["k"], BTreeMap::from(counts));
        assert_eq!(functions["empty"], OpcodeCounts::new());
    }
}
