//! Figures of an entry, and why some are missing.

use gpuemu_model::artifact::{CompiledMetrics, EntryMetrics, KernelArtifact};

/// What was measured, for each architecture; measures of PTX have one figure, of no architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    pub known: Vec<(String, u64)>,
    /// Why some or all are missing.
    pub missing: Vec<String>,
}

impl Figures {
    /// A figure of the PTX.
    pub(crate) fn one(figure: u64) -> Self {
        Self { known: vec![(String::new(), figure)], missing: Vec::new() }
    }

    pub(crate) fn unknown(why: &str) -> Self {
        Self { known: Vec::new(), missing: vec![why.to_string()] }
    }

    /// A figure of machine code. An architecture that was asked for and has none is missing: `word` is what the
    /// reasons that it was not measured are found by.
    pub(crate) fn of_machine(
        artifact: &KernelArtifact,
        entry: &EntryMetrics,
        word: &str,
        figure: impl Fn(&CompiledMetrics) -> Option<u64>,
    ) -> Self {
        let known = entry.compiled.iter().filter_map(|compiled| {
            let architecture = compiled.architecture.clone();
            Some((architecture, figure(compiled)?))
        });
        let mut figures = Self { known: known.collect(), missing: reasons(artifact, &entry.entry, word) };
        if figures.missing.is_empty() {
            let without = entry.compiled.iter().filter(|compiled| figure(compiled).is_none());
            figures.missing = without.map(|compiled| format!("not measured for {}", compiled.architecture)).collect();
            if entry.compiled.is_empty() {
                figures.missing.push("the PTX was not assembled".to_string());
            }
        }
        figures
    }

    /// The largest; the first of equal ones, so that the order of architectures decides.
    pub(crate) fn largest(&self) -> Option<(&str, u64)> {
        let known = self.known.iter().map(|(architecture, figure)| (architecture.as_str(), *figure));
        known.reduce(|largest, next| if next.1 > largest.1 { next } else { largest })
    }

    /// The smallest; the first of equal ones.
    pub(crate) fn smallest(&self) -> Option<(&str, u64)> {
        let known = self.known.iter().map(|(architecture, figure)| (architecture.as_str(), *figure));
        known.reduce(|smallest, next| if next.1 < smallest.1 { next } else { smallest })
    }
}

/// Why something was not measured of an entry, in the words of whoever tried. What is said of another entry is left
/// out.
fn reasons(artifact: &KernelArtifact, entry: &str, word: &str) -> Vec<String> {
    let others = |what: &str| {
        let of_other = |other: &EntryMetrics| {
            other.entry != entry && what.strip_suffix(other.entry.as_str()).is_some_and(|rest| rest.ends_with(" of "))
        };
        artifact.entries.iter().any(of_other)
    };
    let concerned =
        artifact.not_measured.iter().filter(|missing| missing.what.contains(word) && !others(&missing.what));
    concerned.map(|missing| missing.why.clone()).collect()
}

#[cfg(test)]
mod tests {
    use crate::tools::measure::FIGURES;

    #[test]
    fn reasons_are_found_by_words_that_the_tools_use() {
        for word in ["registers", "spills", "stack", "barriers"] {
            assert!(FIGURES.contains(word), "{word}");
        }
    }
}
