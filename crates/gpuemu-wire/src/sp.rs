//! The Scalability Protocols' REQ/REP over NNG's IPC transport, as bytes.
//!
//! A connection opens with eight bytes each way: 0, 'S', 'P', 0, the protocol's number, two zero
//! bytes. A message is a byte 1, its length as a big-endian u64, and its body. A body begins with a
//! stack of big-endian words up to and including the first whose top bit is set: the request id,
//! before which proxies have put words of their own. A reply begins with the same stack.

use thiserror::Error;

/// The protocol number of the side that asks.
pub const REQUEST: u16 = 48;

/// The protocol number of the side that answers.
pub const REPLY: u16 = 49;

/// Bytes of the opening.
pub const HANDSHAKE_BYTES: usize = 8;

/// Bytes before a message's body.
pub const PREFIX_BYTES: usize = 9;

/// Most words that a stack may have: NNG's own limit on hops.
pub const MAX_STACK_WORDS: usize = 15;

const ID_BIT: u32 = 1 << 31;

/// What does not follow the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The opening bytes are not those of the protocol.
    #[error("the peer does not speak NNG's protocol (it began with {0:02x?})")]
    Handshake([u8; HANDSHAKE_BYTES]),
    /// The peer is of another protocol.
    #[error("the peer speaks protocol {found}, not {expected}")]
    Peer { found: u16, expected: u16 },
    /// A message does not begin with 1.
    #[error("a message began with {0:#04x} in place of 0x01")]
    Prefix(u8),
    /// A body has no request id.
    #[error("a message has no request id")]
    NoId,
}

/// The opening bytes of a side.
pub const fn handshake(protocol: u16) -> [u8; HANDSHAKE_BYTES] {
    let [high, low] = protocol.to_be_bytes();
    [0, b'S', b'P', 0, high, low, 0, 0]
}

/// Checks the opening bytes of the other side.
pub fn check_handshake(bytes: [u8; HANDSHAKE_BYTES], expected: u16) -> Result<(), ProtocolError> {
    let found = u16::from_be_bytes([bytes[4], bytes[5]]);
    if bytes != handshake(found) {
        return Err(ProtocolError::Handshake(bytes));
    }
    if found != expected {
        return Err(ProtocolError::Peer { found, expected });
    }
    Ok(())
}

/// The bytes before a body of the given length.
pub fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let mut bytes = [1; PREFIX_BYTES];
    bytes[1..].copy_from_slice(&(length as u64).to_be_bytes());
    bytes
}

/// The length of the body that follows a prefix.
pub fn body_length(bytes: [u8; PREFIX_BYTES]) -> Result<u64, ProtocolError> {
    let [kind, length @ ..] = bytes;
    if kind == 1 { Ok(u64::from_be_bytes(length)) } else { Err(ProtocolError::Prefix(kind)) }
}

/// Bytes of the stack at the start of a body, request id included.
pub fn stack_length(body: &[u8]) -> Result<usize, ProtocolError> {
    let words = body.as_chunks::<4>().0.iter().take(MAX_STACK_WORDS);
    let place = words.map(|word| u32::from_be_bytes(*word)).position(|word| word & ID_BIT != 0);
    place.map(|index| 4 * (index + 1)).ok_or(ProtocolError::NoId)
}

/// A request id as it stands on the wire: the top bit marks it.
pub const fn request_id(number: u32) -> [u8; 4] {
    (number | ID_BIT).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_is_as_published() {
        assert_eq!(handshake(REQUEST), [0, 0x53, 0x50, 0, 0, 0x30, 0, 0]);
        assert_eq!(check_handshake(handshake(REPLY), REPLY), Ok(()));
        assert_eq!(
            check_handshake(handshake(REQUEST), REPLY),
            Err(ProtocolError::Peer { found: REQUEST, expected: REPLY })
        );
        assert!(matches!(check_handshake(*b"GET / HT", REPLY), Err(ProtocolError::Handshake(_))));
    }

    #[test]
    fn the_stack_ends_with_the_first_marked_word() {
        let mut body = vec![0, 0, 0, 7, 0, 0, 0, 9];
        assert_eq!(stack_length(&body), Err(ProtocolError::NoId));
        body.extend(request_id(3));
        body.extend(b"payload");
        assert_eq!(stack_length(&body), Ok(12));
        assert_eq!(stack_length(&[0x80]), Err(ProtocolError::NoId));
        assert_eq!(stack_length(&[0; 400]), Err(ProtocolError::NoId));
    }

    proptest::proptest! {
        #[test]
        fn prefixes_round_trip(length in 0usize..usize::MAX) {
            assert_eq!(body_length(prefix(length)), Ok(length as u64));
        }
    }
}
