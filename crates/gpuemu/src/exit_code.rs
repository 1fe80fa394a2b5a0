//! What the process's exit status means.

/// Everything that was asked for passed.
pub const PASSED: u8 = 0;

/// A validation failed: a kernel is wrong, or the corpus gave a verdict that is known to be wrong.
pub const FAILED: u8 = 1;

/// Usage, configuration or environment: nothing was validated. Never 1.
pub const ENVIRONMENT_ERROR: u8 = 2;
