//! Packs of recorded launches: the one in the repository, and small ones that are wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use gpuemu_machine::LaunchOptions;
use gpuemu_machine::conformance::{ConformanceOutcome, LaunchResult, Pack, run};
use gpuemu_tensor::DType;
use gpuemu_tensor::npy;
use serde_json::{Value, json};
use tempfile::TempDir;
use zip::write::{SimpleFileOptions, ZipWriter};

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hardware")
}

#[test]
fn the_pack_in_the_repository_is_whole() {
    let pack = Pack::read(&recorded()).unwrap();
    let count = |set: &str| pack.entries.iter().filter(|entry| entry.set == set).count();
    assert_eq!((count("kernel"), count("instr"), count("mma")), (149, 469, 15));
    assert_eq!(pack.check().unwrap(), (1865, 713));
}

#[test]
fn the_pack_in_the_repository_is_small() {
    fn bytes(folder: &Path) -> u64 {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { bytes(&path) } else { path.metadata().unwrap().len() }).sum()
    }
    let size = bytes(&recorded());
    assert!(size < 18_500_000, "{size} bytes");
}

/// Adds one to each element of a buffer of 32 bit.
const ADD_ONE: &str = r#".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [in];
	ld.param.u64 %rd2, [out];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 ret;
	mul.wide.u32 %rd3, %r2, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	ld.global.u32 %r3, [%rd4];
	add.s32 %r3, %r3, 1;
	st.global.u32 [%rd5], %r3;
	ret;
}
"#;

struct TinyPack {
    folder: TempDir,
}

