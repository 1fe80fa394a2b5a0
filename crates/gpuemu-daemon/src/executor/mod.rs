//! Running Python for a project: reference scripts, op scripts and callables.
