//! Changes of inputs, where no coverage guides them.

use gpuemu_tensor::Stream;

const MOST_BYTES: usize = 1 << 16;

/// Numbers at limits, as text.
pub const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1e300",
    "1e999",
    "1e-999",
    "0.5",
    "65536",
    "1048576",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
];

/// An input, changed in one place or a few. `other` is what pieces are taken from.
pub fn mutated(stream: &mut Stream, input: &[u8], other: &[u8], words: &[&str]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..1 + stream.below(4) / 2 {
        let place = stream.below(bytes.len() as u64 + 1) as usize;
        let end = (place + stream.below(24) as usize).min(bytes.len());
        match stream.below(10) {
            0 => bytes.truncate(place),
            1 => drop(bytes.drain(place..end)),
            2 => replace(&mut bytes, place, place, stream.pick(words).copied().unwrap_or_default().as_bytes()),
            3 => replace(&mut bytes, place, end, stream.pick(words).copied().unwrap_or_default().as_bytes()),
            4 => replace_number(stream, &mut bytes, place),
            5 => {
                let copy = bytes[place..end].to_vec();
                let target = stream.below(bytes.len() as u64 + 1) as usize;
                replace(&mut bytes, target, target, &copy);
            }
            6 => {
                let start = stream.below(other.len() as u64 + 1) as usize;
                let piece = &other[start..(start + stream.below(200) as usize).min(other.len())];
                replace(&mut bytes, place, end, piece);
            }
            7 => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << stream.below(8);
                }
            }
            8 => {
                // A length or an offset as the wire has it.
                let word = stream.next_word() >> stream.below(64);
                let word = if stream.chance(1, 2) { word.to_le_bytes() } else { word.to_be_bytes() };
                replace(&mut bytes, place, place + word.len(), &word);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = stream.next_word() as u8;
                }
            }
        }
    }
    bytes.truncate(MOST_BYTES);
    bytes
}

/// Puts a piece in the place of the bytes from `start` to `end`, as far as there are any.
fn replace(bytes: &mut Vec<u8>, start: usize, end: usize, piece: &[u8]) {
    let end = end.min(bytes.len());
    drop(bytes.splice(start.min(end)..end, piece.iter().copied()));
}

/// Replaces the number that is next after a place.
fn replace_number(stream: &mut Stream, bytes: &mut Vec<u8>, place: usize) {
    let Some(start) = bytes[place..].iter().position(u8::is_ascii_digit).map(|found| place + found) else { return };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = stream.pick(NUMBERS).copied().unwrap_or_default();
    replace(bytes, start, start + length, number.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_bytes_and_others_give_others() {
        let draw = |seed| mutated(&mut Stream::new(seed, "test"), b"{\"a\": 123}", b"other", &["word"]);
        assert_eq!(draw(7), draw(7));
        let different: std::collections::BTreeSet<_> = (0..100).map(draw).collect();
        assert!(different.len() > 60, "{}", different.len());
        for seed in 0..1000 {
            let _ = mutated(&mut Stream::new(seed, "empty"), b"", b"", &[]);
        }
    }
}
