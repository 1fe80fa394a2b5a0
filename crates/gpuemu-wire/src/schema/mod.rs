//! The JSON Schemas of configuration files and reports, and the references that the documentation makes of them and of
//! the messages. They are here because messages name all other types.

mod configuration;
mod messages;
mod published;
mod words;
