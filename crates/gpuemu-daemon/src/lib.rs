//! The daemon of gpuemu: the server behind the socket, and the store behind the server.

pub mod executor;
pub mod store;
pub mod transport;

pub use transport::{Handler, Server, ServerError};
