//! The JSON Schemas of configuration files and reports, and the references that the documentation makes of them. Only
//! `--features schema` compiles them: programs derive nothing, see `gpuemu-no-schema`.

#[cfg(feature = "schema")]
#[cfg(test)]
mod configuration;
#[cfg(feature = "schema")]
mod described;
#[cfg(feature = "schema")]
#[cfg(test)]
mod messages;
#[cfg(feature = "schema")]
#[cfg(test)]
mod published;
#[cfg(feature = "schema")]
#[cfg(test)]
mod words;

#[cfg(not(feature = "schema"))]
pub(crate) use gpuemu_no_schema::JsonSchema;
#[cfg(feature = "schema")]
pub(crate) use schemars::JsonSchema;
