//! Files that are not PTX, or no longer: a clear error or a true reading, and never a panic.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::KernelArtifact;
use gpuemu_ptx::lint::lint;
use gpuemu_ptx::{Source, metrics};
use gpuemu_tensor::Stream;
use gpuemu_tensor::rng::case_seed;

fn data() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx")
}

fn bytes_of(file: &str) -> Vec<u8> {
    std::fs::read(data().join(file)).unwrap()
}

/// Reads bytes as far as they go: parsed, printed, parsed again, measured, checked.
fn read(bytes: Vec<u8>) -> Result<(), String> {
    let source = Source::from_bytes("mutated.ptx", bytes).map_err(|error| error.to_string())?;
    let module = source.parse().map_err(|error| error.to_string())?;
    let printed = Source::new("printed.ptx", module.to_string());
    let again = printed.parse().unwrap_or_else(|error| panic!("what was printed cannot be read: {error}"));
    assert!(again == module, "what was printed says something else:\n{}", printed.text);
    let entries = metrics::measure(&source, &module).map_err(|error| error.to_string())?;
    let artifact = KernelArtifact { target: module.architecture().to_string(), entries, ..KernelArtifact::default() };
    lint(&source, &module, &artifact, &ArtifactChecks::default(), &[]).map(|_| ()).map_err(|error| error.to_string())
}

/// What mutations put in: the signs and words of PTX, and numbers at their limits.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ";",
    ",",
    ":",
    "::",
    ".",
    "@",
    "!",
    "|",
    "%",
    "$",
    "\"",
    "//",
    "/*",
    "*/",
    "\n",
    "-",
    "+",
    "0x",
    "0f",
    "0d3FF",
    "0b2",
    "99999999999999999999",
    "18446744073709551615",
    "4294967296",
    "<4294967295>",
    "[18446744073709551615]",
    ".reg .b32 %q<4000000000>;",
    ".shared .b64 huge[9223372036854775807];",
    ".align 0",
    ".v8",
    ".entry",
    ".func",
    ".section",
    ".loc 1 1 1",
    ".pragma",
    "bra",
    "call",
    "ret;",
    "$L__BB0_1:",
    "_",
    "?",
    "<<",
    "~",
    "(.u64)",
    "\u{e9}",
    "\u{1F600}",
    "\0",
    ".b128",
    "%tid",
    "1/0",
    "-9223372036854775808 / -1",
    "1 << 65",
];

fn mutate(stream: &mut Stream, mut bytes: Vec<u8>, other: &[u8]) -> Vec<u8> {
    // Mostly one: of files with many nearly all are refused, and what comes after the parser is not tried.
    for _ in 0..1 + stream.below(3) / 2 {
        let length = bytes.len() as u64;
        let place = stream.below(length + 1) as usize;
        let end = (place + stream.below(40) as usize).min(bytes.len());
        match stream.below(8) {
            0 => bytes.truncate(place),
            1 => drop(bytes.drain(place..end)),
            2 => {
                let word = stream.pick(WORDS).copied().unwrap_or_default();
                drop(bytes.splice(place..place, word.bytes()));
            }
            3 => {
                let word = stream.pick(WORDS).copied().unwrap_or_default();
                drop(bytes.splice(place..end, word.bytes()));
            }
            4 => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << stream.below(8);
                }
            }
            5 => {
                let copy = bytes[place..end].to_vec();
                let target = stream.below(length + 1) as usize;
                drop(bytes.splice(target..target, copy));
            }
            6 => {
                let start = stream.below(other.len() as u64) as usize;
                let piece = &other[start..(start + stream.below(200) as usize).min(other.len())];
                drop(bytes.splice(place..end, piece.iter().copied()));
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = stream.next_word() as u8;
                }
            }
        }
    }
    bytes
}

