//! Processors that list AMX and refuse it, as virtual ones often do. oneDNN, which PyTorch and TensorFlow multiply
//! matrices with, believes the list, and the process dies of SIGILL at its first product in bfloat16.
//!
//! The kernel grants the permission to use AMX there all the same, so that only an instruction tells. A child of its own
//! executes one.

use std::process::Command;
use std::sync::OnceLock;

/// The variable that caps the instructions of oneDNN.
pub const VARIABLE: &str = "ONEDNN_MAX_CPU_ISA";

/// The name of the same variable in older versions, which newer ones read too.
const OLDER_VARIABLE: &str = "DNNL_MAX_CPU_ISA";

/// Values of the variable without AMX, highest first, each with the flag of the processor that it needs.
const CAPS: [(&str, &str); 5] = [
    ("AVX512_CORE_FP16", "avx512_fp16"),
    ("AVX512_CORE_BF16", "avx512_bf16"),
    ("AVX512_CORE_VNNI", "avx512_vnni"),
    ("AVX512_CORE", "avx512bw"),
    ("AVX2", "avx2"),
];

/// The value of [`VARIABLE`] that programs with a framework need on this machine; none where they need no cap, or where
/// the environment sets one.
pub fn needed() -> Option<&'static str> {
    static NEEDED: OnceLock<Option<&'static str>> = OnceLock::new();
    *NEEDED.get_or_init(|| {
        let is_set = [VARIABLE, OLDER_VARIABLE].into_iter().any(|name| std::env::var_os(name).is_some());
        if is_set { None } else { cap(&std::fs::read_to_string("/proc/cpuinfo").ok()?, amx_executes) }
    })
}

/// Why programs are started with a cap, for the log.
pub fn explanation(cap: &str) -> String {
    format!(
        "this processor lists AMX and refuses it: programs that may import a framework are started with {VARIABLE}={cap}"
    )
}

/// What to do about a program that died, by what it wrote to stderr: of SIGILL, with a framework loaded.
pub fn hint(status: &str, stderr: &str) -> Option<String> {
    let framework = [("torch", "PyTorch"), ("tensorflow", "TensorFlow"), ("jax", "JAX")]
        .into_iter()
        .find(|(module, _)| stderr.contains(&format!("{module}.")) || stderr.contains(&format!("/{module}/")));
    let (_, name) = framework.filter(|_| status.contains("SIGILL"))?;
    Some(format!(
        "{name} executed an instruction that this processor lists and refuses, as virtual ones do with AMX: set \
         {VARIABLE}=AVX512_CORE_BF16, or AVX2, in the environment of gpuemu"
    ))
}

/// Caps what a program that may import a framework executes, if this machine needs that.
pub fn apply(command: &mut Command) -> &mut Command {
    match needed() {
        Some(cap) => command.env(VARIABLE, cap),
        None => command,
    }
}

/// The highest cap that the processor has all instructions of, where it lists AMX and does not execute it.
fn cap(cpuinfo: &str, amx_executes: impl FnOnce() -> bool) -> Option<&'static str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    let has = |flag: &str| line.split_ascii_whitespace().any(|word| word == flag);
    if !has("amx_tile") || !has("amx_bf16") || amx_executes() {
        return None;
    }
    CAPS.into_iter().find(|(_, flag)| has(flag)).map(|(cap, _)| cap)
}

/// Whether a child that multiplies two tiles in bfloat16 lives to its end. Where none can be started, nothing is known
/// against the processor.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "a single instruction is tried, in a process that may die of it")]
fn amx_executes() -> bool {
    let mut known = crate::leaders();
    // SAFETY: the child calls nothing but system calls and ends without returning.
    let child = unsafe { libc::fork() };
    match child {
        0 => multiply_tiles(),
        1.. => {
            // Nobody else may wait for it.
            known.ending.insert(child);
            drop(known);
            let process = rustix::process::Pid::from_raw(child);
            let status = loop {
                match rustix::process::waitpid(process, rustix::process::WaitOptions::empty()) {
                    Err(rustix::io::Errno::INTR) => {}
                    ended => break ended,
                }
            };
            crate::leaders().ending.remove(&child);
            matches!(status, Ok(Some((_, status))) if status.exit_status() == Some(0))
        }
        _ => true,
    }
}

/// Elsewhere there is no AMX.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn amx_executes() -> bool {
    true
}

/// What the child does: asks for the permission, multiplies two tiles of zeros, and ends.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "there is no safe way to execute these instructions")]
fn multiply_tiles() -> ! {
    /// `ARCH_REQ_XCOMP_PERM`, and the number of the state that tiles are.
    const REQUEST_PERMISSION: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    /// Palette 1; tiles 0 to 2 of 16 rows of 64 bytes.
    #[repr(C, align(64))]
    struct TileConfiguration([u8; 64]);
    let mut tiles = TileConfiguration([0; 64]);
    tiles.0[0] = 1;
    for tile in 0..3 {
        tiles.0[16 + 2 * tile] = 64;
        tiles.0[48 + tile] = 16;
    }
    // SAFETY: this process was forked for this alone. The signals have their default effect, which is to end it, and it
    // leaves no image of itself behind. The configuration is as long and aligned as the instruction asks for.
    unsafe {
        for signal in [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS] {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
        std::arch::asm!(
            "ldtilecfg [{tiles}]",
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tdpbf16ps tmm0, tmm1, tmm2",
            "tilerelease",
            tiles = in(reg) &raw const tiles,
        );
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

    use super::*;

    fn flags(words: &str) -> String {
        format!("processor\t: 0\nflags\t\t: fpu {words} sse2\nbugs\t\t:\n")
    }

    #[test]
    fn only_a_processor_that_refuses_what_it_lists_is_capped() {
        let listed = flags("avx2 avx512bw avx512_vnni avx512_bf16 amx_bf16 avx512_fp16 amx_tile amx_int8");
        assert_eq!(cap(&listed, || false), Some("AVX512_CORE_FP16"));
        assert_eq!(cap(&listed, || true), None);
        let asked = || panic!("a processor without AMX is not tried");
        assert_eq!(cap(&flags("avx2 avx512bw avx512_bf16"), asked), None);
        assert_eq!(cap("", asked), None);
    }

    #[test]
    fn the_cap_is_the_highest_that_the_processor_has() {
        let capped = |words: &str| cap(&flags(&format!("{words} amx_tile amx_bf16")), || false);
        assert_eq!(capped("avx2 avx512bw avx512_vnni avx512_bf16"), Some("AVX512_CORE_BF16"));
        assert_eq!(capped("avx2 avx512bw avx512_vnni"), Some("AVX512_CORE_VNNI"));
        assert_eq!(capped("avx2 avx512bw"), Some("AVX512_CORE"));
        assert_eq!(capped("avx2"), Some("AVX2"));
        assert_eq!(capped(""), None);
    }

    #[test]
    fn only_an_illegal_instruction_with_a_framework_loaded_is_explained() {
        let stderr = "Fatal Python error: Illegal instruction\n\nExtension modules: numpy._core, torch._C (total: 2)\n";
        let told = hint("was killed by SIGILL", stderr).unwrap();
        assert!(told.starts_with("PyTorch executed") && told.contains("ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"), "{told}");
        assert_eq!(hint("was killed by SIGSEGV", stderr), None);
        assert_eq!(hint("was killed by SIGILL", "Fatal Python error: Illegal instruction\n"), None);
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    fn a_processor_without_amx_refuses_it_and_this_process_lives() {
        let listed = std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" amx_tile"));
        // One that lists it may do either.
        assert!(listed || !amx_executes());
        amx_executes();
    }
}
