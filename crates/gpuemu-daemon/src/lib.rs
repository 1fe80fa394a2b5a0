//! The daemon of gpuemu: a process that answers requests over a socket.
//!
//! Connections come in at `transport`, one task each; `server` hands their requests to the service, work apart from
//! questions, and sends the answers back; `known_requests` holds those that may come again. `lifecycle` is the process:
//! its folder, its log, its end. What a request does is in the crate `gpuemu-service`. Open `lifecycle.rs` first.

mod known_requests;
pub mod lifecycle;
mod logging;
pub mod server;
pub mod transport;

pub use lifecycle::DaemonError;
pub use transport::{Handler, Message, Server, ServerError};
