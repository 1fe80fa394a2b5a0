//! CUDA C++, by both compilers.

use std::fs;

use gpuemu_config::CompileTable;

use crate::installed::{Installed, as_kept, data, text, words_after};

/// Both compilers, by the start of their names in a report.
const COMPILERS: [&str; 2] = ["nvcc 13", "NVRTC 13"];

fn with_each(source: &str, table: &CompileTable, mut check: impl FnMut(&str, &str)) {
    let Some(installed) = Installed::find() else { return };
    let without_nvcc = installed.toolchain.clone().without("nvcc");
    for (compiler, toolchain) in COMPILERS.into_iter().zip([&installed.toolchain, &without_nvcc]) {
        let compiled = installed.compile_in(&data(), source, table, toolchain).unwrap();
        assert!(compiled.producer.starts_with(compiler), "{}", compiled.producer);
        assert_eq!((compiled.dynamic_shared_bytes, compiled.block_threads), (None, None));
        let ptx = text(&compiled);
        // No folder of this machine is in it, and the lines of the source are.
        assert_eq!(words_after(&ptx, "\t.file\t1 "), [format!("\"{source}\"")], "{compiler}");
        assert!(!ptx.contains(&*data().to_string_lossy()) && ptx.contains(".loc"), "{compiler}");
        check(compiler, &ptx);
        if compiler.starts_with("NVRTC") {
            as_kept(&source.replace("cuda/", "").replace(".cu", ".ptx"), &compiled);
        }
    }
}

#[test]
fn static_shared_memory() {
    with_each("cuda/tile.cu", &CompileTable::default(), |compiler, ptx| {
        assert_eq!(words_after(ptx, ".entry "), ["reverse_blocks"], "{compiler}");
        assert_eq!(words_after(ptx, ".target "), ["sm_80"], "{compiler}");
        assert!(ptx.contains("1024]") && ptx.contains(".shared"), "{compiler}");
    });
}

#[test]
fn two_kernels_in_one_file() {
    let table = CompileTable { target: Some("sm_90a".to_string()), ..CompileTable::default() };
    with_each("cuda/two_kernels.cu", &table, |compiler, ptx| {
        let mut entries = words_after(ptx, ".entry ");
        entries.sort_unstable();
        assert_eq!(entries, ["scale", "shift"], "{compiler}");
        assert_eq!(words_after(ptx, ".target "), ["sm_90a"], "{compiler}");
    });
}

#[test]
fn offsets_in_32_and_in_64_bits() {
    let wide = |ptx: &str| ptx.contains("mad.lo.s64") || ptx.contains("mul.lo.s64") || ptx.contains("mul.wide.s32");
    with_each("cuda/row_copy_int.cu", &CompileTable::default(), |compiler, ptx| {
        assert!(ptx.contains("mad.lo.s32") || ptx.contains("mul.lo.s32"), "{compiler}:\n{ptx}");
    });
    with_each("cuda/row_copy_size.cu", &CompileTable::default(), |compiler, ptx| {
        assert!(wide(ptx) && !ptx.contains("mul.lo.s32"), "{compiler}:\n{ptx}");
    });
}

#[test]
fn a_function_that_calls_itself() {
    with_each("cuda/recursion.cu", &CompileTable::default(), |compiler, ptx| {
        assert!(ptx.contains(".func") && ptx.contains("call"), "{compiler}");
    });
}

#[test]
fn spills_and_arrays() {
    with_each("cuda/spills.cu", &CompileTable::default(), |compiler, ptx| {
        assert!(ptx.contains(".local") && ptx.contains(".maxntid 1024"), "{compiler}");
    });
}

#[test]
fn headers_and_options() {
    let options = vec!["-DSCALE=3".to_string(), "-use_fast_math".to_string()];
    with_each("cuda/headers.cu", &CompileTable { options, ..CompileTable::default() }, |compiler, ptx| {
        assert!(ptx.contains("add.f16") || ptx.contains("add.rn.f16") || ptx.contains("{add"), "{compiler}:\n{ptx}");
    });
}

#[test]
fn an_error_is_told_in_the_words_of_the_compiler() {
    let Some(installed) = Installed::find() else { return };
    let without_nvcc = installed.toolchain.clone().without("nvcc");
    for toolchain in [&installed.toolchain, &without_nvcc] {
        let table = CompileTable::default();
        let error = installed.compile_in(&data(), "cuda/broken.cu", &table, toolchain).unwrap_err().to_string();
        assert!(error.contains("cannot compile cuda/broken.cu:\ncuda/broken.cu(2): error"), "{error}");
        assert!(error.contains("no_such_name"), "{error}");
        let table = CompileTable { options: vec!["--no-such-option".to_string()], ..CompileTable::default() };
        let error = installed.compile_in(&data(), "cuda/tile.cu", &table, toolchain).unwrap_err().to_string();
        assert!(error.contains("no-such-option"), "{error}");
    }
}

#[test]
fn a_machine_without_a_host_compiler_uses_nvrtc() {
    let Some(installed) = Installed::find() else { return };
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("x.cu"), "extern \"C\" __global__ void k(int *x) { *x = 1; }\n").unwrap();
    let mut search = installed.toolchain.search().clone();
    search.path = vec![empty.path().to_path_buf()];
    let toolchain = gpuemu_ptx::tools::Toolchain::find(&search);
    assert!(toolchain.has("nvcc"));
    let compiled = installed.compile_in(empty.path(), "x.cu", &CompileTable::default(), &toolchain).unwrap();
    assert!(compiled.producer.starts_with("NVRTC"), "{}", compiled.producer);
}
