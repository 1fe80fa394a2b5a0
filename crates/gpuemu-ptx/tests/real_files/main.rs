//! Every recorded PTX file is read, written back and read again, and its counts equal those of a plain count.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod plain_count;

use std::path::{Path, PathBuf};

use gpuemu_model::artifact::{EntryMetrics, RegisterClass};
use gpuemu_ptx::{Source, metrics};
use plain_count::PlainCount;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx");
    let mut files = Vec::new();
    for kind in std::fs::read_dir(folder).unwrap() {
        let kind = kind.unwrap().path();
        let found = std::fs::read_dir(kind).unwrap().map(|file| file.unwrap().path());
        files.extend(found.filter(|file| file.extension().is_some_and(|extension| extension == "ptx")));
    }
    files.sort();
    files
}

#[test]
fn all_files_parse_and_survive_printing() {
    let files = files();
    assert!(files.len() >= 530, "{}", files.len());
    for file in files {
        let source = Source::read(&file).unwrap();
        let module = source.parse().unwrap_or_else(|error| panic!("{error}"));
        assert!(module.entries().count() >= 1, "{}", source.name);
        let printed = Source::new("printed.ptx", module.to_string());
        let again = printed.parse().unwrap_or_else(|error| panic!("{}: {error}", source.name));
        assert_eq!(module, again, "{}", source.name);
        assert_eq!(printed.text, again.to_string(), "{}", source.name);
    }
}

#[test]
fn counts_equal_those_of_a_plain_count() {
    let mut entries = 0;
    for file in files() {
        let source = Source::read(&file).unwrap();
        let module = source.parse().unwrap();
        let measured = metrics::measure(&source, &module).unwrap_or_else(|error| panic!("{error}"));
        let plain = plain_count::functions(&source.text);
        let launchable: Vec<&(String, bool, PlainCount)> = plain.iter().filter(|(_, entry, _)| *entry).collect();
        assert_eq!(measured.len(), launchable.len(), "{}", source.name);
        for (metrics, (name, _, own)) in measured.iter().zip(launchable) {
            assert_eq!(metrics.entry, *name, "{}", source.name);
            // A function belongs to the entry if its name is a word of it, or of one that belongs to it.
            let mut count = own.clone();
            let mut callees: Vec<&str> = Vec::new();
            while let Some((callee, _, more)) = plain.iter().find(|(callee, entry, _)| {
                !entry && count.words.contains(callee) && !callees.contains(&callee.as_str())
            }) {
                callees.push(callee);
                count.add(more);
            }
            callees.sort_unstable();
            let defined = |name: &&String| plain.iter().any(|(known, ..)| known == *name);
            assert_eq!(metrics.calls.iter().filter(defined).collect::<Vec<_>>(), callees, "{}", source.name);
            compare(metrics, &count, &source.name);
            entries += 1;
        }
    }
    assert!(entries >= 530, "{entries}");
}

fn compare(metrics: &EntryMetrics, count: &PlainCount, file: &str) {
    let counts = &metrics.instructions;
    assert_eq!(counts.forms, count.forms, "{file}");
    assert_eq!(counts.total, count.total(), "{file}");
    assert_eq!(counts.predicated, count.predicated, "{file}");
    let groups = [counts.memory, counts.arithmetic, counts.tensor_core, counts.control, counts.synchronisation];
    assert_eq!(groups.iter().sum::<u64>() + counts.movement, counts.total, "{file}");
    assert_eq!(metrics.local_loads, count.with("ld", "local"), "{file}");
    assert_eq!(metrics.local_stores, count.with("st", "local"), "{file}");
    let matrix = count.forms.iter().filter(|(form, _)| {
        form.starts_with("mma.")
            || form.starts_with("wmma.mma")
            || form.starts_with("wgmma.mma_async")
            || form.starts_with("tcgen05.mma")
    });
    assert_eq!(counts.tensor_core, matrix.map(|(_, count)| count).sum::<u64>(), "{file}");
    let of_kind = |kind: &'static str| metrics.global_accesses.iter().filter(move |access| access.kind == kind);
    assert_eq!(of_kind("load").map(|access| access.count).sum::<u64>(), count.with("ld", "global"), "{file}");
    assert_eq!(of_kind("store").map(|access| access.count).sum::<u64>(), count.with("st", "global"), "{file}");
    let wide = of_kind("load").filter(|access| access.vector == 4).map(|access| access.count).sum::<u64>();
    let plain_wide = count.forms.iter().filter(|(form, _)| form.starts_with("ld.global") && form.contains(".v4"));
    assert_eq!(wide, plain_wide.map(|(_, count)| count).sum::<u64>(), "{file}");
    let classes = [
        (RegisterClass::Predicate, "pred"),
        (RegisterClass::Bits8, "8"),
        (RegisterClass::Bits16, "16"),
        (RegisterClass::Bits32, "32"),
        (RegisterClass::Bits64, "64"),
        (RegisterClass::Bits128, "128"),
    ];
    for (class, kind) in classes {
        assert_eq!(metrics.registers.get(&class), count.registers.get(kind), "{file}: {kind}");
    }
}
