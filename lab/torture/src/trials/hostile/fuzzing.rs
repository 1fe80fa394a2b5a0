//! The full form: libFuzzer, led by what code an input reaches.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use gpuemu_torture::hostile::{NUMBERS, TARGETS, Target, folder};

use crate::trial::grouped;

/// The instrumentation that libFuzzer reads, in every crate.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// Flags of libFuzzer: memory in all, memory at once, and seconds of one input.
const LIMITS: [&str; 3] = ["-rss_limit_mb=3072", "-malloc_limit_mb=1024", "-timeout=60"];

const MOST_BYTES: &str = "-max_len=16384";

/// What came of a target.
struct Fuzzed {
    name: &'static str,
    executions: u64,
    megabytes: u64,
}

/// Builds the program and runs it over all targets.
pub fn run(seed: u64) -> Result<Vec<String>, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    // target/release/gpuemu-torture: what is built and found lies in target/fuzz.
    let target_folder = here.parent().and_then(Path::parent).ok_or("this program is not in a target folder")?;
    let fuzz_folder = target_folder.join("fuzz");
    let program = build(&fuzz_folder)?;
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results: Vec<Result<Fuzzed, String>> = std::thread::scope(|scope| {
        let work = || {
            let take = || TARGETS.get(next.fetch_add(1, Ordering::Relaxed));
            std::iter::from_fn(take).map(|target| fuzz(&program, &fuzz_folder, target, seed)).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    let (fuzzed, problems): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    let problems: Vec<String> = problems.into_iter().filter_map(Result::err).collect();
    let fuzzed: Vec<Fuzzed> = fuzzed.into_iter().flatten().collect();
    if !problems.is_empty() || fuzzed.len() != TARGETS.len() {
        return Err(format!("{} of {} targets held; {}", fuzzed.len(), TARGETS.len(), problems.join("; ")));
    }
    let all: u64 = fuzzed.iter().map(|target| target.executions).sum();
    let each = fuzzed.iter().map(|target| format!("{} {}", target.name, grouped(target.executions)));
    let megabytes = fuzzed.iter().map(|target| target.megabytes).max().unwrap_or_default();
    Ok(vec![
        format!("{} executions", grouped(all)),
        each.collect::<Vec<_>>().join(", "),
        "0 panics, aborts, hangs".to_string(),
        format!("most memory {megabytes} MiB"),
    ])
}

fn build(folder: &Path) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml");
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--locked", "--target", &triple, "--manifest-path"]).arg(manifest);
    command.env("CARGO_TARGET_DIR", folder).env("RUSTFLAGS", FLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !status.success() {
        return Err(format!("the fuzzing program cannot be built: {status}"));
    }
    Ok(folder.join(triple).join("release/gpuemu-fuzz"))
}

fn fuzz(program: &Path, folder_of_all: &Path, target: &Target, seed: u64) -> Result<Fuzzed, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", target.name);
    // What was found to reach new code is where the next trial begins.
    let (corpus, found) = (folder_of_all.join("corpus").join(target.name), folder_of_all.join("found"));
    for folder in [&corpus, &found] {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let words = folder_of_all.join(format!("{}.words", target.name));
    std::fs::write(&words, dictionary(&[target.words, NUMBERS].concat())).map_err(failed)?;
    let mut command = Command::new(program);
    command.env("GPUEMU_FUZZ_TARGET", target.name).args(LIMITS).args([MOST_BYTES, "-print_final_stats=1"]);
    command.arg(format!("-runs={}", target.thousands * 1000)).arg(format!("-seed={}", (seed as u32).max(1)));
    command.arg(format!("-dict={}", words.display()));
    command.arg(format!("-artifact_prefix={}/{}-", found.display(), target.name));
    command.arg(corpus).arg(folder(target.name)).stdin(Stdio::null());
    let output = command.output().map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stderr);
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse::<u64>().ok())
    };
    let (executions, megabytes) = (figure("stat::number_of_executed_units:"), figure("stat::peak_rss_mb:"));
    match (output.status.success(), executions, megabytes) {
        (true, Some(executions), Some(megabytes)) => Ok(Fuzzed { name: target.name, executions, megabytes }),
        _ => {
            let said: Vec<&str> = text.lines().rev().take(40).collect();
            let said: Vec<&str> = said.into_iter().rev().collect();
            Err(format!("{} ended with {}:\n{}", target.name, output.status, said.join("\n")))
        }
    }
}

/// Words as libFuzzer reads them: in quotes, with what is not plain text as hexadecimal numbers.
fn dictionary(words: &[&str]) -> String {
    let quoted = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    words.iter().map(|word| format!("\"{}\"\n", word.bytes().map(quoted).collect::<String>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_as_libfuzzer_reads_them() {
        assert_eq!(dictionary(&["a \"b\"\n", "\\"]), "\"a \\\"b\\\"\\x0a\"\n\"\\\\\"\n");
    }

    #[test]
    fn the_full_form_makes_ten_million_executions() {
        assert!(TARGETS.iter().map(|target| target.thousands).sum::<u64>() >= 10_000);
    }
}
