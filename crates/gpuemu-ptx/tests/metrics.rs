//! What is measured of small kernels, each figure known beforehand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_model::artifact::{EntryMetrics, RegisterClass};
use gpuemu_ptx::{Source, metrics};

const HEAD: &str = ".version 8.4\n.target sm_80\n.address_size 64\n";

fn measure(text: &str) -> Vec<EntryMetrics> {
    let source = Source::new("k.ptx", format!("{HEAD}{text}"));
    let module = source.parse().unwrap_or_else(|error| panic!("{error}"));
    metrics::measure(&source, &module).unwrap_or_else(|error| panic!("{error}"))
}

fn one(text: &str) -> EntryMetrics {
    let mut entries = measure(text);
    assert_eq!(entries.len(), 1);
    entries.remove(0)
}

#[test]
fn a_file_with_two_kernels_is_two_kernels() {
    let entries = measure(
        ".entry first(.param .u64 p)\n.reqntid 128\n{ .shared .f32 tile[256]; .reg .b32 %r<3>; mov.b32 %r1, tile; ret; }\n\
         .func unused() { trap; }\n\
         .visible .entry second()\n.maxntid 64, 2\n{ .reg .pred %p<2>; @%p1 bra L; exit; L: ret; }",
    );
    let [first, second] = entries.as_slice() else { panic!("{} entries", entries.len()) };
    assert_eq!((first.entry.as_str(), first.line, first.instructions.total), ("first", 4, 2));
    assert_eq!((second.entry.as_str(), second.instructions.total, second.instructions.predicated), ("second", 3, 1));
    assert_eq!(first.shared.bytes, 1024);
    assert_eq!(first.shared.variables[0].element, "f32");
    assert_eq!((first.shared.variables[0].element_bytes, first.shared.variables[0].elements), (4, Some(256)));
    assert_eq!(second.shared.bytes, 0);
    let blocks = [first.block.unwrap(), second.block.unwrap()];
    assert_eq!((blocks[0].threads, blocks[0].exact, blocks[0].total()), ([128, 1, 1], true, 128));
    assert_eq!((blocks[1].threads, blocks[1].exact, blocks[1].total()), ([64, 2, 1], false, 128));
    assert_eq!(second.blocks, 3);
}

#[test]
fn memory_counts_elements_gaps_and_what_the_launch_decides() {
    let text = ".extern .shared .align 16 .b8 dynamic[];\n.shared .b8 flag;\n.shared .v4 .f32 rows[3][2];\n\
                .shared .f64 of_another[100];\n.const .f32 table[4] = {1.0, 2.0, 3.0, 4.0};\n.global .u32 counter;\n\
                .entry k() { .reg .b32 %r<4>; .local .align 8 .b8 depot[12]; .local .u16 half; .shared .f64 pad[1];\n\
                mov.u32 %r0, dynamic; mov.u32 %r1, flag; mov.u32 %r2, rows; ld.const.f32 %r3, [table+4];\n\
                atom.global.add.u32 %r3, [counter], 1; }\n\
                .entry other() { .reg .b32 %r<4>; mov.u32 %r0, of_another; }";
    let entries = measure(text);
    let shared = &entries[0].shared;
    assert!(shared.dynamic);
    let names: Vec<&str> = shared.variables.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["dynamic", "flag", "rows", "pad"]);
    assert_eq!((shared.variables[2].element.as_str(), shared.variables[2].bytes), ("v4.f32", Some(96)));
    // One byte, a gap of 15 before what is aligned to 16, 96 bytes, and 8.
    assert_eq!(shared.bytes, 16 + 96 + 8);
    assert_eq!(entries[0].local.bytes, 14);
    assert_eq!(entries[0].module_variables.len(), 2);
    assert_eq!((entries[1].shared.bytes, entries[1].shared.dynamic), (800, false));
}

#[test]
fn a_variable_of_the_function_hides_that_of_the_module() {
    let text =
        ".shared .f64 buffer[100];\n.entry k() { .reg .b32 %r<2>; .shared .f32 buffer[2]; mov.u32 %r0, buffer; }";
    assert_eq!(one(text).shared.bytes, 8);
}

