//! Triton kernels.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use gpuemu_config::CompileTable;
use gpuemu_ptx::compile::CompiledSource;
use gpuemu_ptx::tools::{ToolSearch, Toolchain};
use gpuemu_ptx::{Source, metrics};
use serde_json::{Value, json};

use crate::installed::{Installed, as_kept, data, text, words_after};

fn table(signature: &[&str], constants: &[(&str, Value)]) -> CompileTable {
    CompileTable {
        signature: signature.iter().map(ToString::to_string).collect(),
        constants: constants.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        ..CompileTable::default()
    }
}

/// How often each instruction with its modifiers occurs: a plain count that knows nothing of operands.
fn forms(ptx: &str) -> BTreeMap<&str, usize> {
    let mut forms = BTreeMap::new();
    for line in ptx.lines().map(str::trim).filter(|line| line.contains(';') && !line.starts_with(['.', '/', '$'])) {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap();
        let form = if first.starts_with('@') { words.next().unwrap_or_default() } else { first };
        *forms.entry(form).or_default() += 1;
    }
    forms
}

fn pair(names: [&str; 2], table: &CompileTable, immediates: [&str; 2]) {
    let Some(installed) = Installed::find() else { return };
    let kernel = names[0];
    let [one, two]: [CompiledSource; 2] = names.map(|name| {
        let compiled = installed.compile(&format!("triton/{name}.py:{kernel}"), table).unwrap();
        assert!(compiled.producer.starts_with("Triton 3."), "{}", compiled.producer);
        assert_eq!(compiled.block_threads, Some(128));
        as_kept(&format!("{name}.ptx"), &compiled);
        compiled
    });
    let [first, second] = [text(&one), text(&two)];
    assert_eq!(words_after(&first, ".entry "), [kernel]);
    assert_eq!(forms(&first), forms(&second));
    assert!(forms(&first).len() > 10, "{:#?}", forms(&first));
    let [one, two] = [("first.ptx", &first), ("second.ptx", &second)].map(|(name, ptx)| {
        let source = Source::new(name, ptx.as_str());
        let mut entries = metrics::measure(&source, &source.parse().unwrap()).unwrap();
        entries.remove(0)
    });
    assert_eq!(one.instructions, two.instructions);
    assert_ne!(one.constants.fingerprint, two.constants.fingerprint);
    assert!(first.contains(immediates[0]) && !second.contains(immediates[0]), "{first}");
    assert!(second.contains(immediates[1]), "{second}");
    assert!(!first.contains(&*data().to_string_lossy()) && !first.contains("site-packages"));
    assert_eq!(words_after(&first, "\t.file\t1 "), [format!("\"triton/{}.py\"", names[0])]);
}

#[test]
fn softmax_with_two_fill_values() {
    let table = table(&["*fp32", "*fp32", "i32", "i32"], &[("BLOCK", json!(1024))]);
    // Minus infinity, and zero in the place of it.
    pair(["softmax", "softmax_zero"], &table, ["%r2, -8388608;", "%r2, 0;"]);
}

#[test]
fn leaky_relu_with_two_slopes() {
    let table = table(&["*fp32", "*fp32", "i32"], &[("BLOCK", json!(1024))]);
    pair(["leaky_relu", "leaky_relu_steep"], &table, ["0f3C23D70A", "0f3DCCCCCD"]);
}

#[test]
fn what_only_the_compiler_knows_is_told() {
    let Some(installed) = Installed::find() else { return };
    let mut table = table(&["*fp32", "*fp32", "i32", "i32"], &[("BLOCK", json!(1024))]);
    let four = installed.compile("triton/softmax.py:softmax", &table).unwrap();
    table.num_warps = Some(8);
    table.target = Some("sm_90".to_string());
    let eight = installed.compile("triton/softmax.py:softmax", &table).unwrap();
    assert_eq!((four.block_threads, eight.block_threads), (Some(128), Some(256)));
    assert!(four.dynamic_shared_bytes > Some(0) && eight.dynamic_shared_bytes > four.dynamic_shared_bytes);
    assert_eq!(words_after(&text(&eight), ".target "), ["sm_90a"]);
}

#[test]
fn pointers_are_promised_to_be_aligned_unless_otherwise_said() {
    let Some(installed) = Installed::find() else { return };
    let mut table = table(&["*fp32", "*fp32", "i32"], &[("BLOCK", json!(1024))]);
    let vectors = |table: &CompileTable| {
        let ptx = text(&installed.compile("triton/leaky_relu.py:leaky_relu", table).unwrap());
        forms(&ptx).iter().filter(|(form, _)| form.contains(".v4.")).map(|(_, count)| count).sum::<usize>()
    };
    // The mask is not known to be the same for four neighbours, unless their number is divisible too.
    table.divisible_by_16 = Some(["out_ptr", "x_ptr", "count"].map(String::from).to_vec());
    assert!(vectors(&table) > 0);
    table.divisible_by_16 = Some(vec!["count".to_string()]);
    assert_eq!(vectors(&table), 0);
}

#[test]
fn a_tuned_kernel_with_a_helper_of_another_file() {
    let Some(installed) = Installed::find() else { return };
    let table = table(&["*fp16", "*fp16", "i32"], &[("BLOCK", json!(256)), ("EVEN", json!(true))]);
    let compiled = installed.compile("triton/variations.py:tuned", &table).unwrap();
    let ptx = text(&compiled);
    assert_eq!(words_after(&ptx, ".entry "), ["tuned"]);
    assert!(ptx.contains("\"triton/neighbour.py\"") && !ptx.contains(&*data().to_string_lossy()), "{ptx}");
}

