//! How the tests write and launch kernels.

use gpuemu_machine::{Argument, Buffer, Launch, LaunchError, LaunchOptions, Outcome, Program, Role};
use gpuemu_model::emulation::{AccessFault, AccessFinding};
use gpuemu_ptx::Source;

/// A kernel of the given parameters and body. Its lines are those of `kernel.cu`, by `.loc`.
pub fn kernel(parameters: &str, body: &str) -> Source {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry kernel({parameters})\n{{\n\
         \t.reg .pred %p<16>;\n\t.reg .b16 %h<16>;\n\t.reg .b32 %r<32>;\n\t.reg .f32 %f<16>;\n\t.reg .b64 %d<32>;\n\
         {body}\n\tret;\n}}\n\t.file\t1 \"kernel.cu\"\n"
    );
    Source::new("kernel.ptx", text)
}

/// A buffer of words, given or to be written.
pub fn words(name: &str, role: Role, contents: &[u32], count: u64) -> Argument {
    let contents: Vec<u8> = contents.iter().flat_map(|word| word.to_le_bytes()).collect();
    Argument::Buffer(Buffer {
        name: name.to_string(),
        role,
        bytes: 4 * count,
        contents,
        offset: 0,
        pointer: 0,
        element_bytes: 4,
    })
}

pub fn word(value: u32) -> Argument {
    Argument::Value(value.to_le_bytes().to_vec())
}

/// A launch along x.
pub fn along(blocks: u32, threads: u32, arguments: Vec<Argument>) -> Launch {
    Launch { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0, arguments }
}

/// What comes of a launch, by one worker and by several, which must be the same.
pub fn run(source: &Source, launch: &Launch) -> Result<Outcome, LaunchError> {
    let program = Program::decode(source, None).unwrap_or_else(|error| panic!("{error}"));
    let with =
        |workers| program.launch(launch, &LaunchOptions { workers, most_steps: 1 << 22, ..LaunchOptions::default() });
    let (one, several) = (with(1), with(3));
    assert_eq!(one, several, "the number of workers changes nothing");
    one
}

pub fn only_finding(source: &Source, launch: &Launch) -> AccessFinding {
    let findings = run(source, launch).unwrap().findings;
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.into_iter().next().unwrap()
}

/// The words of a buffer.
pub fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// A finding is of a fault and at a line of the source.
pub fn assert_at(finding: &AccessFinding, fault: AccessFault, line: u64) {
    assert_eq!(finding.fault, fault, "{finding:#?}");
    let place = finding.place.as_ref().unwrap();
    assert_eq!((place.file.as_deref(), place.line), (Some("kernel.cu"), Some(line)), "{finding:#?}");
}
