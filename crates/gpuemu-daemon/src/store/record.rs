//! What the store keeps: each value is a schema version and the bytes of one record.

use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Error as ArchiveError;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

use super::StoreError;

/// The version of every record's form; a change of any of them raises it and adds a migration.
pub const SCHEMA_VERSION: u16 = 1;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum StoredOutcome {
    /// Every check passed.
    Passed,
    /// A check fired.
    Failed,
    /// Nothing could be said.
    Undetermined,
    /// It could not be run.
    Error,
}

/// One case of one op in one run.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub struct ResultRecord {
    /// The project's root.
    pub project: String,
    /// The run: later runs have larger numbers.
    pub run: u64,
    /// The op.
    pub op: String,
    /// Number of the case in the run.
    pub index: u64,
    /// Seed of the case.
    pub seed: u64,
    /// Dtype of the case.
    pub dtype: String,
    /// Sizes of dims, as text.
    pub sizes: String,
    /// How it ended.
    pub outcome: StoredOutcome,
    /// The check that fired, by name; empty if none did.
    pub check: String,
    /// Largest error over what is allowed.
    pub largest_share: f64,
    /// Milliseconds since 1970.
    pub time: u64,
}

/// What is needed to run a failure again.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub struct FailureRecord {
    /// The result.
    pub result: ResultRecord,
    /// The case descriptor, as JSON.
    pub descriptor: String,
    /// The verdict, as JSON.
    pub verdict: String,
    /// The inputs' bytes, compressed; empty where they are rebuilt from the seed.
    pub snapshot: Vec<u8>,
}

/// A record's bytes, after the schema version they have.
pub(super) fn encode<T>(record: &T) -> Result<Vec<u8>, StoreError>
where
    T: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, ArchiveError>>,
{
    let bytes = rkyv::to_bytes::<ArchiveError>(record).map_err(|error| StoreError::Encode(error.to_string()))?;
    let mut value = SCHEMA_VERSION.to_le_bytes().to_vec();
    value.extend_from_slice(&bytes);
    Ok(value)
}

/// Reads a record, every byte of it validated.
pub(super) fn decode<T>(value: &[u8]) -> Result<T, StoreError>
where
    T: Archive,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, ArchiveError>> + Deserialize<T, HighDeserializer<ArchiveError>>,
{
    let (version, bytes) = value.split_first_chunk::<2>().ok_or(StoreError::Damaged("a value of no length".into()))?;
    match u16::from_le_bytes(*version) {
        SCHEMA_VERSION => {
            rkyv::from_bytes::<T, ArchiveError>(bytes).map_err(|error| StoreError::Damaged(error.to_string()))
        }
        found => Err(StoreError::UnknownVersion { found: u64::from(found), known: u64::from(SCHEMA_VERSION) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_and_foreign_bytes_are_errors() {
        let record = ResultRecord {
            project: "p".to_string(),
            run: 1,
            op: "softmax".to_string(),
            index: 2,
            seed: u64::MAX,
            dtype: "float32".to_string(),
            sizes: "H=3".to_string(),
            outcome: StoredOutcome::Failed,
            check: "value".to_string(),
            largest_share: f64::INFINITY,
            time: 5,
        };
        let value = encode(&record).unwrap();
        assert_eq!(decode::<ResultRecord>(&value), Ok(record));
        assert!(matches!(decode::<ResultRecord>(&[]), Err(StoreError::Damaged(_))));
        assert!(matches!(decode::<ResultRecord>(&value[..value.len() - 5]), Err(StoreError::Damaged(_))));
        let mut newer = value.clone();
        newer[0] = 9;
        assert_eq!(decode::<ResultRecord>(&newer), Err(StoreError::UnknownVersion { found: 9, known: 1 }));
        for place in 2..value.len() {
            let mut changed = value.clone();
            changed[place] ^= 0xff;
            // Another value or an error; never a panic.
            let _ = decode::<ResultRecord>(&changed);
        }
    }
}
