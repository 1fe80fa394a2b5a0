//! What runs a case: a Python function in a warm worker, a script in a process of its own, a compiled kernel in the PTX
//! machine.
//!
//! `executor` starts processes, speaks with them and ends them; `python_program` says which function or script of a
//! project is meant, and `python_runner` is it as the engine sees it. `kernels` makes a launch of a case, by a launch
//! table, and its findings those of a verdict. `external_reference` is a Python program as the reference of an op.
//! Open `op_runner.rs` first.

pub mod definition;
pub mod executor;
pub mod external_reference;
pub mod kernels;
pub mod op_runner;
pub mod python_program;
pub mod python_runner;