/// A million mutated files: small ones mostly, because what matters is how many different things are tried.
#[test]
fn a_million_mutated_files_are_read_or_refused() {
    const CASES: u64 = 1_000_000;
    let small: Vec<Vec<u8>> =
        ["instr/add_f32.ptx", "instr/abs_f64.ptx", "mma/m16n8k16_f32_f16.ptx"].map(bytes_of).into();
    let snippets = [SYNTAX_SAMPLE.as_bytes().to_vec()];
    let large: Vec<Vec<u8>> =
        ["nvrtc_sm80/math_mix.ptx", "triton_sm80/softmax.ptx", "triton_sm90/matmul_fp8e4nv.ptx"].map(bytes_of).into();
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let read_well = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (small, snippets, large, read_well) = (&small, &snippets, &large, &read_well);
            scope.spawn(move || {
                for case in (thread..CASES).step_by(threads as usize) {
                    let mut stream = Stream::new(case_seed(5, case), "mutated ptx");
                    // Every thousandth is a real kernel.
                    let pool = match case % 1000 {
                        0 => large,
                        number if number % 3 == 0 => &snippets[..].to_vec(),
                        _ => small,
                    };
                    let original = stream.pick(pool).cloned().unwrap_or_default();
                    let other = stream.pick(large).map_or(&[][..], Vec::as_slice);
                    let mutated = mutate(&mut stream, original, other);
                    match catch_unwind(AssertUnwindSafe(|| read(mutated.clone()))) {
                        Ok(Ok(())) => {
                            read_well.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                        Ok(Err(message)) => assert!(message.starts_with("mutated.ptx:"), "case {case}: {message}"),
                        Err(_) => panic!("case {case} panicked:\n{}", String::from_utf8_lossy(&mutated)),
                    }
                }
            });
        }
    });
    // Mutations that are all refused at the first byte would try nothing.
    let read_well = read_well.into_inner();
    assert!((40_000..CASES).contains(&read_well), "{read_well} of {CASES} could be read");
}

/// One of everything, so that a mutation hits every part of the parser.
const SYNTAX_SAMPLE: &str = r#"
.version 8.4
.target sm_80, debug
.address_size 64
.file 1 "k.py"
.extern .shared .align 16 .b8 dynamic[];
.const .align 4 .b8 cst[8] = {1, 2, 0x3, 0b1, 07, -1, (2+3)*4, 1<<2};
.global .u64 pointers[2] = {generic(cst)+4, 0};
.global .b8 part = 0xFF(cst+1);
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func (.reg .b32 r) helper (.reg .b32 a) { add.s32 r, a, 1; ret; }
.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[16])
.reqntid 128, 1, 1
.minnctapersm 2
{
  .reg .pred %p<4>; .reg .b32 %r<9>, t; .reg .b64 %rd<9>; .reg .v4 .f32 %v; .reg .f64 %fd<3>;
  .shared .f32 tile[16][16]; .local .align 4 .b8 depot[28];
  .loc 1 12 5, function_name $L__info, inlined_at 1 20 9
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;
L0: mad.lo.s32 %r2, %r1, 0x10, %r1; setp.lt.and.s32 %p1|%p2, %r2, -5, !%p3;
  @!%p1 bra L1; @%p2 ld.global.v4.b32 {%r3, _, %r4, %r5}, [%rd1+-16];
  cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;
  fma.rn.f64 %fd1, %fd2, 0d3FF0000000000000, 1.5; bar.sync 0;
  { .param .b64 a0; .param .b64 a1; .param .b32 r0; st.param.b64 [a0+0], %rd1; call.uni (r0), vprintf, (a0, a1); }
  shfl.sync.idx.b32 %r6|%p3, %r2, 0, 31, -1; st.shared.f32 [tile+4], 0f3F800000; mov.u64 %rd2, tile+8; bra L0;
L1: .pragma "nounroll"; ret;
}
.section .debug_str { $L__info: .b8 107, 0 .b32 .debug_abbrev .b64 $L__info-$L__info }
"#;

