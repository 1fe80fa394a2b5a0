//! `cuobjdump`: what the machine code of each function needs, and its instructions.

use std::collections::BTreeMap;

use super::sass::{Counter, OpcodeCounts};

/// What a function needs, by `--dump-resource-usage`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Registers of a thread.
    pub registers: Option<u64>,
    /// Bytes of a thread's stack, spilled registers included.
    pub stack_bytes: Option<u64>,
    /// Bytes of static shared memory. From `sm_90` on a block that has any has 1,024 more here, which the system keeps
    /// for itself.
    pub shared_bytes: Option<u64>,
    /// Bytes of local memory beside the stack.
    pub local_bytes: Option<u64>,
    /// Bytes of constant memory of the function's own, parameters included.
    pub constant_bytes: Option<u64>,
}

/// Reads the text of `--dump-resource-usage`, by function.
pub fn read_resource_usage(text: &str) -> BTreeMap<String, ResourceUsage> {
    let mut functions = BTreeMap::new();
    let mut function = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("Function ").and_then(|rest| rest.strip_suffix(':')) {
            function = Some(name);
        } else if line.starts_with("REG:")
            && let Some(name) = function.take()
        {
            functions.insert(name.to_string(), usage_of(line));
        }
    }
    functions
}

fn usage_of(line: &str) -> ResourceUsage {
    let mut usage = ResourceUsage::default();
    for (name, value) in line.split_whitespace().filter_map(|part| part.split_once(':')) {
        let value = value.parse::<u64>().ok();
        match name {
            "REG" => usage.registers = value,
            "STACK" => usage.stack_bytes = value,
            "SHARED" => usage.shared_bytes = value,
            "LOCAL" => usage.local_bytes = value,
            // Several banks are added up.
            name if name.starts_with("CONSTANT[") => {
                usage.constant_bytes =
                    value.map(|bytes| bytes.saturating_add(usage.constant_bytes.unwrap_or_default()));
            }
            _ => {}
        }
    }
    usage
}

/// Counts the instructions of `--dump-sass`, by function.
pub fn read_sass(text: &str) -> BTreeMap<String, OpcodeCounts> {
    let mut counter = Counter::default();
    for line in text.lines() {
        match line.trim_start().strip_prefix("Function : ") {
            Some(name) => counter.begin(name.trim()),
            None => counter.line(line),
        }
    }
    counter.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read_by_function() {
        let text = include_str!("../../tests/data/tools/cuobjdump_13.4_resource_usage_two_entries_sm_80.txt");
        let usage = |stack, shared| ResourceUsage {
            registers: Some(32),
            stack_bytes: Some(stack),
            shared_bytes: Some(shared),
            local_bytes: Some(0),
            constant_bytes: Some(364),
        };
        let expected = [("first".to_string(), usage(256, 1024)), ("second".to_string(), usage(944, 0))];
        assert_eq!(read_resource_usage(text), BTreeMap::from(expected));
    }

    #[test]
    fn banks_are_added_and_what_is_not_there_is_not_known() {
        let text = " Function k:\n  REG:8 STACK:x CONSTANT[0]:100 CONSTANT[2]:20\n  REG:99\n";
        let expected = ResourceUsage { registers: Some(8), constant_bytes: Some(120), ..ResourceUsage::default() };
        assert_eq!(read_resource_usage(text), BTreeMap::from([("k".to_string(), expected)]));
    }

    #[test]
    fn instructions_are_counted_by_function() {
        let functions = read_sass(include_str!("../../tests/data/tools/cuobjdump_13.4_sass_two_entries_sm_80.txt"));
        assert_eq!(functions.keys().collect::<Vec<_>>(), ["first", "second"]);
        let count = |function: &str, opcode: &str| functions[function].get(opcode).copied();
        assert_eq!((count("first", "LDS"), count("second", "LDS")), (Some(1), None));
        assert_eq!((count("second", "EXIT"), count("second", "NOP")), (Some(2), None));
    }
}
