//! How the types of this crate are described in JSON Schema. Only `--features schema` compiles it: programs derive
//! nothing, see `gpuemu-no-schema`.

#[cfg(feature = "schema")]
mod described;

#[cfg(not(feature = "schema"))]
pub use gpuemu_no_schema::JsonSchema;
#[cfg(feature = "schema")]
pub use schemars::JsonSchema;
