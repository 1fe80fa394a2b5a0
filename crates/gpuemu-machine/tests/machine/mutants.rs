//! Real kernels with one thing wrong: each mutant must be reported, or be listed with the reason why it does no harm.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpuemu_machine::conformance::Pack;
use gpuemu_machine::{Launch, LaunchOptions, Program};
use gpuemu_model::emulation::AccessFault;
use gpuemu_ptx::Source;
use gpuemu_ptx::syntax::{Instruction, Statement};

/// One change to the text of a kernel.
struct Mutant {
    kernel: String,
    /// What was done, and where.
    name: String,
    text: String,
}

/// Recorded launches of a kernel, with what they left behind.
struct Recorded {
    entry: String,
    launches: Vec<Launched>,
}

/// One of them: what is launched, what the chip left behind, and what the kernel prints.
struct Launched {
    launch: Launch,
    after: Vec<Option<Vec<u8>>>,
    printed: String,
}

fn instructions<'m, 'a>(body: &'m [Statement<'a>], into: &mut Vec<&'m Instruction<'a>>) {
    for statement in body {
        match statement {
            Statement::Instruction(instruction) => into.push(instruction),
            Statement::Block(inner) => instructions(inner, into),
            _ => {}
        }
    }
}

/// The changes that are made to a kernel.
fn mutants(kernel: &str, source: &Source) -> Vec<Mutant> {
    let module = source.parse().unwrap();
    let mut all = Vec::new();
    module.entries().for_each(|entry| instructions(entry.body.as_deref().unwrap(), &mut all));
    let mut found = Vec::new();
    for instruction in all {
        let (start, end) = (instruction.span.start as usize, instruction.span.end as usize);
        let text = &source.text[start..end];
        let line = source.position(instruction.span).line;
        let mut add = |what: &str, changed: String| {
            let text = format!("{}{changed}{}", &source.text[..start], &source.text[end..]);
            found.push(Mutant { kernel: kernel.to_string(), name: format!("line {line}: {what}"), text });
        };
        let blank = || text.chars().map(|character| if character == '\n' { '\n' } else { ' ' }).collect::<String>();
        let memory = matches!(instruction.base(), "ld" | "st" | "atom" | "red" | "cp");
        if instruction.base() == "bar" {
            add("barrier deleted", blank());
        }
        if instruction.opcode.starts_with("cp.async.wait") {
            add("wait deleted", blank());
        }
        if let Some(guard) = instruction.guard.filter(|_| memory || instruction.base() == "bra") {
            let (from, to) = if guard.negated { ("@!", "@") } else { ("@", "@!") };
            add("guard negated", text.replacen(from, to, 1));
        }
        if instruction.base() == "st" && !instruction.has("param") {
            let bytes = instruction.types().last().and_then(|scalar| scalar.bytes()).unwrap();
            let close = text.find(']').unwrap();
            add("store shifted", format!("{}+{bytes}{}", &text[..close], &text[close..]));
        }
    }
    found
}

/// Whether a mutant is found out: by a finding, by an error, or by what it leaves behind.
fn is_reported(mutant: &Mutant, recorded: &Recorded) -> bool {
    let source = Source::new(format!("{}.ptx", mutant.kernel), mutant.text.clone());
    let Ok(program) = Program::decode(&source, Some(&recorded.entry)) else {
        panic!("{}: {}", mutant.kernel, mutant.name)
    };
    recorded.launches.iter().any(|Launched { launch, after, printed }| match program.launch(launch, &options()) {
        Err(_) => true,
        Ok(outcome) => {
            let wrong = outcome.findings.iter().any(|finding| finding.fault != AccessFault::NeverWritten);
            let differs =
                |(bytes, after): (&Vec<u8>, &Option<Vec<u8>>)| after.as_ref().is_some_and(|after| after != bytes);
            wrong || outcome.printed != *printed || outcome.buffers.iter().zip(after).any(differs)
        }
    })
}

fn options() -> LaunchOptions {
    LaunchOptions { workers: 1, most_steps: 1 << 22, ..LaunchOptions::default() }
}

/// The mutants that are known to do no harm, with the reason.
fn harmless() -> BTreeMap<String, String> {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machine/harmless_mutants.txt"))
            .unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(" -- ").unwrap()).map(|(name, why)| (name.to_string(), why.to_string())).collect()
}

#[test]
fn every_mutant_is_reported_or_known_to_do_no_harm() {
    let pack = Pack::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hardware")).unwrap();
    let mut kernels: BTreeMap<String, (Source, Recorded)> = BTreeMap::new();
    for entry in pack.entries.iter().filter(|entry| entry.set == "kernel") {
        let sm_90 = entry.ptx.contains("triton_sm90");
        if sm_90 || entry.expect_error.is_some() || entry.deterministic != Some(true) {
            continue;
        }
        let name = entry.kernel.clone().unwrap();
        let (source, recorded) = kernels.entry(name).or_insert_with(|| {
            let source = Source::read(&pack.folder.join(&entry.ptx)).unwrap();
            (source, Recorded { entry: entry.entry.clone(), launches: Vec::new() })
        });
        let (launch, after) = pack.recorded(entry).unwrap();
        let program = Program::decode(source, Some(&entry.entry)).unwrap();
        let printed = program.launch(&launch, &options()).unwrap().printed;
        recorded.launches.push(Launched { launch, after, printed });
    }
    let all: Vec<Mutant> = kernels.iter().flat_map(|(name, (source, _))| mutants(name, source)).collect();
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(mutant) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !is_reported(mutant, &kernels[&mutant.kernel].1) {
                        missed.lock().unwrap().insert(format!("{} {}", mutant.kernel, mutant.name));
                    }
                }
            });
        }
    });
    let (missed, harmless) = (missed.into_inner().unwrap(), harmless());
    let mut wrong = String::new();
    for name in missed.iter().filter(|name| !harmless.contains_key(*name)) {
        writeln!(wrong, "not reported: {name}").unwrap();
    }
    for name in harmless.keys().filter(|name| !missed.contains(*name)) {
        writeln!(wrong, "reported, though listed as harmless: {name}").unwrap();
    }
    assert!(
        wrong.is_empty(),
        "{} mutants of {} kernels, {} not reported\n{wrong}",
        all.len(),
        kernels.len(),
        missed.len()
    );
    assert!(kernels.len() >= 40 && all.len() >= 800, "{} mutants of {} kernels", all.len(), kernels.len());
}
