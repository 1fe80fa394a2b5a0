//! Rules that a configuration asks for, severities, silencing.

use std::collections::BTreeMap;
use std::path::Path;

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{CompiledMetrics, KernelArtifact, LintResult, NotMeasured, Severity};

use super::{lint_text, measured};
use crate::flow::uses::tests::module_text;
use crate::lint::{lint, parse_rules, unknown_rule_names};
use crate::source::Source;

const BODY: &str = "atom.global.add.u32 %r1, [%rd1], 1;\n atom.global.add.u32 %r1, [%rd1], 2;\n ret;";

fn compiled(architecture: &str, registers: u64, spilled: u64, stack: u64) -> CompiledMetrics {
    CompiledMetrics {
        architecture: architecture.into(),
        registers: Some(registers),
        spill_store_bytes: Some(spilled),
        stack_bytes: Some(stack),
        ..CompiledMetrics::default()
    }
}

fn checked(checks: &ArtifactChecks, change: impl FnOnce(&mut KernelArtifact)) -> LintResult {
    let source = Source::new("test.ptx", module_text("", BODY));
    let mut artifact = measured(&source);
    change(&mut artifact);
    lint(&source, &source.parse().unwrap(), &artifact, checks, &[]).unwrap()
}

fn messages(result: &LintResult) -> Vec<&str> {
    result.findings.iter().map(|finding| finding.message.as_str()).collect()
}

fn limits() -> ArtifactChecks {
    ArtifactChecks {
        max_registers: Some(64),
        max_spills: Some(0),
        max_local_memory_bytes: Some(0),
        ..ArtifactChecks::default()
    }
}

#[test]
fn the_worst_architecture_is_named() {
    let result = checked(&limits(), |artifact| {
        artifact.entries[0].compiled = vec![compiled("sm_80", 64, 0, 0), compiled("sm_90", 100, 10, 24)];
    });
    assert_eq!(
        messages(&result),
        [
            "100 registers of a thread on sm_90, at most 64 are allowed (max_registers)",
            "3 registers are spilled to local memory on sm_90, at most 0 are allowed (max_spills)",
            "24 bytes of stack of a thread on sm_90, at most 0 are allowed (max_local_memory_bytes)",
        ]
    );
    assert!(result.findings.iter().all(|finding| finding.severity == Severity::Error && finding.line == Some(4)));
    let result = checked(&limits(), |artifact| artifact.entries[0].compiled = vec![compiled("sm_80", 64, 0, 0)]);
    assert_eq!((result.findings.len(), result.not_checked.len()), (0, 0));
}

#[test]
fn without_an_assembler_limits_are_not_checked_and_declared_memory_is() {
    let missing = |artifact: &mut KernelArtifact| {
        let (what, why) = ("registers, spills, stack and barriers".to_string(), "ptxas was not found".to_string());
        artifact.not_measured = vec![NotMeasured { what, why }];
    };
    let result = checked(&limits(), missing);
    let names: Vec<&str> = result.not_checked.iter().map(|missing| missing.rule.as_str()).collect();
    assert_eq!(names, ["max-local-memory", "max-registers", "max-spills"]);
    assert!(result.not_checked.iter().all(|missing| missing.why == "ptxas was not found"));
    assert!(result.findings.is_empty());
    let result = checked(&limits(), |artifact| {
        missing(artifact);
        artifact.entries[0].local.bytes = 64;
    });
    let wanted =
        "the PTX declares 64 bytes of local memory of a thread, at most 0 are allowed (max_local_memory_bytes)";
    assert_eq!(messages(&result), [wanted]);
    assert_eq!(result.not_checked.len(), 2);
    assert_eq!(checked(&ArtifactChecks::default(), |_| {}).not_checked, []);
}

#[test]
fn one_architecture_without_figures_is_named() {
    let result = checked(&limits(), |artifact| {
        let without = CompiledMetrics { registers: None, ..compiled("sm_90", 0, 0, 0) };
        artifact.entries[0].compiled = vec![compiled("sm_80", 64, 0, 0), without];
    });
    assert_eq!(result.not_checked.len(), 1);
    assert_eq!(result.not_checked[0].why, "not measured for sm_90");
}

