//! What the tools say of real kernels.

use std::collections::BTreeMap;
use std::fs;

use gpuemu_model::artifact::CompiledMetrics;
use gpuemu_ptx::tools::cuobjdump::ResourceUsage;
use gpuemu_ptx::tools::{ToolSearch, Toolchain};
use gpuemu_ptx::{Source, metrics};

use crate::installed::{Installed, data, words_after};

/// Name and text of every kernel that is kept.
fn kernels() -> Vec<(String, String)> {
    let mut kernels = Vec::new();
    for folder in ["triton_sm80", "triton_sm90", "nvrtc_sm80", "pairs"] {
        for entry in fs::read_dir(data().join("ptx").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "ptx") {
                let name = format!("{folder}/{}", path.file_stem().unwrap().to_string_lossy());
                kernels.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    kernels.sort();
    assert!(kernels.len() >= 50, "{} kernels", kernels.len());
    kernels
}

/// The figures that both tools have, of one function. From sm_90 on the disassembler adds what the system keeps for
/// itself of the shared memory of a block that has any.
fn compared(name: &str, assembler: &CompiledMetrics, disassembler: &ResourceUsage) {
    let reserved = match disassembler.shared_bytes {
        Some(bytes) if bytes > 0 && ["sm_90", "sm_90a", "sm_100"].contains(&assembler.architecture.as_str()) => 1024,
        _ => 0,
    };
    let shared_bytes = disassembler.shared_bytes.unwrap() - reserved;
    let one = (assembler.registers, assembler.stack_bytes, assembler.shared_bytes);
    let other = (disassembler.registers, disassembler.stack_bytes, Some(shared_bytes));
    assert_eq!(one, other, "{name} for {}", assembler.architecture);
    assert!(assembler.registers.is_some_and(|registers| registers > 0), "{name}");
    if assembler.constant_bytes.is_some() {
        assert_eq!(assembler.constant_bytes, disassembler.constant_bytes, "{name} for {}", assembler.architecture);
    }
}

#[test]
fn the_assembler_and_the_disassembler_agree_on_every_kernel() {
    let Some(Installed { toolchain, .. }) = Installed::find() else { return };
    let (mut entries, mut with_shared, mut with_stack) = (0, 0, 0);
    for (name, ptx) in kernels() {
        let own = words_after(&ptx, ".target ")[0];
        let newer: &[&str] = if own == "sm_80" { &["sm_86", "sm_90", "sm_100"] } else { &[] };
        for architecture in [own].iter().chain(newer) {
            let assembled = toolchain.assemble(&ptx, architecture).unwrap_or_else(|why| panic!("{name}: {why}"));
            let usage = toolchain.resource_usage(&assembled).unwrap();
            let said = &assembled.report.entries;
            assert_eq!(said.keys().collect::<Vec<_>>(), usage.keys().collect::<Vec<_>>(), "{name}");
            let source = Source::new(name.as_str(), ptx.as_str());
            let own_measures = metrics::measure(&source, &source.parse().unwrap()).unwrap();
            assert_eq!(said.len(), own_measures.len(), "{name}");
            for measured in own_measures {
                assert_eq!(said[&measured.entry].shared_bytes, Some(measured.shared.bytes), "{name}");
            }
            for (entry, metrics) in said {
                compared(&name, metrics, &usage[entry]);
                entries += 1;
                with_shared += usize::from(metrics.shared_bytes > Some(0));
                with_stack += usize::from(metrics.stack_bytes > Some(0));
            }
        }
    }
    // The figures are not equal for being all zero.
    assert!(
        with_shared >= 4 && with_stack >= 4 && entries > 150,
        "{entries} entries, {with_shared} with shared memory, {with_stack} with stack"
    );
}

#[test]
fn both_disassemblers_print_the_same_instructions() {
    let Some(Installed { toolchain, .. }) = Installed::find() else { return };
    let other = toolchain.clone().without("cuobjdump");
    for (name, ptx) in kernels() {
        let architecture = words_after(&ptx, ".target ")[0];
        let assembled = toolchain.assemble(&ptx, architecture).unwrap();
        let (one, tool) = toolchain.machine_instructions(&assembled).unwrap();
        let (two, second_tool) = other.machine_instructions(&assembled).unwrap();
        assert_eq!((tool.name.as_str(), second_tool.name.as_str()), ("cuobjdump", "nvdisasm"));
        assert_eq!(one, two, "{name}");
        let counts = one.values().next().unwrap();
        assert!(counts["EXIT"] > 0 && counts.values().sum::<u64>() > 10, "{name}");
    }
}

#[test]
fn an_architecture_that_is_refused_does_not_hinder_the_others() {
    let Some(Installed { toolchain, .. }) = Installed::find() else { return };
    let ptx = fs::read_to_string(data().join("ptx/nvrtc_sm80/tiled_mm.ptx")).unwrap();
    let architectures = ["sm_70", "sm_80", "sm_80", "sm_90", "nonsense", "sm_4711"].map(String::from);
    let measures = toolchain.measure(&ptx, &["tiled_mm".to_string(), "absent".to_string()], &architectures);
    let compiled = &measures.compiled["tiled_mm"];
    let known: Vec<&str> = compiled.iter().map(|metrics| metrics.architecture.as_str()).collect();
    assert_eq!(known, ["sm_80", "sm_90"]);
    for metrics in compiled {
        assert_eq!(metrics.shared_bytes, Some(2048));
        assert!(metrics.constant_bytes.is_some() && metrics.sass.as_ref().unwrap()["BAR.SYNC.DEFER_BLOCKING"] == 2);
    }
    let tools: Vec<&str> = measures.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["cuobjdump", "ptxas"]);
    let why: Vec<String> = measures.not_measured.iter().map(|not| format!("{}: {}", not.what, not.why)).collect();
    let has = |words: &[&str]| why.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(&["registers, spills, stack and barriers: sm_70: ptxas", ".target is higher"]), "{why:#?}");
    assert!(has(&["registers", "sm_4711: ptxas", "Value 'sm_4711' is not defined"]), "{why:#?}");
    assert!(has(&["registers", "'nonsense' is not the name of a machine"]), "{why:#?}");
    assert!(has(&["barriers of absent: sm_80: ptxas says nothing of it"]), "{why:#?}");
    assert_eq!(why.len(), 8, "{why:#?}");
}

