//! Where instructions come from: their lines in the PTX and in the source that was compiled.

use std::collections::HashMap;

use gpuemu_common::emulation::CodePlace;

use crate::code::Step;
use crate::registers::{RegisterWidth, Slot};
use crate::source::Source;
use crate::syntax::Module;

/// The place of every instruction, by its number.
#[derive(Debug, Clone, Default)]
pub struct Places {
    steps: Vec<Place>,
    files: HashMap<u64, String>,
    /// How far lines were counted: the offset, and its line.
    counted: (usize, usize),
}

#[derive(Debug, Clone)]
struct Place {
    instruction: String,
    ptx_line: usize,
    source: Option<(u64, u64)>,
    written: Vec<(String, Slot, RegisterWidth)>,
}

impl Places {
    pub(super) fn of(module: &Module<'_>) -> Self {
        let files = module.items.iter().filter_map(|item| match item {
            crate::syntax::Item::File(file) => Some((file.number, file.name.to_string())),
            _ => None,
        });
        Self { steps: Vec::new(), files: files.collect(), counted: (0, 1) }
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
        // What was inlined from a library belongs to the line that called it: that one is the user's own.
        let line_of = |location: &crate::syntax::Location<'_>| {
            location.inlined_at.map_or((location.file, location.line), |(file, line, _)| (file, line))
        };
        let place = step.location.map(line_of).filter(|(_, line)| *line > 0);
        self.steps.push(Place { instruction, ptx_line: self.counted.1, source: place, written: Vec::new() });
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
        self.steps.push(last.unwrap_or(Place { instruction: String::new(), ptx_line: 0, source: None, written: Vec::new() }));
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
