//! What compilers write, read piece by piece: the parsed form printed back, and the words of errors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_ptx::Source;
use gpuemu_ptx::syntax::{
    Address, AddressBase, Float, Initialiser, Instruction, Integer, Item, Module, Operand, Statement,
};

const HEAD: &str = ".version 8.4\n.target sm_80\n.address_size 64\n";

fn in_body(body: &str) -> String {
    format!("{HEAD}.visible .entry k(.param .u64 p)\n{{\n{body}\n}}\n")
}

/// The statements of a body, printed one by one.
fn printed(body: &str) -> Vec<String> {
    let source = Source::new("k.ptx", in_body(body));
    let module = source.parse().unwrap_or_else(|error| panic!("{error}"));
    let again = Source::new("again.ptx", module.to_string());
    assert_eq!(again.parse().unwrap_or_else(|error| panic!("{error}")), module);
    statements(&module).iter().map(|statement| statement.to_string().trim().to_string()).collect()
}

fn statements<'m, 'a>(module: &'m Module<'a>) -> &'m [Statement<'a>] {
    module.entries().next().unwrap().body.as_deref().unwrap()
}

/// The operands of the one instruction of a body.
fn instruction<R>(body: &str, look: impl FnOnce(&Instruction<'_>) -> R) -> R {
    let source = Source::new("k.ptx", in_body(body));
    let module = source.parse().unwrap_or_else(|error| panic!("{error}"));
    match statements(&module) {
        [Statement::Instruction(instruction)] => look(instruction),
        other => panic!("{other:?}"),
    }
}

/// The error of a whole file.
fn error(text: &str) -> String {
    let source = Source::new("k.ptx", text);
    let error = source.parse().err().unwrap_or_else(|| panic!("this was accepted:\n{text}"));
    error.to_string().lines().next().unwrap().to_string()
}

fn body_error(body: &str) -> String {
    error(&in_body(body))
}

#[test]
fn operands_of_every_kind() {
    let lines = [
        "mov.u32 %r1, %tid.x;",
        "@!%p1 bra $L__BB0_1;",
        "setp.lt.and.s32 %p1|%p2, %r1, -5, !%p3;",
        "ld.global.v4.b32 {%r1, _, %r3, %r4}, [%rd1+-16];",
        "st.shared::cta.b32 [smem+4], 0f3F800000;",
        "mov.u64 %rd1, table+8;",
        "shfl.sync.idx.b32 %r1|_, %r2, 0, 31, -1;",
        "fma.rn.f64 %fd1, %fd2, 0d3FF0000000000000, 0dBFF0000000000000;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, sampler, {%f5, %f6}];",
        "call.uni (result), helper, (first, second);",
        "call (result), %rd1, (first), prototype;",
        "ret;",
        "ld.global.u32 %r1, [4096];",
        "and.b64 %rd1, %rd2, 18446744073709551615U;",
    ];
    for line in lines {
        assert_eq!(printed(line), [line]);
    }
}

#[test]
fn blanks_comments_and_line_markers_say_nothing() {
    let body = "cp.async.cg.shared.global [ %r18 + 0 ], [ %rd8 + 0 ], 0x10, %r20; // copy\n# 12 \"k.cu\"\n/* two\nlines */ @ %p1  bra  L ;";
    assert_eq!(printed(body), ["cp.async.cg.shared.global [%r18], [%rd8], 16, %r20;", "@%p1 bra L;"]);
}

#[test]
fn declarations_of_every_space() {
    let lines = [
        ".reg .pred %p<5>;",
        ".reg .b32 %r<4>, %x, %y;",
        ".reg .v4 .f32 %v;",
        ".shared .align 16 .b8 tile[1024];",
        ".shared .f32 grid[16][16];",
        ".local .align 4 .b8 __local_depot0[28];",
        ".param .align 8 .b8 retval0[16];",
    ];
    for line in lines {
        assert_eq!(printed(line), [line]);
    }
}

#[test]
fn what_stands_outside_of_functions() {
    let items = [
        ".extern .shared .align 16 .b8 global_smem[];",
        ".const .align 4 .b8 cst[64];",
        ".const[2] .u32 banked;",
        ".global .align 1 .b8 $str[6] = {105, 61, 37, 100, 10};",
        ".global .attribute(.managed) .s32 counter = -1;",
        ".visible .global .align 8 .u64 pointers[2] = {generic(table), table+8};",
        ".global .b8 bytes[2] = {255(table), 65280(table+4)};",
        ".global .f32 weights[2] = {0f3F800000, 0f40000000};",
        ".file 1 \"/src/kernels.py\"",
        ".file 2 \"a.cu\", 1694000000, 1234",
        ".pragma \"nounroll\";",
        ".alias alias_of, helper;",
        ".weak .func (.param .b32 func_retval0) helper(.param .b32 a, .param .align 8 .b8 b[16])\n.noreturn ;",
        ".extern .func (.param .b32 func_retval0) vprintf(.param .b64 a, .param .b64 b);",
    ];
    for item in items {
        let source = Source::new("k.ptx", format!("{HEAD}{item}\n"));
        let module = source.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(module.items[0].to_string(), item);
        let again = Source::new("again.ptx", module.to_string());
        assert_eq!(again.parse().unwrap(), module);
    }
}

#[test]
fn entries_keep_their_parameters_and_limits() {
    let text = format!(
        "{HEAD}.visible .entry softmax(\n\t.param .u64 .ptr .global .align 1 a,\n\t.param .u32 n\n)\n\
         .reqntid 128\n.minnctapersm 2\n.maxntid 128, 2, 1\n{{ ret; }}\n.entry bare {{ }}\n"
    );
    let source = Source::new("k.ptx", text);
    let module = source.parse().unwrap();
    let names: Vec<&str> = module.entries().map(|entry| entry.name).collect();
    assert_eq!(names, ["softmax", "bare"]);
    let entry = module.entries().next().unwrap();
    assert_eq!(entry.directive("reqntid"), Some([128].as_slice()));
    assert_eq!(entry.directive("maxntid"), Some([128, 2, 1].as_slice()));
    assert_eq!(entry.parameters[0].to_string(), ".param .u64 .ptr .global .align 1 a");
    assert_eq!(module.version, (8, 4));
    assert_eq!(module.architecture(), "sm_80");
}

#[test]
fn locations_labels_blocks_and_targets() {
    let body = "L0:\n.loc 1 12 5, function_name $L__info_string0, inlined_at 1 20 9\n{ .reg .b32 t; mov.b32 t, 1; }\n\
                table: .branchtargets L0, L1;\nproto: .callprototype (.param .b32 _) _ (.param .b64 _);\nL1:";
    let statements = printed(body);
    assert_eq!(statements[1], ".loc 1 12 5, function_name $L__info_string0, inlined_at 1 20 9");
    assert_eq!(statements[2], "{\n\t.reg .b32 t;\n\tmov.b32 t, 1;\n\t}");
    assert_eq!(statements[4], ".branchtargets L0, L1;");
    assert_eq!(statements[6], ".callprototype (.param .b32 _) _(.param .b64 _);");
    assert_eq!(statements[7], "L1:");
}

#[test]
fn debug_sections() {
    let section = ".section .debug_info\n{\n.b32 180\n.b8 2, 0\n.b32 .debug_abbrev\n$L__begin:\n.b64 $L__func_begin0\n\
                   .b64 $L__end-$L__begin\n.b32 .debug_str+12\n.b8 -1\n}";
    let source = Source::new("k.ptx", format!("{HEAD}{section}\n.section .debug_macinfo {{ }}\n"));
    let module = source.parse().unwrap();
    assert_eq!(module.items[0].to_string(), section);
    assert_eq!(module.items.len(), 2);
}

#[test]
fn numbers_in_every_notation() {
    let values = [
        ("10", 10),
        ("0x1F", 31),
        ("0b101", 5),
        ("017", 15),
        ("-7", -7),
        ("4 * (2 + 3) - 1", 19),
        ("1 << 4 | 1", 17),
        ("7 / 2 % 2 == 1 ? 8 : 9", 8),
        ("~0", -1),
        ("-9223372036854775808", i64::MIN),
        ("WARP_SZ", 32),
    ];
    for (written, value) in values {
        let found = instruction(&format!("mov.b64 %rd1, {written};"), |found| found.operands[1].clone_integer());
        assert_eq!(found, Some(Integer::signed(value)), "{written}");
    }
    for (written, bits) in [("0x1FU", 31), ("0xFFFFFFFFFFFFFFFF", u64::MAX), ("(.u64)3", 3)] {
        let found = instruction(&format!("mov.b64 %rd1, {written};"), |found| found.operands[1].clone_integer());
        assert_eq!(found, Some(Integer { bits, unsigned: true }), "{written}");
    }
    for (written, value) in [("1.5", 1.5), ("-2.0", -2.0), ("1e3", 1000.0), ("2.5e-1", 0.25), ("1.5 + 1", 2.5)] {
        let found = instruction(&format!("mov.f64 %fd1, {written};"), |found| match found.operands[1] {
            Operand::Float(Float::Double(bits)) => f64::from_bits(bits),
            ref other => panic!("{written}: {other:?}"),
        });
        assert_eq!(found, value, "{written}");
    }
}

trait IntegerOf {
    fn clone_integer(&self) -> Option<Integer>;
}

impl IntegerOf for Operand<'_> {
    fn clone_integer(&self) -> Option<Integer> {
        match self {
            Operand::Integer(integer) => Some(*integer),
            _ => None,
        }
    }
}

