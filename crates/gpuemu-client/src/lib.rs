//! Talking to the daemon: NNG's REQ/REP over Unix sockets, spoken without NNG.

pub mod connection;
pub mod sp;

pub use connection::{Connection, TransportError};