#[test]
fn ptx_that_is_wrong_is_told_with_its_line() {
    let Some(Installed { toolchain, .. }) = Installed::find() else { return };
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n\tfrob.b32;\n}\n";
    let error = toolchain.assemble(ptx, "sm_80").unwrap_err();
    assert!(error.starts_with("ptxas ") && error.contains("kernel.ptx, line 6"), "{error}");
    assert!(error.contains("'frob'"), "{error}");
}

#[test]
fn spills_and_arrays_are_measured() {
    let Some(Installed { toolchain, .. }) = Installed::find() else { return };
    let ptx = fs::read_to_string(data().join("ptx/pairs/spills.ptx")).unwrap();
    let measures = toolchain.measure(&ptx, &["spills", "indexed"].map(String::from), &["sm_80".to_string()]);
    let [spills, indexed] = ["spills", "indexed"].map(|entry| &measures.compiled[entry][0]);
    assert!(spills.spill_store_bytes > Some(0) && spills.spill_load_bytes > Some(0));
    assert!(spills.registers <= Some(32) && spills.stack_bytes > Some(0), "{spills:?}");
    assert_eq!(
        (indexed.stack_bytes, indexed.spill_store_bytes, indexed.spill_load_bytes),
        (Some(256), Some(0), Some(0))
    );
    assert_eq!(measures.not_measured, []);
}

#[test]
fn a_function_that_is_counted_apart_is_told() {
    let Some(Installed { toolchain, .. }) = Installed::find() else { return };
    let ptx = fs::read_to_string(data().join("ptx/pairs/recursion.ptx")).unwrap();
    let measures = toolchain.measure(&ptx, &["sums".to_string()], &["sm_80".to_string()]);
    assert_eq!(measures.compiled["sums"][0].stack_bytes, Some(0));
    let apart: Vec<_> = measures.not_measured.iter().filter(|not| not.what.contains("adds to stack")).collect();
    assert_eq!(apart.len(), 1, "{:#?}", measures.not_measured);
    assert!(apart[0].why.contains("counts it apart"), "{apart:#?}");
}

#[test]
fn without_tools_nothing_is_measured_and_nothing_fails() {
    let toolchain = Toolchain::find(&ToolSearch::default());
    let measures = toolchain.measure("not even PTX", &["k".to_string()], &["sm_80".to_string()]);
    assert_eq!((measures.compiled, measures.tools.len()), (BTreeMap::new(), 0));
    let what: Vec<&str> = measures.not_measured.iter().map(|not| not.what.as_str()).collect();
    assert_eq!(what, ["registers, spills, stack and barriers", "machine instructions"]);
    assert!(measures.not_measured[0].why.starts_with("ptxas was not found on PATH, in CUDA_HOME"));
}

#[test]
fn without_a_disassembler_only_instructions_are_not_measured() {
    let Some(Installed { toolchain, .. }) = Installed::find() else { return };
    let ptx = fs::read_to_string(data().join("ptx/triton_sm80/softmax.ptx")).unwrap();
    let toolchain = toolchain.without("cuobjdump").without("nvdisasm");
    let measures = toolchain.measure(&ptx, &["softmax".to_string()], &["sm_80".to_string()]);
    let metrics = &measures.compiled["softmax"][0];
    assert!(metrics.registers > Some(8) && metrics.barriers == Some(1) && metrics.sass.is_none());
    let what: Vec<&str> = measures.not_measured.iter().map(|not| not.what.as_str()).collect();
    assert_eq!(what, ["machine instructions"]);
}