/// An architecture that could not be assembled for has no figures at all: what is there must not stand for it.
#[test]
fn an_architecture_that_was_not_assembled_is_not_passed_by_another() {
    let checks = ArtifactChecks { forbidden_instructions: vec!["LDG".into()], ..limits() };
    let result = checked(&checks, |artifact| {
        let missing = |what: &str, why: &str| NotMeasured { what: what.into(), why: why.into() };
        artifact.entries[0].compiled =
            vec![CompiledMetrics { sass: Some(BTreeMap::new()), ..compiled("sm_80", 64, 0, 0) }];
        artifact.not_measured = vec![
            missing("registers, spills, stack and barriers", "sm_90: ptxas 13.0: feature is not there"),
            missing("machine instructions", "sm_90: there is no machine code"),
            missing("what function f adds to stack and spills", "sm_80: ptxas counts it apart"),
        ];
    });
    let not_checked: Vec<(&str, &str)> =
        result.not_checked.iter().map(|missing| (missing.rule.as_str(), missing.why.as_str())).collect();
    assert_eq!(
        not_checked,
        [
            ("forbidden-instruction", "`LDG` is a pattern of machine code: sm_90: there is no machine code"),
            ("max-local-memory", "sm_80: ptxas counts it apart"),
            ("max-local-memory", "sm_90: ptxas 13.0: feature is not there"),
            ("max-registers", "sm_90: ptxas 13.0: feature is not there"),
            ("max-spills", "sm_80: ptxas counts it apart"),
            ("max-spills", "sm_90: ptxas 13.0: feature is not there"),
        ]
    );
    assert!(result.findings.is_empty());
}

#[test]
fn forbidden_and_required_instructions() {
    let checks = ArtifactChecks {
        forbidden_instructions: vec!["atom.u32".into(), "ld.global".into(), "LDG.E".into()],
        required_instructions: vec!["mma.sync".into(), "ret".into(), "".into()],
        ..ArtifactChecks::default()
    };
    let result = checked(&checks, |_| {});
    assert_eq!(
        messages(&result),
        [
            "required instruction `mma.sync` is not there",
            "pattern '' is empty, write an opcode such as `ld.global`",
            "forbidden instruction `atom.u32` is there 2 times",
        ]
    );
    assert_eq!(result.findings[2].line, Some(12));
    assert!(result.findings.iter().all(|finding| finding.severity == Severity::Error));
    let why = "`LDG.E` is a pattern of machine code: the PTX was not assembled";
    assert_eq!((result.not_checked.len(), result.not_checked[0].why.as_str()), (1, why));
    let result = checked(&checks, |artifact| {
        let sass = [("LDG.E.128".to_string(), 7), ("STG.E".to_string(), 1)].into_iter().collect();
        artifact.entries[0].compiled = vec![CompiledMetrics { sass: Some(sass), ..compiled("sm_80", 1, 0, 0) }];
    });
    assert!(messages(&result).contains(&"forbidden instruction `LDG.E` is there 7 times on sm_80"));
}

#[test]
fn shared_memory_beyond_the_limit_is_an_error() {
    let with = |bytes: u64| checked(&ArtifactChecks::default(), |artifact| artifact.entries[0].shared.bytes = bytes);
    assert!(with(49_152).findings.is_empty());
    assert!(messages(&with(49_153))[0].starts_with("49153 bytes of static shared memory, at most 49152 may be static"));
    let wanted = "170000 bytes of static shared memory, a block of sm_80 has at most 166912 in all";
    assert_eq!(messages(&with(170_000)), [wanted]);
}

#[test]
fn severities_change_and_silenced_findings_are_counted() {
    let mut checks =
        ArtifactChecks { forbidden_instructions: vec!["atom".into(), "ret".into()], ..ArtifactChecks::default() };
    checks.severity.insert("forbidden-instruction".into(), Severity::Note);
    let result = checked(&checks, |_| {});
    assert!(result.findings.iter().all(|finding| finding.severity == Severity::Note));
    assert_eq!(result.findings.len(), 2);
    checks.allow.push("forbidden-instruction".into());
    let result = checked(&checks, |_| {});
    assert!(result.findings.is_empty());
    assert_eq!(result.silenced.get("forbidden-instruction"), Some(&2));
}

