//! Talking to the daemon: its messages, and NNG's REQ/REP over Unix sockets, spoken without NNG.
//!
//! `protocol` is every request and answer; `connection` sends them, as frames of `sp`, and large tensors by way of
//! `shared_memory`. A [`Client`] asks and waits; `start` finds the daemon of a user or starts it. Open
//! `protocol/request.rs` first.

pub mod client;
pub mod connection;
pub mod protocol;
#[cfg(feature = "schema")]
#[cfg(test)]
mod schema;
pub mod shared_memory;
pub mod sp;
pub mod start;

pub use client::{Client, ClientError, Reply};
pub use connection::{Connection, TransportError};
pub use start::{Connected, StartError};
