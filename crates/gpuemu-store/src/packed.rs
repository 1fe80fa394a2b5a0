//! JSON in little room: results repeat their field names and most of their words, so they are packed against a text
//! that has them all.

use lz4_flex::block::{compress_with_dict, decompress_into_with_dict};

use super::StoreError;

/// The text. Part of the form: with another one, nothing that was packed can be read.
const DICTIONARY: &[u8] = include_bytes!("packed_words.txt");

/// lz4 stands for at most 255 bytes with one of its own: nothing that claims more is believed.
const LARGEST_RATIO: usize = 255;

pub(super) fn pack(text: &str) -> Vec<u8> {
    compress_with_dict(text.as_bytes(), DICTIONARY)
}

/// The text of `length` bytes that was packed.
pub(super) fn unpack(packed: &[u8], length: usize) -> Result<Vec<u8>, StoreError> {
    if length > packed.len().saturating_mul(LARGEST_RATIO) {
        let held = packed.len();
        return Err(StoreError::Damaged(format!("{held} packed bytes cannot stand for {length}")));
    }
    let mut text = vec![0; length];
    match decompress_into_with_dict(packed, &mut text, DICTIONARY) {
        Ok(read) if read == length => Ok(text),
        Ok(read) => Err(StoreError::Damaged(format!("{read} bytes where {length} were kept"))),
        Err(error) => Err(StoreError::Damaged(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use gpuemu_model::CaseDescriptor;
    use gpuemu_model::report::ValidationResult;
    use gpuemu_tensor::DType;

    use super::*;

    #[test]
    fn a_result_takes_a_fraction_of_its_text() {
        let text = serde_json::to_string(&ValidationResult::of(CaseDescriptor::of("softmax", DType::F16, 7))).unwrap();
        let packed = pack(&text);
        assert!(packed.len() * 4 < text.len(), "{} of {}", packed.len(), text.len());
        assert_eq!(unpack(&packed, text.len()).unwrap(), text.as_bytes());
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        let packed = pack("{\"op\":\"softmax\"}");
        for length in [0, 15, 17, 1 << 20, usize::MAX] {
            assert!(matches!(unpack(&packed, length), Err(StoreError::Damaged(_))), "{length}");
        }
        assert!(unpack(&[], 0).is_err() && unpack(&[0xff; 9], 30).is_err());
    }

    /// The text is part of the form: it never changes without a new one.
    #[test]
    fn the_words_are_those_of_form_3() {
        let sum = DICTIONARY.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        assert_eq!(sum, 0x7fba_112d_a3c2_78d5);
    }
}
