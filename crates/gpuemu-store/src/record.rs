//! What the store keeps. A value of a tree is the version of its form, a head with what is sought and added up without
//! reading the rest, the body, which is one of the types that reports are made of, packed, and the bytes of inputs that
//! were kept.

use gpuemu_model::artifact::KernelArtifact;
use gpuemu_model::campaign::CampaignStatus;
use gpuemu_model::finding::{LargestErrors, Outcome};
use gpuemu_model::json::{FromJson, ToJson};
use gpuemu_model::report::{CaseSummary, RunReport, StoredRun, ValidationResult};
use gpuemu_process::fault;
use gpuemu_tensor::DType;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::packed::{pack, unpack};
use super::snapshot::{Snapshot, SnapshotTensor};

/// The version of every record's form; a change that older readers would misread raises it and adds a migration.
pub const SCHEMA_VERSION: u16 = 3;

/// One case of one op in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultRecord {
    pub project: String,
    /// The run: later runs have larger numbers.
    pub run: u64,
    /// Number of the case in the run.
    pub index: u64,
    /// Base seed of the run.
    pub base_seed: u64,
    pub result: ValidationResult,
}

impl ResultRecord {
    /// The result of a case of a run; its inputs are kept elsewhere.
    pub fn of(result: &ValidationResult, project: &str, run: u64, index: u64, base_seed: u64) -> Self {
        let result = ValidationResult { run: Some(run), inputs: None, ..result.clone() };
        Self { project: project.to_string(), run, index, base_seed, result }
    }
}

/// A result with what is needed to run its case again.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureRecord {
    pub result: ResultRecord,
    /// The inputs; empty where they are rebuilt from the seed.
    pub snapshot: Snapshot,
}

/// What later runs of an op are compared with. The records of one storing have one time.
#[derive(Debug, Clone, PartialEq)]
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
    pub cases: Vec<CaseSummary>,
}

/// What an op came to in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    pub project: String,
    pub run: StoredRun,
}

/// A campaign whose parts are made elsewhere, or one of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignRecord {
    pub project: String,
    pub run: u64,
    /// Milliseconds since 1970.
    pub time: u64,
    pub content: CampaignContent,
}

/// What is known of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub enum CampaignContent {
    Begun(Box<CampaignStatus>),
    /// The report on a part, whose numbers go from 1.
    Part(u32, Box<RunReport>),
}

impl CampaignContent {
    /// The number of the part; 0 is the campaign itself.
    pub fn part(&self) -> u64 {
        match self {
            Self::Begun(_) => 0,
            Self::Part(number, _) => u64::from(*number),
        }
    }
}

/// What was measured of a compiled kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactRecord {
    pub project: String,
    pub kernel: String,
    /// Milliseconds since 1970.
    pub time: u64,
    pub metrics: KernelArtifact,
}

/// What later artifacts of a kernel are compared with. The records of one storing have one time.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactBaselineRecord {
    /// The name it is asked for by.
    pub tag: String,
    pub artifact: ArtifactRecord,
}

/// How a record lies in its tree.
pub(super) trait Record: Sized {
    /// What is sought without reading the rest.
    type Head: Serialize + DeserializeOwned;

    fn head(&self) -> Self::Head;

    fn body(&self) -> Result<String, serde_json::Error>;

    /// Bytes after the body.
    fn attachment(&self) -> Vec<u8> {
        Vec::new()
    }

    fn read(head: Self::Head, body: &[u8], attachment: &[u8]) -> Result<Self, StoreError>;
}

/// What results are sought by, and what adding them up needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultHead {
    project: String,
    pub run: u64,
    index: u64,
    base_seed: u64,
    pub seed: u64,
    pub outcome: Outcome,
    pub time: u64,
    pub runner: String,
    pub dtype: DType,
    pub largest: LargestErrors,
}

impl Record for ResultRecord {
    type Head = ResultHead;

    fn head(&self) -> ResultHead {
        ResultHead {
            project: self.project.clone(),
            run: self.run,
            index: self.index,
            base_seed: self.base_seed,
            seed: self.result.seed,
            outcome: self.result.outcome,
            time: self.result.time,
            runner: self.result.runner.clone(),
            dtype: self.result.dtype,
            largest: self.result.largest,
        }
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        self.result.to_json()
    }