#[test]
fn a_length_that_no_memory_has_does_not_wrap() {
    let text = ".shared .b64 huge[4611686018427387904];\n.entry k() { .reg .b32 %r; mov.u32 %r, huge; }";
    let shared = one(text).shared;
    assert!(shared.dynamic && shared.variables[0].bytes.is_none());
}

#[test]
fn functions_that_are_called_count_once() {
    let text = ".extern .func vprintf(.param .b64 a);\n.func leaf() { .local .b8 depot[4]; ret; }\n\
                .func middle() { call leaf; call leaf; ret; }\n.func idle() { ret; }\n\
                .entry k() { call middle; call.uni leaf; { .param .b64 a; call.uni vprintf, (a); } ret; }";
    let metrics = one(text);
    assert_eq!(metrics.calls, ["leaf", "middle", "vprintf"]);
    assert_eq!(metrics.instructions.total, 4 + 3 + 1);
    assert_eq!(metrics.local.bytes, 4);
}

#[test]
fn a_function_that_calls_itself_is_measured_once() {
    assert_eq!(one(".func again() { call again; ret; }\n.entry k() { call again; ret; }").instructions.total, 4);
}

#[test]
fn a_call_through_a_register_is_said() {
    let text = ".entry k() { .reg .b64 f; proto: .callprototype _ (); call f, proto; ret; }";
    assert_eq!(one(text).calls, ["(through a register)"]);
}

