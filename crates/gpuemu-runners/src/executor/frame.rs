//! Frames between the daemon and a worker: a magic, the length of a JSON header, the header, and the blobs whose
//! lengths it lists.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

const MAGIC: [u8; 4] = *b"gpe1";

/// Longest header: names, shapes and a traceback, but no data.
const MOST_HEADER: u32 = 16 << 20;

/// Blobs up to this length are copied so that one write sends them all.
const COPIED: usize = 64 << 10;

#[derive(Serialize)]
struct Outgoing<'a, T> {
    blobs: Vec<usize>,
    #[serde(flatten)]
    header: &'a T,
}

#[derive(Deserialize)]
struct Incoming<T> {
    blobs: Vec<u64>,
    #[serde(flatten)]
    header: T,
}

/// A frame that was not read.
#[derive(Debug)]
pub(super) enum FrameError {
    /// The stream failed or ended.
    Stream(io::Error),
    /// Its blobs are longer than is allowed.
    TooLarge,
    /// It is no frame.
    Nonsense(String),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        FrameError::Stream(error)
    }
}

pub(super) fn write<T: Serialize>(stream: &mut impl Write, header: &T, blobs: &[&[u8]]) -> io::Result<()> {
    let lengths = blobs.iter().map(|blob| blob.len()).collect();
    let header = serde_json::to_vec(&Outgoing { blobs: lengths, header })?;
    let length = u32::try_from(header.len()).map_err(io::Error::other)?;
    let mut start = Vec::with_capacity(COPIED);
    start.extend_from_slice(&MAGIC);
    start.extend_from_slice(&length.to_le_bytes());
    start.extend_from_slice(&header);
    for blob in blobs {
        if start.len() + blob.len() > COPIED {
            stream.write_all(&start)?;
            start.clear();
        }
        if blob.len() > COPIED {
            stream.write_all(blob)?;
        } else {
            start.extend_from_slice(blob);
        }
    }
    stream.write_all(&start)
}

/// Reads a frame with at most so many bytes of blobs.
pub(super) fn read<T: DeserializeOwned>(
    stream: &mut impl Read,
    most_bytes: u64,
) -> Result<(T, Vec<Vec<u8>>), FrameError> {
    let mut start = [0; 8];
    stream.read_exact(&mut start)?;
    let [m0, m1, m2, m3, length @ ..] = start;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(FrameError::Nonsense(format!("a frame starts with {:?}", String::from_utf8_lossy(&start))));
    }
    let length = u32::from_le_bytes(length);
    if length > MOST_HEADER {
        return Err(FrameError::Nonsense(format!("a header of {length} bytes")));
    }
    let mut header = vec![0; length as usize];
    stream.read_exact(&mut header)?;
    let incoming: Incoming<T> = serde_json::from_slice(&header)
        .map_err(|error| FrameError::Nonsense(format!("{error} in {}", String::from_utf8_lossy(&header))))?;
    let total = incoming.blobs.iter().try_fold(0u64, |total, length| total.checked_add(*length));
    if total.is_none_or(|total| total > most_bytes) {
        return Err(FrameError::TooLarge);
    }
    let mut blobs = Vec::with_capacity(incoming.blobs.len());
    for length in incoming.blobs {
        // In steps, so that a length that is only claimed takes no memory.
        let mut blob = Vec::new();
        if (&mut *stream).take(length).read_to_end(&mut blob)? as u64 != length {
            return Err(FrameError::Stream(io::ErrorKind::UnexpectedEof.into()));
        }
        blobs.push(blob);
    }
    Ok((incoming.header, blobs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "is", rename_all = "snake_case")]
    enum Header {
        Plain,
        Named { name: String },
    }

    fn bytes(header: &Header, blobs: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, header, blobs).unwrap();
        bytes
    }

    #[test]
    fn a_frame_comes_back() {
        let large = vec![7; 200_000];
        for blobs in [vec![], vec![&b"one"[..], b"", b"three"], vec![b"small", large.as_slice(), b"last"]] {
            let header = Header::Named { name: "x".to_string() };
            let frame = bytes(&header, &blobs);
            let (found, read): (Header, _) = read(&mut frame.as_slice(), 1 << 20).unwrap();
            assert_eq!((found, read), (header, blobs.iter().map(|blob| blob.to_vec()).collect()));
        }
    }

    #[test]
    fn nonsense_and_cut_frames_are_errors() {
        let frame = bytes(&Header::Plain, &[b"blob"]);
        for length in 0..frame.len() {
            let cut = read::<Header>(&mut &frame[..length], 100);
            assert!(matches!(cut, Err(FrameError::Stream(_))), "{length}: {cut:?}");
        }
        assert!(matches!(read::<Header>(&mut frame.as_slice(), 3), Err(FrameError::TooLarge)));
        assert!(matches!(read::<Header>(&mut &b"print(1)"[..], 3), Err(FrameError::Nonsense(_))));
        assert!(matches!(read::<Header>(&mut &b"gpe1\xff\xff\xff\xff"[..], 3), Err(FrameError::Nonsense(_))));
        assert!(matches!(read::<Header>(&mut &b"gpe1\x02\0\0\0{}"[..], 3), Err(FrameError::Nonsense(_))));
    }
}
