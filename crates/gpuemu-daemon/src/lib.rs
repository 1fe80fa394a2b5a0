//! The daemon of gpuemu: what requests do, the Python that they start, the store that keeps their results,
//! and the server in front of them.

pub mod configured_op;
pub mod definition;
pub mod executor;
mod external_reference;
pub mod failure;
pub mod home;
pub mod jobs;
mod kernel_program;
mod known_requests;
pub mod lifecycle;
mod logging;
mod op_definition;
pub mod op_runner;
pub mod project;
pub mod python_program;
pub mod python_runner;
pub mod server;
pub mod service;
pub mod sources;
pub mod store;
pub mod transport;

pub use lifecycle::DaemonError;
pub use service::{Service, ServiceError};
pub use transport::{Handler, Message, Server, ServerError};
