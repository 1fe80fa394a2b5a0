//! Code that no compiler writes: real kernels with lines lost, doubled, moved and changed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::Path;

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::KernelArtifact;
use gpuemu_ptx::Source;
use gpuemu_ptx::lint::lint;
use gpuemu_tensor::Stream;

const FILES: [&str; 5] = [
    "clang_sm80/rows_O2.ptx",
    "nvrtc_sm80/softmax_dyn.ptx",
    "nvrtc_sm80/tiled_mm.ptx",
    "triton_sm80/softmax.ptx",
    "triton_sm80/transpose.ptx",
];

fn changed(lines: &[&str], random: &mut Stream) -> String {
    let mut lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    for _ in 0..1 + random.below(8) {
        let count = lines.len() as u64;
        let (place, other) = (random.below(count) as usize, random.below(count) as usize);
        match random.below(4) {
            0 => drop(lines.remove(place)),
            1 => lines.insert(other, lines[place].clone()),
            2 => lines.swap(place, other),
            _ => {
                let digit = char::from(b'0' + random.below(10) as u8);
                let from = char::from(b'0' + random.below(10) as u8);
                lines[place] = lines[place].replacen(from, &digit.to_string(), 1);
            }
        }
    }
    lines.join("\n")
}

#[test]
fn the_linter_takes_whatever_the_parser_takes() {
    let mut random = Stream::new(5, "mutated kernels");
    let mut taken = 0;
    for file in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with(".b8")).collect();
        for _ in 0..600 {
            let source = Source::new(file, changed(&lines, &mut random));
            let Ok(module) = source.parse() else { continue };
            let artifact = KernelArtifact {
                kernel: file.into(),
                source: file.into(),
                producer: "as written".into(),
                target: "sm_80".into(),
                ptx_version: "8.0".into(),
                digest: String::new(),
                entries: Vec::new(),
                tools: Vec::new(),
                not_measured: Vec::new(),
            };
            // Names that nothing declares are refused; all else is checked.
            taken += usize::from(lint(&source, &module, &artifact, &ArtifactChecks::default(), &[]).is_ok());
        }
    }
    assert!(taken > 500, "{taken}");
}
