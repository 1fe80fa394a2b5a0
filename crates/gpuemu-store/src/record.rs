//! What the store keeps: each value is a schema version and the bytes of one record.

use gpuemu_process::fault;
use gpuemu_tensor::DType;
use gpuemu_tensor::dtype::UnknownDType;
use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Error as ArchiveError;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Portable, Serialize};

use super::StoreError;
use super::snapshot::Snapshot;

/// The version of every record's form; a change of any of them raises it and adds a migration.
pub const SCHEMA_VERSION: u16 = 2;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
#[rkyv(compare(PartialEq))]
pub enum StoredOutcome {
    Passed,
    Failed,
    /// Nothing could be said.
    Undetermined,
    /// It could not be run.
    Error,
}

/// One case of one op in one run.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub struct ResultRecord {
    pub project: String,
    /// The run: later runs have larger numbers.
    pub run: u64,
    pub op: String,
    /// Number of the case in the run.
    pub index: u64,
    /// Seed of the case.
    pub seed: u64,
    /// Dtype of the case.
    pub dtype: String,
    /// Sizes of dims, as text.
    pub sizes: String,
    /// Memory layout of the inputs.
    pub layout: String,
    /// What the values were drawn from.
    pub strategy: String,
    pub outcome: StoredOutcome,
    /// The check that fired, by name; empty if none did.
    pub check: String,
    /// Largest error over what is allowed.
    pub largest_share: f64,
    /// Largest absolute error; NaN where it was not recorded.
    pub max_abs: f64,
    /// Largest relative error; NaN where it was not recorded.
    pub max_rel: f64,
    /// Largest error in units in the last place; NaN where it was not recorded.
    pub max_ulp: f64,
    /// What produced the output ("script", "callable", …).
    pub runner: String,
    /// Base seed of the run.
    pub base_seed: u64,
    /// The case descriptor, as JSON.
    pub descriptor: String,
    /// Milliseconds since 1970.
    pub time: u64,
}

impl ResultRecord {
    /// Dtype of the case; a name that is none is damage, not some other dtype.
    pub fn parsed_dtype(&self) -> Result<DType, StoreError> {
        let damaged =
            |error: UnknownDType| StoreError::Damaged(format!("result {} of op {:?}: {error}", self.index, self.op));
        self.dtype.parse().map_err(damaged)
    }
}

/// What is needed to run a failure again.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub struct FailureRecord {
    pub result: ResultRecord,
    /// The verdict, as JSON.
    pub verdict: String,
    /// The inputs; empty where they are rebuilt from the seed.
    pub snapshot: Snapshot,
}

#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub struct BaselineCase {
    /// The case descriptor, as JSON.
    pub descriptor: String,
    pub outcome: StoredOutcome,
    pub max_abs: f64,
    /// Largest error in units in the last place.
    pub max_ulp: f64,
}

/// What later runs of an op are compared with. The records of one storing have one time.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub struct BaselineRecord {
    pub project: String,
    /// The name it is asked for by.
    pub tag: String,
    pub op: String,
    /// Milliseconds since 1970.
    pub time: u64,
    /// The run it was made from.
    pub run: u64,
    /// Base seed of that run.
    pub base_seed: u64,
    pub cases: Vec<BaselineCase>,
}

/// What an op came to in a run.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct RunRecord {
    pub project: String,
    pub op: String,
    pub run: u64,
    /// Milliseconds since 1970.
    pub time: u64,
    /// The run of the op, as JSON.
    pub report: String,
}

/// A campaign whose parts are made elsewhere, or one of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct CampaignRecord {
    pub project: String,
    pub run: u64,
    /// The number of the part, from 1; 0 is the campaign itself.
    pub part: u64,
    /// Milliseconds since 1970.
    pub time: u64,
    /// What is known of it, as JSON.
    pub text: String,
}

/// What was measured of a compiled kernel.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct ArtifactRecord {
    pub project: String,
    pub kernel: String,
    /// Milliseconds since 1970.
    pub time: u64,
    /// The measures, as JSON.
    pub metrics: String,
}

/// What later artifacts of a kernel are compared with. The records of one storing have one time.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct ArtifactBaselineRecord {
    pub project: String,
    /// The name it is asked for by.
    pub tag: String,
    pub kernel: String,
    /// Milliseconds since 1970.
    pub time: u64,
    /// The measures, as JSON.
    pub metrics: String,
}

/// A record that the store can write.
pub(super) trait Encodable:
    for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, ArchiveError>>
{
}
impl<T: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, ArchiveError>>> Encodable for T {}

/// A record that the store can read, its bytes validated first.
pub(super) trait Decodable:
    Sized + Archive<Archived: Checked + Deserialize<Self, HighDeserializer<ArchiveError>>>
{
}
impl<T: Archive<Archived: Checked + Deserialize<T, HighDeserializer<ArchiveError>>>> Decodable for T {}

