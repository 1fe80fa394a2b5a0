//! Talking to the daemon: NNG's REQ/REP over Unix sockets, spoken without NNG.

pub mod client;
pub mod connection;
pub mod fault;
pub mod shared_memory;
pub mod sp;
pub mod start;

pub use client::{Client, ClientError, Reply};
pub use connection::{Connection, TransportError};
pub use start::{Connected, StartError};