#[test]
fn addresses_may_be_computed() {
    let base = instruction("ld.global.u32 %r1, [%rd1+4*2-1];", |found| found.operands[1].to_string());
    assert_eq!(base, "[%rd1+7]");
    instruction("ld.global.u32 %r1, [%rd1-8];", |found| match &found.operands[1] {
        Operand::Address(Address { base: AddressBase::Name("%rd1"), offset: -8, rest }) => assert!(rest.is_empty()),
        other => panic!("{other:?}"),
    });
}

#[test]
fn modifiers_and_types_of_an_instruction() {
    instruction("@%p1 ld.volatile.shared::cta.v2.b32 {%r1, %r2}, [%r3];", |found| {
        assert_eq!(found.base(), "ld");
        assert!(found.has("shared") && found.has("volatile") && !found.has("share"));
        assert_eq!(found.types().map(|scalar| scalar.name()).collect::<Vec<_>>(), ["b32"]);
        assert_eq!(found.results(), 1);
    });
    instruction("st.global.b32 [%rd1], %r1;", |found| assert_eq!(found.results(), 0));
}

#[test]
fn nested_initialisers() {
    let source = Source::new("k.ptx", format!("{HEAD}.global .u32 m[2][2] = {{{{1, 2}}, {{3, 4}}}};\n"));
    let module = source.parse().unwrap();
    let Item::Variables(declaration) = &module.items[0] else { panic!("{:?}", module.items) };
    let Some(Initialiser::List(rows)) = &declaration.variables[0].initialiser else { panic!("{declaration}") };
    assert_eq!(rows.len(), 2);
    assert_eq!(declaration.bytes(&declaration.variables[0]), Some(16));
}

