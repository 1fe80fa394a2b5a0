//! `nvdisasm`: the instructions of each function, where there is no `cuobjdump` to print them.

use std::collections::BTreeMap;

use super::sass::{Counter, OpcodeCounts};

/// Counts the instructions of `nvdisasm -c`, by function.
pub fn read_sass(text: &str) -> BTreeMap<String, OpcodeCounts> {
    let mut counter = Counter::default();
    for line in text.lines() {
        // `.sectioninfo` is something else.
        let section = line.trim_start().strip_prefix(".section").filter(|rest| rest.starts_with(char::is_whitespace));
        let section = section.map(str::trim_start);
        match section.map(|section| section.strip_prefix(".text.").and_then(|rest| rest.split(',').next())) {
            Some(Some(function)) => counter.begin(function.trim()),
            Some(None) => counter.end(),
            None => counter.line(line),
        }
    }
    counter.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_what_cuobjdump_prints_of_the_same_code() {
        let text = include_str!("../../tests/data/tools/nvdisasm_13.4_two_entries_sm_80.txt");
        let other = include_str!("../../tests/data/tools/cuobjdump_13.4_sass_two_entries_sm_80.txt");
        let functions = read_sass(text);
        assert_eq!(functions, crate::tools::cuobjdump::read_sass(other));
        assert_eq!(functions.len(), 2);
    }

    #[test]
    fn a_section_of_data_ends_a_function() {
        let text = ".section\t.text.k,\"ax\",@progbits\n/*0000*/ EXIT ;\n.section\t.nv.info\n/*0010*/ MOV ;\n";
        assert_eq!(read_sass(text)["k"], BTreeMap::from([("EXIT".to_string(), 1)]));
    }
}
