//! A project and its ops: made ready, tried, added up, merged.
//!
//! A `Project` is read from its configuration; `ConfiguredOp` is one op of it with what runs it, what it is judged by and
//! what its cases are drawn from. `case_loop` draws, runs and judges cases and tells sinks about them; a `Tally` adds up
//! verdicts to the report on an op, `merge` joins the reports on the shards of a run, `expected` applies the failures that
//! a project expects. Open `case_loop/mod.rs` first.

pub mod case_loop;
pub mod configured_op;
pub mod expected;
mod kernel_program;
pub mod merge;
pub mod op_definition;
pub mod op_run;
pub mod project;
pub mod result;
pub mod sources;
pub mod submitted;
pub mod tally;
