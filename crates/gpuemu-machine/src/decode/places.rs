//! Where instructions come from: their lines in the PTX and in the source that was compiled.

use std::collections::HashMap;
use std::ops::Range;

use gpuemu_model::emulation::CodePlace;
use gpuemu_ptx::code::Step;
use gpuemu_ptx::source::Source;
use gpuemu_ptx::syntax::{Item, Location, Module};
use memchr::memmem;

use crate::registers::{RegisterWidth, Slot};

/// The place of every instruction, by its number.
#[derive(Debug, Clone, Default)]
pub struct Places {
    steps: Vec<Place>,
    files: HashMap<u64, String>,
    /// How far lines were counted: the offset, and its line.
    counted: (usize, usize),
    /// Inline assembly, by offsets.
    inline: Vec<Range<usize>>,
    /// The last inline assembly, by its number, and its line in the source.
    inside: Option<(usize, Option<SourceLine>)>,
    /// Lines of the source that inlined code belongs to.
    callers: HashMap<(u64, u64, u64), SourceLine>,
}

/// A file, by its number, and a line.
type SourceLine = (u64, u64);

#[derive(Debug, Clone)]
struct Place {
    instruction: String,
    ptx_line: usize,
    source: Option<SourceLine>,
    written: Vec<(String, Slot, RegisterWidth)>,
}

impl Places {
    pub(super) fn of(source: &Source, module: &Module<'_>) -> Self {
        let files = module.items.iter().filter_map(|item| match item {
            Item::File(file) => Some((file.number, file.name.to_string())),
            _ => None,
        });
        Self { files: files.collect(), counted: (0, 1), inline: inline_assembly(&source.text), ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Notes the place of the next instruction.
    pub(super) fn next(&mut self, source: &Source, step: &Step<'_, '_>) {
        let span = step.instruction.span;
        let start = (span.start as usize).min(source.text.len());
        // Instructions come in order but for those of functions: lines are counted on from the last.
        let (from, line) = if start >= self.counted.0 { self.counted } else { (0, 1) };
        let newlines = source.text.as_bytes()[from..start].iter().filter(|byte| **byte == b'\n').count();
        self.counted = (start, line + newlines);
        let text = source.text.get(start..span.end as usize).unwrap_or_default();
        let instruction = text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches(';').to_string();
        let place = self.source_line(start, step.location);
        self.steps.push(Place { instruction, ptx_line: self.counted.1, source: place, written: Vec::new() });
    }

    /// The line of the source that an instruction at an offset belongs to.
    fn source_line(&mut self, offset: usize, location: Option<&Location<'_>>) -> Option<SourceLine> {
        let number = self.inline.partition_point(|range| range.end <= offset);
        let inside = self.inline.get(number).filter(|range| range.contains(&offset)).map(|_| number);
        // Within inline assembly the compiler counts lines on from the one that it is for: the first is the right one.
        if let (Some(number), Some((last, line))) = (inside, self.inside)
            && number == last
        {
            return line;
        }
        // What was inlined from a library belongs to the line that called it: that one is the user's own.
        let line = location.filter(|location| location.line > 0).map(|location| {
            let own = (location.file, location.line);
            let line = location
                .inlined_at
                .map_or(own, |caller| self.callers.get(&caller).copied().unwrap_or((caller.0, caller.1)));
            self.callers.insert((location.file, location.line, location.column), line);
            line
        });
        self.inside = inside.map(|number| (number, line));
        line
    }

    /// Notes a register that the last instruction writes.
    pub(super) fn writes(&mut self, name: &str, slot: Slot, width: RegisterWidth) {
        if let Some(place) = self.steps.last_mut() {
            place.written.push((name.to_string(), slot, width));
        }
    }

    /// The registers that an instruction writes.
    pub fn written(&self, step: u32) -> &[(String, Slot, RegisterWidth)] {
        self.steps.get(step as usize).map_or(&[], |place| &place.written)
    }

    /// The next instruction is of the same place.
    pub(super) fn repeat(&mut self) {
        let last = self.steps.last().cloned();
        self.steps.push(last.unwrap_or(Place {
            instruction: String::new(),
            ptx_line: 0,
            source: None,
            written: Vec::new(),
        }));
    }

    /// The place of an instruction.
    pub fn place(&self, step: u32) -> CodePlace {
        match self.steps.get(step as usize) {
            Some(place) => CodePlace {
                instruction: place.instruction.clone(),
                ptx_line: place.ptx_line,
                file: place.source.and_then(|(file, _)| self.files.get(&file).cloned()),
                line: place.source.map(|(_, line)| line),
            },
            None => CodePlace { instruction: String::new(), ptx_line: 0, file: None, line: None },
        }
    }
}

/// Where inline assembly stands, which LLVM marks by comments.
fn inline_assembly(text: &str) -> Vec<Range<usize>> {
    let ends: Vec<usize> = memmem::find_iter(text.as_bytes(), "// end inline asm").collect();
    memmem::find_iter(text.as_bytes(), "// begin inline asm")
        .filter_map(|start| {
            let end = ends[ends.partition_point(|end| *end < start)..].first()?;
            Some(start..*end)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::Program;
    use gpuemu_ptx::source::Source;

    fn lines(body: &str) -> Vec<Option<u64>> {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n.reg .b32 %r<9>;\n{body}\nret;\n}}\n.file 1 \"k.py\"\n.file 2 \"library.py\"\n"
        );
        let program = Program::decode(&Source::new("k.ptx", text), None).unwrap();
        let places = &program.decoded().places;
        (0..places.len() as u32).map(|step| places.place(step).line).collect()
    }

    #[test]
    fn inline_assembly_is_of_the_line_it_is_for() {
        let found = lines(
            ".loc 1 8 1\nmov.u32 %r1, 1;\n// begin inline asm\n.loc 1 9 1\nmov.u32 %r2, 2;\n.loc 1 10 1\nmov.u32 %r3, 3;\n// end inline asm\n\
             .loc 1 10 1\nmov.u32 %r4, 4;",
        );
        assert_eq!(found[..4], [Some(8), Some(9), Some(9), Some(10)]);
    }

    #[test]
    fn what_was_inlined_is_of_the_line_that_called_it() {
        let found = lines(
            ".loc 1 20 3\nmov.u32 %r1, 1;\n.loc 2 5 1, function_name $L__info_string0, inlined_at 1 21 7\nmov.u32 %r2, 2;\n\
             .loc 2 90 4, function_name $L__info_string0, inlined_at 2 5 1\nmov.u32 %r3, 3;",
        );
        assert_eq!(found[..3], [Some(20), Some(21), Some(21)]);
    }
}