/// Bytes whose form can be checked.
pub(super) trait Checked: Portable + for<'a> CheckBytes<HighValidator<'a, ArchiveError>> {}
impl<T: Portable + for<'a> CheckBytes<HighValidator<'a, ArchiveError>>> Checked for T {}

/// A record's bytes, after the schema version they have.
pub(super) fn encode<T: Encodable>(record: &T) -> Result<Vec<u8>, StoreError> {
    let bytes = rkyv::to_bytes::<ArchiveError>(record).map_err(|error| StoreError::Encode(error.to_string()))?;
    let mut value = Vec::with_capacity(bytes.len() + 2);
    value.extend_from_slice(&SCHEMA_VERSION.to_le_bytes());
    value.extend_from_slice(&bytes);
    Ok(value)
}

/// A record as it lies in the store, every byte of it validated: to look before anything is copied.
pub(super) fn view<T: Decodable>(value: &[u8]) -> Result<&T::Archived, StoreError> {
    view_form::<T>(value, SCHEMA_VERSION)
}

/// A record of a given form.
pub(super) fn view_form<T: Decodable>(value: &[u8], form: u16) -> Result<&T::Archived, StoreError> {
    let (version, bytes) = value.split_first_chunk::<2>().ok_or(StoreError::Damaged("a value of no length".into()))?;
    match u16::from_le_bytes(*version) {
        found if found == form => {
            rkyv::access::<T::Archived, ArchiveError>(bytes).map_err(|error| StoreError::Damaged(error.to_string()))
        }
        found => Err(StoreError::UnknownVersion { found: u64::from(found), known: u64::from(form) }),
    }
}

/// The record that was looked at.
pub(super) fn copy_of<T: Decodable>(archived: &T::Archived) -> Result<T, StoreError> {
    rkyv::deserialize::<T, ArchiveError>(archived).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Reads a record, every byte of it validated.
pub(super) fn decode<T: Decodable>(value: &[u8]) -> Result<T, StoreError> {
    fault!("store.decode", StoreError::Damaged("injected".to_string()), copy_of::<T>(view::<T>(value)?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use gpuemu_tensor::{DType, Tensor};
    use proptest::prelude::*;

    pub(crate) fn record() -> ResultRecord {
        ResultRecord {
            project: "p".to_string(),
            run: 1,
            op: "softmax".to_string(),
            index: 2,
            seed: u64::MAX,
            dtype: "float32".to_string(),
            sizes: "H=3".to_string(),
            layout: "contiguous".to_string(),
            strategy: "normal".to_string(),
            outcome: StoredOutcome::Failed,
            check: "value".to_string(),
            largest_share: f64::INFINITY,
            max_abs: 1.5,
            max_rel: 0.25,
            max_ulp: 3.0,
            runner: "script".to_string(),
            base_seed: 42,
            descriptor: "{\"op\":\"softmax\"}".to_string(),
            time: 5,
        }
    }

    fn failure() -> FailureRecord {
        let input = Tensor::from_f64(DType::F32, vec![2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let snapshot = Snapshot::of(&[("input".to_string(), input.unwrap())], 1 << 20);
        FailureRecord { result: record(), verdict: "{\"check\":\"value\"}".to_string(), snapshot }
    }

    #[test]
    fn damaged_and_foreign_bytes_are_errors() {
        let record = record();
        let value = encode(&record).unwrap();
        assert_eq!(decode::<ResultRecord>(&value), Ok(record));
        assert!(matches!(decode::<ResultRecord>(&[]), Err(StoreError::Damaged(_))));
        assert!(matches!(decode::<ResultRecord>(&value[..value.len() - 5]), Err(StoreError::Damaged(_))));
        let mut newer = value.clone();
        newer[0] = 9;
        assert_eq!(decode::<ResultRecord>(&newer), Err(StoreError::UnknownVersion { found: 9, known: 2 }));
        for place in 2..value.len() {
            let mut changed = value.clone();
            changed[place] ^= 0xff;
            // Another value or an error; never a panic.
            let _ = decode::<ResultRecord>(&changed);
        }
    }

    proptest! {
        #[test]
        fn changed_bytes_of_a_failure_never_panic(
            changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
            cut in proptest::option::of(any::<proptest::sample::Index>()),
        ) {
            let mut value = encode(&failure()).unwrap();
            for (place, byte) in changes {
                let place = place.index(value.len());
                value[place] = byte;
            }
            if let Some(cut) = cut {
                value.truncate(cut.index(value.len()));
            }
            if let Ok(record) = decode::<FailureRecord>(&value) {
                let _ = record.snapshot.tensors();
            }
        }
    }
}