    fn read(head: ResultHead, body: &[u8], _: &[u8]) -> Result<Self, StoreError> {
        let ResultHead { project, run, index, base_seed, .. } = head;
        Ok(Self { project, run, index, base_seed, result: read_body(body)? })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FailureHead {
    pub result: ResultHead,
    inputs: Vec<SnapshotTensor>,
    /// Bytes of each input in the attachment.
    lengths: Vec<usize>,
}

impl Record for FailureRecord {
    type Head = FailureHead;

    fn head(&self) -> FailureHead {
        let inputs = self.snapshot.inputs.clone();
        let lengths = inputs.iter().map(|input| input.compressed.len()).collect();
        FailureHead { result: self.result.head(), inputs, lengths }
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        self.result.body()
    }

    fn attachment(&self) -> Vec<u8> {
        self.snapshot.inputs.iter().flat_map(|input| &input.compressed).copied().collect()
    }

    fn read(head: FailureHead, body: &[u8], mut attachment: &[u8]) -> Result<Self, StoreError> {
        let mut inputs = head.inputs;
        let short = || StoreError::Damaged("a failure has fewer bytes of inputs than it says".to_string());
        for (input, length) in inputs.iter_mut().zip(head.lengths) {
            let (bytes, rest) = attachment.split_at_checked(length).ok_or_else(short)?;
            (input.compressed, attachment) = (bytes.to_vec(), rest);
        }
        Ok(Self { result: ResultRecord::read(head.result, body, &[])?, snapshot: Snapshot { inputs } })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BaselineHead {
    project: String,
    tag: String,
    op: String,
    time: u64,
    run: u64,
    base_seed: u64,
    pub cases: usize,
}

impl Record for BaselineRecord {
    type Head = BaselineHead;

    fn head(&self) -> BaselineHead {
        let (project, tag, op) = (self.project.clone(), self.tag.clone(), self.op.clone());
        let Self { time, run, base_seed, .. } = *self;
        BaselineHead { project, tag, op, time, run, base_seed, cases: self.cases.len() }
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        self.cases.as_slice().to_json()
    }

    fn read(head: BaselineHead, body: &[u8], _: &[u8]) -> Result<Self, StoreError> {
        let BaselineHead { project, tag, op, time, run, base_seed, .. } = head;
        Ok(Self { project, tag, op, time, run, base_seed, cases: read_body(body)? })
    }
}

impl Record for RunRecord {
    type Head = String;

    fn head(&self) -> String {
        self.project.clone()
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        self.run.to_json()
    }

    fn read(project: String, body: &[u8], _: &[u8]) -> Result<Self, StoreError> {
        Ok(Self { project, run: read_body(body)? })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CampaignHead {
    project: String,
    run: u64,
    time: u64,
    part: u32,
}

impl Record for CampaignRecord {
    type Head = CampaignHead;

    fn head(&self) -> CampaignHead {
        let part = match &self.content {
            CampaignContent::Begun(_) => 0,
            CampaignContent::Part(number, _) => *number,
        };
        CampaignHead { project: self.project.clone(), run: self.run, time: self.time, part }
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        match &self.content {
            CampaignContent::Begun(campaign) => campaign.to_json(),
            CampaignContent::Part(_, report) => report.to_json(),
        }
    }

    fn read(head: CampaignHead, body: &[u8], _: &[u8]) -> Result<Self, StoreError> {
        let CampaignHead { project, run, time, part } = head;
        let content = match part {
            0 => CampaignContent::Begun(Box::new(read_body(body)?)),
            part => CampaignContent::Part(part, Box::new(read_body(body)?)),
        };
        Ok(Self { project, run, time, content })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ArtifactHead {
    project: String,
    kernel: String,
    time: u64,
}

impl Record for ArtifactRecord {
    type Head = ArtifactHead;

    fn head(&self) -> ArtifactHead {
        ArtifactHead { project: self.project.clone(), kernel: self.kernel.clone(), time: self.time }
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        self.metrics.to_json()
    }

    fn read(head: ArtifactHead, body: &[u8], _: &[u8]) -> Result<Self, StoreError> {
        Ok(Self { project: head.project, kernel: head.kernel, time: head.time, metrics: read_body(body)? })
    }
}

impl Record for ArtifactBaselineRecord {
    type Head = (String, ArtifactHead);

    fn head(&self) -> Self::Head {
        (self.tag.clone(), self.artifact.head())
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        self.artifact.body()
    }

    fn read((tag, head): Self::Head, body: &[u8], _: &[u8]) -> Result<Self, StoreError> {
        Ok(Self { tag, artifact: ArtifactRecord::read(head, body, &[])? })
    }
}

fn read_body<T: FromJson>(body: &[u8]) -> Result<T, StoreError> {
    T::from_json(body).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// A record's bytes: version, head, packed body, attachment; after the version stand the lengths of the head, of the packed
/// body, and of the body.
pub(super) fn encode<T: Record>(record: &T) -> Result<Vec<u8>, StoreError> {
    let unwritable = |error: serde_json::Error| StoreError::Encode(error.to_string());
    let too_long = |_| StoreError::Encode("it has more than 4 GiB".to_string());
    let head = serde_json::to_string(&record.head()).map_err(unwritable)?;
    let body = record.body().map_err(unwritable)?;
    let (packed, attachment) = (pack(&body), record.attachment());
    let mut value = Vec::with_capacity(PREFIX + head.len() + packed.len() + attachment.len());
    value.extend_from_slice(&SCHEMA_VERSION.to_le_bytes());
    for length in [head.len(), packed.len(), body.len()] {
        value.extend_from_slice(&u32::try_from(length).map_err(too_long)?.to_le_bytes());
    }
    value.extend_from_slice(head.as_bytes());
    value.extend_from_slice(&packed);
    value.extend_from_slice(&attachment);
    Ok(value)
}

/// Bytes of the version and of the lengths.
const PREFIX: usize = 14;

/// A record's bytes, taken apart.
struct Parts<'a> {
    head: &'a [u8],
    packed: &'a [u8],
    /// Bytes of the body.
    length: usize,
    attachment: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(value: &'a [u8]) -> Result<Self, StoreError> {
        let short = || StoreError::Damaged("a value ends before its record does".to_string());
        let (version, rest) = value.split_first_chunk::<2>().ok_or_else(short)?;
        let found = u16::from_le_bytes(*version);
        if found != SCHEMA_VERSION {
            return Err(StoreError::UnknownVersion { found: u64::from(found), known: u64::from(SCHEMA_VERSION) });
        }
        let mut lengths = [0; 3];
        let mut rest = rest;
        for length in &mut lengths {
            let (bytes, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
            (*length, rest) = (u32::from_le_bytes(*bytes) as usize, after);
        }
        let [head, packed, length] = lengths;
        let (head, rest) = rest.split_at_checked(head).ok_or_else(short)?;
        let (packed, attachment) = rest.split_at_checked(packed).ok_or_else(short)?;
        Ok(Self { head, packed, length, attachment })
    }
}

fn read_head<T: Record>(parts: &Parts<'_>) -> Result<T::Head, StoreError> {
    serde_json::from_slice(parts.head).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// What is sought of a record, without reading the rest of it.
pub(super) fn head<T: Record>(value: &[u8]) -> Result<T::Head, StoreError> {
    read_head::<T>(&Parts::of(value)?)
}

pub(super) fn decode<T: Record>(value: &[u8]) -> Result<T, StoreError> {
    let parts = Parts::of(value)?;
    let read = || T::read(read_head::<T>(&parts)?, &unpack(parts.packed, parts.length)?, parts.attachment);
    fault!("store.decode", StoreError::Damaged("injected".to_string()), read())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use gpuemu_model::CaseDescriptor;
    use gpuemu_tensor::Tensor;
    use proptest::prelude::*;

    pub(crate) fn record() -> ResultRecord {
        let case = CaseDescriptor::of("softmax", DType::F32, u64::MAX);
        let result = ValidationResult {
            outcome: Outcome::Failed,
            passed: false,
            largest: LargestErrors { tolerance_share: f64::INFINITY, max_abs_diff: 1.5, ..LargestErrors::default() },
            run: Some(1),
            time: 5,
            ..ValidationResult::of(case)
        };
        ResultRecord { project: "p".to_string(), run: 1, index: 2, base_seed: 42, result }
    }

    fn failure() -> FailureRecord {
        let input = Tensor::from_f64(DType::F32, vec![2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let snapshot = Snapshot::of(&[("input".to_string(), input.unwrap())], 1 << 20);
        FailureRecord { result: record(), snapshot }
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
        assert_eq!(decode::<ResultRecord>(&newer), Err(StoreError::UnknownVersion { found: 9, known: 3 }));
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