impl TinyPack {
    /// A pack of entries, whose arrays `x` and `y` hold 1, 2, 3 and 2, 3, 4.
    fn new(entries: &[Value]) -> Self {
        let pack = Self { folder: TempDir::new().unwrap() };
        pack.write("k.ptx", ADD_ONE.as_bytes());
        let manifest = json!({"format": 1, "entries": entries});
        pack.write("manifest.json", manifest.to_string().as_bytes());
        let words = |values: [u32; 3]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let array = |values| npy::write(DType::U32, &[3], &words(values));
        pack.archive("k.npz", &[("x", &array([1, 2, 3])), ("y", &array([2, 3, 4])), ("z", &array([2, 3, 5]))]);
        pack
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    fn archive(&self, name: &str, arrays: &[(&str, &[u8])]) {
        let mut writer = ZipWriter::new(fs::File::create(self.folder.path().join(name)).unwrap());
        for (key, bytes) in arrays {
            writer.start_file(format!("{key}.npy"), SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
    }

    /// Why it cannot be used, with its folder left out.
    fn error(&self) -> String {
        let error = match Pack::read(self.folder.path()) {
            Err(error) => error,
            Ok(pack) => {
                let error = pack.check().unwrap_err();
                let run = run(&pack, &LaunchOptions::default(), &|_| {});
                assert!(run.is_err(), "{error}: it was run nevertheless");
                error
            }
        };
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn run(&self) -> Vec<LaunchResult> {
        let pack = Pack::read(self.folder.path()).unwrap();
        run(&pack, &LaunchOptions::default(), &|_| {}).unwrap().launches
    }
}

fn entry(id: &str, changes: Value) -> Value {
    let mut entry = json!({
        "id": id, "set": "kernel", "kernel": "k", "ptx": "k.ptx", "entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1],
        "shared": 0, "data_file": "k.npz", "deterministic": true,
        "params": [
            {"kind": "buffer", "name": "in", "dtype": "u32", "role": "in", "elems": 3, "key": "x"},
            {"kind": "buffer", "name": "out", "dtype": "u32", "role": "out", "elems": 3, "out_key": "y"},
            {"kind": "scalar", "name": "n", "dtype": "u32", "value": 3},
        ],
    });
    for (key, value) in changes.as_object().unwrap() {
        match key.split_once('.') {
            Some((number, key)) => entry["params"][number.parse::<usize>().unwrap()][key] = value.clone(),
            None => entry[key] = value.clone(),
        }
    }
    entry
}

#[test]
fn a_pack_that_cannot_be_used_says_why() {
    for (changes, expected) in [
        (json!({"grid": null}), "manifest.json: entry 1 (a): invalid type: null, expected an array of length 3"),
        (json!({"0.kind": "tensor"}), "manifest.json: entry 1 (a): unknown variant `tensor`"),
        (json!({"0.role": "input"}), "manifest.json: entry 1 (a): unknown variant `input`"),
        (json!({"0.elems": -1}), "manifest.json: entry 1 (a): invalid value: integer `-1`"),
        (json!({"ptx": "gone.ptx"}), "gone.ptx: "),
        (json!({"data_file": "gone.npz"}), "gone.npz: "),
        (json!({"0.data_file": "k.ptx"}), "k.ptx: "),
        (json!({"0.key": "gone"}), "k.npz: gone: "),
        (json!({"0.elems": 4}), "k.npz: x: 3 elements, but the manifest says 4"),
        (json!({"0.elems": 2}), "k.npz: x: 3 elements, but the manifest says 2"),
        (json!({"0.dtype": "u16"}), "k.npz: x: elements of 4 bytes, but u16 has 2"),
        (json!({"2.value": "three"}), "a: the parameter n: \"three\" is no value of u32"),
        (json!({"2.dtype": "u128"}), "a: the parameter n: the dtype 'u128' is not known"),
    ] {
        let error = TinyPack::new(&[entry("a", changes.clone())]).error();
        assert!(error.starts_with(expected), "{changes}\n{error}");
    }
    let mut without = entry("a", json!({}));
    without.as_object_mut().unwrap().remove("entry");
    assert_eq!(TinyPack::new(&[without]).error(), "manifest.json: entry 1 (a): missing field `entry`");
    assert_eq!(TinyPack::new(&[]).error(), "manifest.json: there is no entry in it");
    let twice = [entry("a", json!({})), entry("a", json!({}))];
    assert_eq!(TinyPack::new(&twice).error(), "manifest.json: there are two entries 'a'");
    let pack = TinyPack::new(&[entry("a", json!({}))]);
    pack.write("manifest.json", b"{");
    assert!(pack.error().starts_with("manifest.json: EOF while parsing"), "{}", pack.error());
}

#[test]
fn a_broken_archive_says_which_array() {
    let pack = TinyPack::new(&[entry("a", json!({}))]);
    for (array, expected) in [
        (b"nothing".as_slice(), "k.npz: x: it is no .npy file"),
        (&npy::write(DType::U32, &[3], &[0; 11]), "k.npz: x: it is cut short: "),
        (&npy::write(DType::U32, &[3], &vec![0; 1 << 20]), "k.npz: x: more than the 12 bytes that the manifest says"),
    ] {
        pack.archive("k.npz", &[("x", array)]);
        let error = pack.error();
        assert!(error.starts_with(expected), "{error}");
    }
    let whole = fs::read(pack.folder.path().join("k.npz")).unwrap();
    for length in [0, 4, whole.len() / 2, whole.len() - 1] {
        pack.write("k.npz", &whole[..length]);
        assert!(pack.error().starts_with("k.npz: "), "{length}: {}", pack.error());
    }
}

#[test]
fn launches_are_told_apart_by_what_came_of_them() {
    let pack = TinyPack::new(&[
        entry("right", json!({})),
        entry("wrong", json!({"1.out_key": "z"})),
        entry("refused", json!({"ptx": "unknown.ptx"})),
        entry("newer", json!({"ptx": "newer.ptx"})),
        entry("trap", json!({"ptx": "trap.ptx", "expect_error": "trap"})),
        entry("no trap", json!({"expect_error": "trap"})),
    ]);
    pack.write("trap.ptx", ADD_ONE.replace("st.global", "trap;\n\tst.global").as_bytes());
    // An old instruction in a form that nobody has, and one of sm_90.
    pack.write("unknown.ptx", ADD_ONE.replace("add.s32", "add.silly.s32").as_bytes());
    pack.write("newer.ptx", ADD_ONE.replace("add.s32", "wgmma.fence.sync.aligned;\n\tadd.s32").as_bytes());
    let results = pack.run();
    let outcomes: Vec<(&str, ConformanceOutcome)> =
        results.iter().map(|result| (result.id.as_str(), result.outcome)).collect();
    let details: Vec<&str> = results.iter().map(|result| result.detail.as_str()).collect();
    assert_eq!(
        outcomes,
        [
            ("right", ConformanceOutcome::BitEqual),
            ("wrong", ConformanceOutcome::Wrong),
            ("refused", ConformanceOutcome::Wrong),
            ("newer", ConformanceOutcome::Skipped),
            ("trap", ConformanceOutcome::ExpectedError),
            ("no trap", ConformanceOutcome::Wrong),
        ],
        "{details:#?}"
    );
    assert_eq!(results[1].detail, "out[2]: 0x4, recorded 0x5");
    assert!(details[2].contains("add.silly.s32"), "{details:#?}");
    assert!(details[3].starts_with("wgmma.fence.sync.aligned (line 19) needs sm_90: "), "{details:#?}");
}
