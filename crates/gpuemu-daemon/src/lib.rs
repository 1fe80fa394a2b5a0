//! The daemon of gpuemu: what requests do, and the server in front of them.
//!
//! A request comes in over a socket (`transport`, `server`), or from the command line in its own process; `service` does
//! it, with the crates for runs and the store, and answers. Long ones are `jobs`. `home` is the folder of one user, and
//! `lifecycle` the process. Open `service/mod.rs` first.

pub mod home;
pub mod jobs;
mod known_requests;
pub mod lifecycle;
mod logging;
pub mod server;
pub mod service;
pub mod transport;

pub use lifecycle::DaemonError;
pub use service::{Service, ServiceError};
pub use transport::{Handler, Message, Server, ServerError};