#[test]
fn errors_name_the_place_and_what_was_wanted() {
    assert_eq!(error(""), "k.ptx:1:1: not PTX: expected `.version`, found the end of the file");
    assert_eq!(error("#include <cuda.h>\n"), "k.ptx:1:1: not PTX: expected `.version`, found `#`");
    assert_eq!(error("hello world"), "k.ptx:1:1: not PTX: expected `.version`, found `hello`");
    assert_eq!(error(".version x"), "k.ptx:1:10: expected a version such as 8.4, found `x`");
    assert_eq!(error(".version 8.4\n.address_size 64"), "k.ptx:2:15: expected `.target` after `.version`, found `64`");
    assert_eq!(
        error(&format!("{HEAD}.address_size 16")),
        "k.ptx:4:2: `.address_size` is no directive outside of functions"
    );
    assert_eq!(
        error(&format!("{HEAD}.entry k(.param .u64 a")),
        "k.ptx:4:23: expected ',' or ')' after a parameter, found the end of the file"
    );
    assert_eq!(
        error(&format!("{HEAD}.entry k() .reqntids 3 {{}}")),
        "k.ptx:4:13: `.reqntids` is no directive of a function"
    );
    assert_eq!(
        error(&format!("{HEAD}.entry k()\n{{\n ret;\n")),
        "k.ptx:7:1: expected '}' to end what '{' begins in line 5, found the end of the file"
    );
    assert_eq!(
        error(&format!("{HEAD}.global .b8 x[3] = {{1, 2")),
        "k.ptx:4:25: expected ',' or '}' in the values of a variable, found the end of the file"
    );
    assert_eq!(
        body_error("add.s32 %r1, %r2 %r3;"),
        "k.ptx:6:18: expected ',' or ';' in the operands of `add.s32`, found `%r3`"
    );
    assert_eq!(body_error("add.s32 %r1, , %r3;"), "k.ptx:6:14: expected an operand, found `,`");
    assert_eq!(body_error("ld.global.b32 %r1, [%rd1;"), "k.ptx:6:25: expected ']' after an address, found `;`");
    assert_eq!(
        body_error("mov.b32 %r1, 0f3F80;"),
        "k.ptx:6:14: `0f3F80` is not a number: 0f takes 8 hexadecimal digits, 0d takes 16"
    );
    assert_eq!(
        body_error("mov.b32 %r1, 99999999999999999999;"),
        "k.ptx:6:14: `99999999999999999999` is not a number of at most 64 bits"
    );
    assert_eq!(body_error("mov.b32 %r1, 1/0;"), "k.ptx:6:15: `/` cannot be computed here");
    assert_eq!(body_error("mov.u32 %r1, -%r2;"), "k.ptx:6:15: expected a number, found `%r2`");
    assert_eq!(body_error("mov.u32 %r1, a[1];"), "k.ptx:6:15: `a[...]` as an operand: give the address as [a+bytes]");
    assert_eq!(body_error(".regs .b32 x;"), "k.ptx:6:2: `.regs` is no directive of a function's body");
    assert_eq!(body_error(".reg .b33 x;"), "k.ptx:6:7: `.b33` says nothing of a variable");
    assert_eq!(body_error(".shared .align 3 .b8 x[3];"), "k.ptx:6:10: an alignment of 3 is no power of two");
    assert_eq!(body_error("/* no end"), "k.ptx:6:1: the comment that begins here has no end");
    assert_eq!(body_error(".pragma \"no end;"), "k.ptx:6:9: the text that begins here has no closing quote");
    assert_eq!(body_error("@%p1 {"), "k.ptx:6:6: expected an instruction after its guard, found `{`");
    assert_eq!(body_error("add .s32 %r1, %r2, %r3;"), "k.ptx:6:6: a blank before `.s32`: write `add.s32`");
    assert_eq!(body_error("ret;;"), "k.ptx:6:5: expected an instruction, a label or '}', found `;`");
    assert_eq!(body_error("mov.b32 %r1, 12u;"), "k.ptx:6:14: `12u` is not a number of at most 64 bits");
    assert_eq!(body_error("mövé %r1;"), "k.ptx:6:1: `m` is no instruction of PTX");
    assert_eq!(body_error("move.b32 %r1;"), "k.ptx:6:1: `move` is no instruction of PTX");
    assert_eq!(body_error("The kernel is fast;"), "k.ptx:6:1: `The` is no instruction of PTX");
}

#[test]
fn an_error_shows_its_line() {
    let source = Source::new("k.ptx", in_body("\tadd.s32 %r1, %r2 %r3;"));
    let text = source.parse().unwrap_err().to_string();
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["  \tadd.s32 %r1, %r2 %r3;", "  \t                 ^"]);
}
