//! NVIDIA's tools and compilers, as `python/requirements-kernels.txt` installs them.
//!
//! `GPUEMU_TEST_KERNELS_PYTHON` names the Python that has them; `cargo xtask test --only kernels` sets it. Without it, the
//! tests that need a tool say that they are skipped.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

mod cuda;
mod installed;
mod measures;
mod triton;