#[test]
fn a_note_stays_a_note_where_its_rule_is_raised() {
    let body = "ld.param.u64 %rd1, [a];\n ld.param.u32 %r2, [stride];\n mov.u32 %r1, %ctaid.x;\n shl.b32 %r3, %r1, 8;\n\
                mad.wide.s32 %rd2, %r3, 4, %rd1;\n ld.global.f32 %f1, [%rd2];\n mul.lo.s32 %r4, %r1, %r2;\n\
                mad.wide.s32 %rd3, %r4, 4, %rd1;\n ld.global.f32 %f1, [%rd3];\n ret;";
    let mut checks = ArtifactChecks::default();
    checks.severity.insert("address-overflow".into(), Severity::Error);
    let result = lint_text(&module_text("", body), &checks, &[]);
    let severities: Vec<_> = result.findings.iter().map(|finding| finding.severity).collect();
    assert_eq!(severities, [Severity::Note, Severity::Error]);
}

#[test]
fn rules_of_the_project_are_checked() {
    let text = "[[rules]]\nname = \"no-atomics\"\nseverity = \"error\"\npattern = \"atom.global\"\n\
                message = \"no atomics\"\n\
                [[rules]]\nname = \"some-loops\"\nmetric = \"loops\"\nminimum = 1\nmessage = \"needs a loop\"\n\
                [[rules]]\nname = \"few-registers\"\nmetric = \"compiled.registers\"\nthreshold = 3\nmessage = \"m\"\n\
                [[rules]]\nname = \"others\"\npattern = \"ret\"\nmessage = \"m\"\nkernels = [\"matmul_*\"]\n";
    let rules = parse_rules(Path::new("rules.toml"), text).unwrap();
    let result = lint_text(&module_text("", BODY), &ArtifactChecks::default(), &rules);
    assert_eq!(
        messages(&result),
        ["needs a loop (loops is 0, at least 1 is wanted)", "no atomics (`atom.global` is 2, at most 0 is wanted)"]
    );
    assert_eq!(result.findings[1].line, Some(12));
    assert_eq!(result.findings[1].severity, Severity::Error);
    assert_eq!(result.not_checked.len(), 1);
    assert_eq!(result.not_checked[0].why, "compiled.registers: the PTX was not assembled");
    let checks = ArtifactChecks { allow: vec!["no-atomics".into()], ..ArtifactChecks::default() };
    let result = lint_text(&module_text("", BODY), &checks, &rules);
    assert_eq!((result.findings.len(), result.silenced.get("no-atomics")), (1, Some(&1)));
}

#[test]
fn names_that_no_rule_has_are_told_with_the_nearest() {
    let mut checks = ArtifactChecks { allow: vec!["max-spill".into(), "max-spills".into()], ..Default::default() };
    checks.severity.insert("banana".into(), Severity::Note);
    let unknown = unknown_rule_names(&checks, &[]);
    assert_eq!(unknown, [("max-spill".to_string(), Some("max-spills".to_string())), ("banana".to_string(), None)]);
}

#[test]
fn an_entry_that_was_not_measured_is_not_passed() {
    let result = checked(&limits(), |artifact| artifact.entries.clear());
    assert!(result.not_checked.iter().any(|missing| missing.rule == "shared-memory-limit"));
    assert!(result.not_checked.iter().all(|missing| missing.why == "nothing was measured of 'kernel'"));
}

#[test]
fn what_a_called_function_does_is_told_of_the_first_entry() {
    let function = ".func helper()\n{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\nmov.u32 %r1, %tid.x;\n\
                    setp.lt.s32 %p1, %r1, 3;\n@%p1 bra L;\nbar.sync 0;\nL: ret;\n}\n";
    let entry = |name: &str| format!(".visible .entry {name}()\n{{\ncall.uni helper;\nret;\n}}\n");
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let text = format!("{head}{function}{}{}", entry("first"), entry("second"));
    let result = lint_text(&text, &ArtifactChecks::default(), &[]);
    assert_eq!(result.findings.len(), 1);
    assert_eq!((result.findings[0].entry.as_str(), result.findings[0].line), ("first", Some(11)));
    assert!(result.findings[0].message.ends_with(" (in function 'helper')"));
}