#[test]
fn registers_by_class() {
    let text = ".entry k() { .reg .pred %p<5>; .reg .b16 %h<2>; .reg .f32 %f<7>, x; .reg .b64 %d<3>; .reg .v2 .u32 v;\n\
                .reg .b128 q; { .reg .b32 inner; mov.b32 inner, 0; } ret; }";
    let registers = one(text).registers;
    let expected = [
        (RegisterClass::Predicate, 5),
        (RegisterClass::Bits16, 2),
        (RegisterClass::Bits32, 7 + 1 + 2 + 1),
        (RegisterClass::Bits64, 3),
        (RegisterClass::Bits128, 1),
    ];
    assert_eq!(registers.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn groups_and_widths() {
    let text = ".entry k() { .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred p;\n\
                @p ld.global.nc.L1::evict_last.v4.b32 {%r1, %r2, %r3, %r4}, [%d1]; ld.global.b16 %r1, [%d1]; st.global.v2.f64 [%d1], {%d1, %d2};\n\
                st.local.b32 [%d1], %r1; @!p ld.local.b32 %r1, [%d1]; atom.global.add.u32 %r1, [%d1], 1;\n\
                cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;\n\
                mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2, %r3, %r4};\n\
                add.s32 %r1, %r1, 1; mov.b32 %r1, %r2; shfl.sync.idx.b32 %r1, %r2, 0, 31, -1; bra L; L: ret; }";
    let metrics = one(text);
    let counts = &metrics.instructions;
    let found =
        [counts.memory, counts.arithmetic, counts.tensor_core, counts.control, counts.synchronisation, counts.movement];
    assert_eq!(found, [7, 1, 1, 2, 3, 2]);
    assert_eq!((counts.predicated, metrics.local_loads, metrics.local_stores), (2, 1, 1));
    let accesses: Vec<(&str, Option<u64>, u64)> =
        metrics.global_accesses.iter().map(|access| (access.kind.as_str(), access.bytes, access.vector)).collect();
    let expected = [
        ("atomic", Some(4), 1),
        ("copy", Some(16), 1),
        ("load", Some(2), 1),
        ("load", Some(16), 4),
        ("store", Some(16), 2),
    ];
    assert_eq!(accesses, expected);
}

#[test]
fn loops_and_blocks() {
    let text = ".entry k() { .reg .pred p; OUTER: INNER: @p bra INNER; @p bra OUTER; ret; }";
    let metrics = one(text);
    assert_eq!((metrics.blocks, metrics.loops), (3, 1), "two labels of one place are one loop");
    let text = ".entry k() { .reg .pred p; .reg .b32 r; OUTER: mov.b32 r, 0; INNER: @p bra INNER; @p bra OUTER; ret; }";
    let metrics = one(text);
    assert_eq!((metrics.blocks, metrics.loops, metrics.loop_depth), (4, 2, 2));
}

fn slope(value: &str) -> EntryMetrics {
    one(&format!(
        ".const .f32 table[2] = {{1.0, 2.0}};\n.entry k() {{ .reg .f32 %f<3>; ld.const.f32 %f0, [table]; mul.f32 %f1, %f2, {value}; ret; }}"
    ))
}

#[test]
fn constants_tell_kernels_with_equal_counts_apart() {
    let (small, large) = (slope("0f3C23D70A"), slope("0f3DCCCCCD"));
    assert_eq!(small.instructions, large.instructions);
    assert_ne!(small.constants.fingerprint, large.constants.fingerprint);
    assert_eq!(small.constants.values["mul.f32 0f3C23D70A (0.01)"], 1);
    assert_eq!(small.constants.values[".const .f32[2] = 0d3FF0000000000000 0d4000000000000000"], 1);
    assert_eq!(small, slope("0f3C23D70A"));
}

#[test]
fn bits_that_are_a_float_say_so() {
    let constants = |body: &str| one(&format!(".entry k() {{ .reg .b32 r; {body} }}")).constants.values;
    let shown = constants("mov.b32 r, -8388608; mov.b32 r, 1065353216; mov.b32 r, 255; add.s32 r, r, 1065353216;");
    let expected = [
        "add.s32 1065353216",
        "mov.b32 -8388608 (0xFF800000, -inf as float32)",
        "mov.b32 1065353216 (0x3F800000, 1 as float32)",
        "mov.b32 255",
    ];
    assert_eq!(shown.into_keys().collect::<Vec<_>>(), expected);
}

#[test]
fn the_recorded_pairs_are_told_apart_by_their_constants() {
    for pair in [["softmax", "softmax_zero"], ["leaky_relu", "leaky_relu_steep"]] {
        let [right, wrong] = pair.map(|name| {
            let path = format!("{}/tests/data/ptx/pairs/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
            let source = Source::read(path.as_ref()).unwrap();
            metrics::measure(&source, &source.parse().unwrap()).unwrap().remove(0)
        });
        assert_eq!(right.instructions, wrong.instructions);
        assert_eq!((right.registers, right.blocks, right.shared), (wrong.registers, wrong.blocks, wrong.shared));
        assert_ne!(right.constants.fingerprint, wrong.constants.fingerprint, "{pair:?}");
    }
}

#[test]
fn names_of_registers_and_notations_of_numbers_are_no_constants() {
    let kernel = |register: &str, label: &str, number: &str, offset: &str| {
        let text = format!(
            ".entry k() {{ .reg .b32 {register}<9>; .reg .b64 d; {label}: add.s32 {register}1, {register}2, {number}; ld.global.b32 {register}3, [d+{offset}]; bra {label}; }}"
        );
        one(&text).constants
    };
    let first = kernel("%r", "L1", "-1", "16");
    assert_eq!(first, kernel("%other", "START", "0xFFFFFFFF", "0x10"));
    assert_ne!(first, kernel("%r", "L1", "-1", "20"));
    assert_ne!(first, kernel("%r", "L1", "1", "16"));
}

#[test]
fn what_a_variable_holds_is_a_constant_however_long() {
    let kernel = |last: u32| {
        let mut values: Vec<String> = (0..99).map(|value| value.to_string()).collect();
        values.push(last.to_string());
        let list = values.join(", ");
        one(&format!(".global .u32 t[100] = {{{list}}};\n.entry k() {{ .reg .b64 d; mov.u64 d, t; }}")).constants
    };
    assert_ne!(kernel(1), kernel(2));
    assert_eq!(kernel(1), kernel(1));
}
