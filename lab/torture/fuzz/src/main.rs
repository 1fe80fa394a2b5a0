//! libFuzzer over one target of hostile input, which the environment variable `GPUEMU_FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use gpuemu_torture::hostile::{TARGETS, Target, target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("GPUEMU_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("GPUEMU_FUZZ_TARGET is '{name}'; it has to be one of {}", known.join(", "));
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
