//! Binary frames: a JSON header and raw tensor bytes, so that large tensors travel without base64.
//!
//! A frame is the magic word, the header's length as a little-endian u64, the header, zeros up to a
//! multiple of 64 bytes, and the payload. Tensors lie at multiples of 64 bytes in the payload.

use thiserror::Error;

use gpuemu_tensor::storage::ALIGNMENT;

/// What a binary frame begins with. No JSON text does.
pub const MAGIC: [u8; 8] = *b"\x89GPUEMU\x01";

const PREFIX_BYTES: usize = 16;

/// Why bytes that begin like a frame are none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The frame ends before its header does.
    #[error("a binary frame of {length} bytes says that its header has {header} bytes")]
    Header {
        /// Bytes of the frame.
        length: usize,
        /// Bytes that its header is said to have.
        header: u64,
    },
}

/// The parts of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub header: &'a [u8],
    /// The tensor bytes; none in a plain JSON message.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Takes a message apart: a binary frame, or plain JSON.
    pub fn parse(message: &'a [u8]) -> Result<Self, FrameError> {
        let Some(rest) = message.strip_prefix(&MAGIC) else { return Ok(Self { header: message, payload: &[] }) };
        let broken = |header| FrameError::Header { length: message.len(), header };
        let (length, rest) = rest.split_first_chunk::<8>().ok_or(broken(0))?;
        let length = u64::from_le_bytes(*length);
        let header = usize::try_from(length).ok().and_then(|length| rest.get(..length)).ok_or(broken(length))?;
        let start = (PREFIX_BYTES + header.len()).next_multiple_of(ALIGNMENT);
        Ok(Self { header, payload: message.get(start..).unwrap_or_default() })
    }

    /// Puts a frame together.
    pub fn build(header: &[u8], payload: &[u8]) -> Vec<u8> {
        let start = (PREFIX_BYTES + header.len()).next_multiple_of(ALIGNMENT);
        let mut message = Vec::with_capacity(start + payload.len());
        message.extend_from_slice(&MAGIC);
        message.extend_from_slice(&(header.len() as u64).to_le_bytes());
        message.extend_from_slice(header);
        message.resize(start, 0);
        message.extend_from_slice(payload);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_and_json_is_its_own_header() {
        for header in [&b"{}"[..], &[b' '; 48], &[b' '; 49]] {
            let message = Frame::build(header, b"payload");
            assert_eq!(Frame::parse(&message), Ok(Frame { header, payload: b"payload" }));
            assert!((message.len() - 7).is_multiple_of(ALIGNMENT));
        }
        assert_eq!(Frame::parse(b"{\"type\":\"Ping\"}").unwrap().payload, b"");
    }

    #[test]
    fn a_header_beyond_the_end_is_an_error() {
        let mut message = MAGIC.to_vec();
        assert!(Frame::parse(&message).is_err());
        message.extend(u64::MAX.to_le_bytes());
        assert_eq!(Frame::parse(&message), Err(FrameError::Header { length: 16, header: u64::MAX }));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_apart_without_panic(tail in proptest::collection::vec(0u8.., 0..200)) {
            let _ = Frame::parse(&tail);
            let message = [&MAGIC[..], &tail].concat();
            let _ = Frame::parse(&message);
        }
    }
}
