//! The same 32-lane loop, compiled for several instruction sets and chosen once, when a kernel is decoded.

use super::file::RegisterFile;
use super::pure::{Execute, Pure};

/// What the processor can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture can: SSE2, or NEON.
    Baseline,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 with its F, BW, DQ and VL parts, on top of AVX2.
    Avx512,
}

impl Level {
    /// The best that this processor has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            match (avx2, avx512) {
                (true, true) => return Level::Avx512,
                (true, false) => return Level::Avx2,
                _ => {}
            }
        }
        Level::Baseline
    }
}

impl Level {
    /// Runs code that was compiled for this level: what is inlined into the closure is.
    #[inline(always)]
    pub fn run<R>(self, code: impl FnOnce() -> R) -> R {
        match self.min(Level::detect()) {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => x86::run_avx512(code),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => x86::run_avx2(code),
            _ => code(),
        }
    }
}

/// An instruction as a type: its loop is inlined into a function for each instruction set.
pub trait Operation {
    /// Does it, for the lanes in `mask`. Must be `#[inline(always)]`.
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32);
}

fn baseline<O: Operation>(file: &mut RegisterFile, pure: &Pure, mask: u32) {
    O::run(file, pure, mask);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Operation, Pure, RegisterFile};

    #[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
    fn with_avx2<O: Operation>(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        O::run(file, pure, mask);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2,lzcnt,popcnt")]
    fn with_avx512<O: Operation>(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        O::run(file, pure, mask);
    }

    #[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
    fn with_avx2_run<R>(code: impl FnOnce() -> R) -> R {
        code()
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2,lzcnt,popcnt")]
    fn with_avx512_run<R>(code: impl FnOnce() -> R) -> R {
        code()
    }

    #[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
    pub(super) fn run_avx2<R>(code: impl FnOnce() -> R) -> R {
        // SAFETY: `run` calls this only at a level that `Level::detect` found the features for.
        unsafe { with_avx2_run(code) }
    }

    #[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
    pub(super) fn run_avx512<R>(code: impl FnOnce() -> R) -> R {
        // SAFETY: `run` calls this only at a level that `Level::detect` found the features for.
        unsafe { with_avx512_run(code) }
    }

    #[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
    pub(super) fn avx2<O: Operation>(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        // SAFETY: `execute` hands this out only at a level that `Level::detect` found the features for.
        unsafe { with_avx2::<O>(file, pure, mask) }
    }

    #[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
    pub(super) fn avx512<O: Operation>(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        // SAFETY: `execute` hands this out only at a level that `Level::detect` found the features for.
        unsafe { with_avx512::<O>(file, pure, mask) }
    }
}

/// The function that does an operation at a level. The level must not be above what `Level::detect` gives.
pub fn execute<O: Operation>(level: Level) -> Execute {
    match level.min(Level::detect()) {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => x86::avx512::<O>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => x86::avx2::<O>,
        _ => baseline::<O>,
    }
}
