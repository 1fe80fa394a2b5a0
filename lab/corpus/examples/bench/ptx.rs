//! Reading PTX, beside regular expressions and beside a bare pass over the lines.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use gpuemu_ptx::{Source, metrics};

use crate::numpy;
use crate::row::Row;
use crate::timing::median_seconds;

/// The real kernels in the repository.
const FOLDERS: [&str; 3] = ["triton_sm80", "triton_sm90", "nvrtc_sm80"];

/// What is usually done: a pattern for registers, one for each kind of memory, one for each instruction.
const PATTERNS: &str = r#"
import re
patterns = [re.compile(text, re.M) for text in (
    r"\.reg\s+\.(\w+)\s+%\w+<(\d+)>", r"st\.local", r"ld\.local", r"\.shared\s+\.align\s+\d+\s+\.b8\s+\w+\[(\d+)\]",
    r"\.local\s+\.align\s+\d+\s+\.b8\s+\w+\[(\d+)\]", r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s")]
"#;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/gpuemu-ptx/tests/data/ptx");
    let mut files: Vec<PathBuf> = Vec::new();
    for name in FOLDERS {
        let Ok(entries) = std::fs::read_dir(folder.join(name)) else { continue };
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let sources: Vec<Source> = files.iter().filter_map(|file| Source::read(file).ok()).collect();
    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    let rate = |seconds: f64| bytes as f64 / seconds / 1e6;

    let parse = median_seconds(41, || {
        for source in &sources {
            let _ = black_box(source.parse());
        }
    });
    let measure = median_seconds(21, || {
        for source in &sources {
            if let Ok(module) = source.parse() {
                let _ = black_box(metrics::measure(source, &module));
            }
        }
    });
    let lines = median_seconds(41, || {
        for source in &sources {
            black_box(source.text.lines().filter(|line| line.trim_start().starts_with('.')).count());
        }
    });
    let listed: Vec<String> = files.iter().map(|file| format!("{:?}", file.display().to_string())).collect();
    let setup = format!("{PATTERNS}texts = [open(name).read() for name in [{}]]", listed.join(", "));
    let statement = "[pattern.findall(text) for text in texts for pattern in patterns]";
    let patterns = numpy::median_seconds(&setup, statement, 5);

    let note = format!("{} kernels, {:.2} MB, one thread", sources.len(), bytes as f64 / 1e6);
    let peer = "Python, one regular expression a measure";
    vec![
        Row::rate("parse PTX", "MB/s", rate(parse), patterns.map(rate), peer, &note),
        Row::rate("parse PTX and measure every entry", "MB/s", rate(measure), patterns.map(rate), peer, &note),
        Row::rate("parse PTX", "MB/s", rate(parse), Some(rate(lines)), "only looking at how each line begins", &note),
    ]
}