#[test]
fn constants_of_every_kind() {
    let Some(installed) = Installed::find() else { return };
    let compiled = |value: Value, kind: &str| {
        let table = table(&["*fp32"], &[("VALUE", value), ("TYPE", json!(kind))]);
        installed.compile("triton/variations.py:filled", &table)
    };
    for (value, bits) in [(json!("float:-inf"), "-8388608"), (json!(1.5), "1069547520"), (json!(3), "1077936128")] {
        let ptx = text(&compiled(value.clone(), "type:float32").unwrap());
        assert!(ptx.contains(bits), "{value}:\n{ptx}");
    }
    let message = |value, kind| compiled(value, kind).unwrap_err().to_string();
    // What TOML writes as `-inf` arrives as nothing.
    assert!(message(Value::Null, "type:float32").contains("'VALUE' is not finite; write \"float:inf\""));
    assert!(message(json!("float:much"), "type:float32").contains("'VALUE' is not a number: \"float:much\""));
    assert!(message(json!([1]), "type:float32").contains("'VALUE' is neither a number nor"));
    assert!(message(json!(1), "type:float31").contains("'TYPE' is no type of triton.language"));
}

#[test]
fn what_is_missing_or_misspelt_is_named() {
    let Some(installed) = Installed::find() else { return };
    let good = table(&["*fp32", "*fp32", "i32", "i32"], &[("BLOCK", json!(128))]);
    let message = |source: &str, table: &CompileTable| installed.compile(source, table).unwrap_err().to_string();
    let softmax = "triton/softmax.py:softmax";
    let cases = [
        (message("triton/softmax.py:sofmax", &good), "has no kernel 'sofmax'; did you mean 'softmax'?"),
        (message("triton/variations.py:plain", &good), "'plain' of triton/variations.py is not a Triton kernel"),
        (message("triton/variations.py:NUMBER", &good), "it needs the decorator @triton.jit"),
        (
            message(softmax, &table(&["*fp32"], &[("BLOCK", json!(128))])),
            "4 arguments that are not constants (out_ptr, x_ptr, row_stride, columns), and compile.signature has 1 types",
        ),
        (
            message(softmax, &table(&["*fp32", "*fp32", "i32", "i32"], &[])),
            "'BLOCK' has no value; give it one in compile.constants",
        ),
        (
            message(softmax, &table(&["*fp32", "*fp32", "i32", "i32"], &[("BLCK", json!(128))])),
            "has no argument 'BLCK'; did you mean 'BLOCK'?",
        ),
        (
            message(softmax, &table(&["*float32", "*fp32", "i32", "i32"], &[("BLOCK", json!(128))])),
            "the type '*float32' of 'out_ptr' is not one of Triton",
        ),
        (
            message(softmax, &CompileTable { divisible_by_16: Some(vec!["x_pt".to_string()]), ..good.clone() }),
            "has 'x_pt', which is no argument with a type; did you mean 'x_ptr'?",
        ),
        (message("triton/absent.py:k", &good), "triton/absent.py is not there; paths are relative to"),
        (message("triton/raises.py:k", &good), "ValueError: this module does not want to be imported"),
        (message("triton/raises.py:k", &good), "triton/raises.py\", line 9, in <module>"),
        (message("triton/variations.py:wrong", &table(&["*fp32"], &[])), "no_such_name"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{expected}\n--\n{message}");
        assert!(!message.contains("<string>"), "{message}");
    }
}

#[test]
fn a_python_without_packages_is_told_what_to_install() {
    let Some(installed) = Installed::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python");
    fs::write(&python, format!("#!/bin/sh\nexec '{}' -S \"$@\"\n", installed.python.display())).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let bare = Installed { python: python.clone(), toolchain: installed.toolchain.without("nvcc") };
    let message = |source| bare.compile(source, &CompileTable::default()).unwrap_err().to_string();
    let triton = message("triton/softmax.py:softmax");
    assert!(
        triton.starts_with("no compiler for triton/softmax.py:softmax was found: Triton is not installed"),
        "{triton}"
    );
    let cuda = message("cuda/tile.cu");
    assert!(cuda.contains("finds no library libnvrtc") && cuda.contains("pip install nvidia-cuda-nvrtc"), "{cuda}");
    let found = Toolchain::find(&ToolSearch { python: Some(python), ..ToolSearch::default() });
    assert!(["ptxas", "cuobjdump", "nvdisasm", "nvcc"].iter().all(|tool| !found.has(tool)));
}

#[test]
fn a_module_that_ends_or_hangs_up_python_is_an_error() {
    let Some(installed) = Installed::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("import sys\nsys.exit(0)\n", "SystemExit: 0"),
        ("import os\nos._exit(0)\n", "gave no answer"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "was killed by SIGKILL"),
        ("import os\nos.write(2, b'last words')\nos.abort()\n", "last words"),
        ("x = bytearray(1 << 40)\n", "MemoryError"),
        ("import sys\nsys.stdout.write('x' * (64 << 20))\n", "printed more than"),
        ("def f(:\n", "SyntaxError"),
        ("import no_such_module_here\n", "ModuleNotFoundError: No module named 'no_such_module_here'"),
    ];
    for (code, expected) in cases {
        fs::write(folder.path().join("bad.py"), code).unwrap();
        let result = installed.compile_in(folder.path(), "bad.py:k", &table(&[], &[]), &installed.toolchain);
        let message = result.unwrap_err().to_string();
        assert!(message.contains(expected), "{code}\n--\n{message}");
    }
}