#[test]
fn the_sample_itself_can_be_read() {
    read(SYNTAX_SAMPLE.as_bytes().to_vec()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_cut_through_an_entry_is_refused_with_its_place() {
    for file in ["instr/add_f32.ptx", "nvrtc_sm80/vadd.ptx", "triton_sm80/vadd_f32.ptx"] {
        let text = String::from_utf8(bytes_of(file)).unwrap();
        let start = text.find(".visible .entry").unwrap();
        // A file that ends with the entry: what follows it could be cut off without harm.
        let end = start + text[start..].find("\n}").unwrap() + 1;
        for cut in start + 1..end {
            let source = Source::new(file, &text[..cut]);
            let error = source.parse().err().unwrap_or_else(|| panic!("{file} was accepted up to byte {cut}"));
            assert!(error.position.is_some(), "{error}");
        }
        assert!(Source::new(file, &text[..end + 1]).parse().is_ok(), "{file}");
    }
}

#[test]
fn a_million_labels_are_read_in_little_time() {
    let mut text = String::from(".version 8.4\n.target sm_80\n.entry k() {\n.reg .pred %p<2>;\n");
    for label in 0..1_000_000u64 {
        text.push_str(&format!("L{label}: @%p1 bra L{};\n", (label * 7919) % 1_000_000));
    }
    text.push_str("ret;\n}\n");
    let begun = Instant::now();
    let source = Source::new("labels.ptx", text);
    let module = source.parse().unwrap();
    let metrics = metrics::measure(&source, &module).unwrap();
    assert_eq!(metrics[0].instructions.total, 1_000_001);
    assert_eq!(metrics[0].blocks, 1_000_001);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn deep_nesting_is_refused_before_the_stack_ends() {
    let head = ".version 8.4\n.target sm_80\n.entry k() {\n";
    for (open, name) in [
        ("{", "blocks"),
        ("mov.b32 %r1, (", "expressions"),
        ("mov.b32 %r1, -", "signs"),
        ("mov.b32 {", "vectors"),
        ("ld.b32 %r1, [%r1, ", "addresses"),
        ("call (", "lists"),
        ("mov.b32 %r1, 1 ? ", "conditions"),
    ] {
        let text = format!("{head}{}", open.chars().take(open.len() - 1).collect::<String>());
        let deepest = open.chars().last().unwrap().to_string();
        let (prefix, sign) =
            if name == "addresses" { (format!("{head}ld.b32 %r1, "), "[%r1, ") } else { (text, deepest.as_str()) };
        let sign = if name == "conditions" { "1 ? " } else { sign };
        let source = Source::new("deep.ptx", format!("{prefix}{}", sign.repeat(1_000_000)));
        let error = source.parse().err().unwrap_or_else(|| panic!("{name} nested a million times were accepted"));
        assert!(error.message.contains("nested deeper than 64 levels"), "{name}: {error}");
    }
    let initialiser = format!(".version 8.4\n.target sm_80\n.global .b8 x = {}", "{".repeat(1_000_000));
    assert!(Source::new("deep.ptx", initialiser).parse().unwrap_err().message.contains("nested deeper"));
}

#[test]
fn other_texts_are_refused_in_words() {
    let texts: [(&[u8], &str); 5] = [
        (b"", "other:1:1: not PTX: expected `.version`, found the end of the file"),
        (b"A text of some length.\n", "other:1:1: not PTX: expected `.version`, found `A`"),
        (b"\x7fELF\x02\x01\x01", "other:1:1: not PTX: expected `.version`, found `\x7f`"),
        (b"// caf\xe9\n.version 8.0", "other:1:7: not text: byte 0xE9 is not UTF-8"),
        (b"\xff\xfe.\0v\0e\0r\0", "other:1:1: not text: byte 0xFF is not UTF-8"),
    ];
    for (bytes, expected) in texts {
        let source = Source::from_bytes("other", bytes.to_vec());
        let error = source.and_then(|source| source.parse().map(|_| ())).unwrap_err();
        assert_eq!(error.to_string().lines().next().unwrap(), expected);
    }
}

#[test]
fn labels_of_a_block_are_its_own() {
    let wait = "{ .reg .pred p; WAIT: setp.eq.b32 p, 0, 0; @p bra DONE; bra WAIT; DONE: }";
    let source = Source::new("k.ptx", format!(".version 8.4\n.target sm_80\n.entry k() {{ {wait} {wait} ret; }}"));
    let module = source.parse().unwrap();
    let metrics = metrics::measure(&source, &module).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(metrics[0].loops, 2);
}

#[test]
fn names_that_nothing_declares_are_refused() {
    let wrong = [
        ("mov.b32 %r1, %r2;", "'%r1' in `mov.b32` is declared nowhere"),
        (".reg .b32 %r<2>; mov.b32 %r1, %r2;", "'%r2' in `mov.b32` is declared nowhere"),
        (".reg .b32 %r<2>; mov.b32 %r01, 1;", "'%r01' in `mov.b32` is declared nowhere"),
        (".reg .b32 a; { .reg .b32 b; } mov.b32 a, b;", "'b' in `mov.b32` is declared nowhere"),
        ("bra missing;", "'missing' in `bra` is declared nowhere"),
        ("L: L: ret;", "label 'L' is there twice"),
        (".reg .b32 a; .reg .b64 a;", "'a' is declared twice"),
    ];
    for (body, message) in wrong {
        let source = Source::new("k.ptx", format!(".version 8.4\n.target sm_80\n.entry k() {{ {body} }}"));
        let module = source.parse().unwrap_or_else(|error| panic!("{error}"));
        let error = metrics::measure(&source, &module).unwrap_err();
        assert_eq!(error.message, message, "{body}");
        assert!(error.position.is_some());
    }
}
