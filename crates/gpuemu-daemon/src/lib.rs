//! The daemon of gpuemu: the server behind the socket.

pub mod transport;

pub use transport::{Handler, Server, ServerError};
