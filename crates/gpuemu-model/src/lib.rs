//! What every other crate of gpuemu speaks of: one type each for what a case was drawn from, what is wrong with it, and
//! what a run came to, from the judge to the page.
//!
//! `settings` is what a caller asks for, `finding` what a judge says, `report` what a run adds up to, `shard` what
//! joining parts of a run needs, `artifact` and `emulation` what is known of compiled kernels, `evidence` what a signed
//! report rests on. `tensor_data` is a tensor in JSON; `json`, `schema`, `seed_text` and `number_text` say how all of it
//! is written. Nothing here computes: open `report.rs` first.

pub mod artifact;
pub mod campaign;
pub mod case;
pub mod emulation;
pub mod error_code;
pub mod evidence;
pub mod finding;
pub mod json;
pub mod name;
pub mod nearest;
pub mod number_text;
pub mod picture;
pub mod precision;
pub mod report;
pub mod schema;
pub mod seed_text;
pub mod settings;
pub mod shard;
pub mod strategy;
pub mod tensor_data;
pub mod tool_search;

pub use case::CaseDescriptor;
pub use error_code::ErrorCode;
pub use precision::Precision;
pub use settings::FuzzConfig;
pub use strategy::Strategy;
