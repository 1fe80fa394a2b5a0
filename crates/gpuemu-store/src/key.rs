//! Keys whose order in the store is the order in which people ask: a project's newest run last.
//!
//! Every key begins with a digest of the project. Names in it are escaped and ended, so that no
//! name's key begins with another's, and names sort as their bytes do.

use std::ops::Bound;

use gpuemu_model::json::ToJson;
use gpuemu_tensor::rng::blake2b;

use super::StoreError;
use super::record::{ArtifactRecord, CampaignRecord, ResultRecord, RunRecord};

/// Bytes that stand for a project.
pub(super) const PROJECT_BYTES: usize = 16;

const NUMBER_BYTES: usize = 8;

/// Bytes that keep two artifacts of one moment apart.
const CONTENT_BYTES: usize = 8;

/// What all keys of a project begin with.
pub(super) fn project_prefix(project: &str) -> Vec<u8> {
    blake2b(PROJECT_BYTES).hash(project.as_bytes()).as_bytes().to_vec()
}

/// What the keys of a project's run begin with.
pub(super) fn run_prefix(project: &[u8], run: u64) -> Vec<u8> {
    with_number(project, run)
}

/// What the keys of an op in a run begin with.
pub(super) fn op_prefix(project: &[u8], run: u64, op: &str) -> Vec<u8> {
    with_name(&run_prefix(project, run), op)
}

/// project, run, op, index.
pub(super) fn result_key(record: &ResultRecord) -> Vec<u8> {
    with_number(&op_prefix(&project_prefix(&record.project), record.run, &record.result.op), record.index)
}

pub(super) fn campaign_key(record: &CampaignRecord) -> Vec<u8> {
    with_number(&run_prefix(&project_prefix(&record.project), record.run), record.content.part())
}

/// What the keys of a tag, of a kernel, or of an op's runs begin with.
pub(super) fn name_prefix(project: &[u8], name: &str) -> Vec<u8> {
    with_name(project, name)
}

pub(super) fn op_run_key(record: &RunRecord) -> Vec<u8> {
    with_number(&name_prefix(&project_prefix(&record.project), &record.run.op.op), record.run.run)
}

/// project, op, run of a result that has this key: what it is found by where its op is asked for.
pub(super) fn op_run_of_result(key: &[u8]) -> Result<Vec<u8>, StoreError> {
    let parts = key.split_at_checked(PROJECT_BYTES).and_then(|(project, rest)| {
        let (run, rest) = rest.split_at_checked(NUMBER_BYTES)?;
        let (op, _) = rest.split_at_checked(rest.len().checked_sub(NUMBER_BYTES)?)?;
        Some([project, op, run].concat())
    });
    parts.ok_or_else(|| bad_key(key))
}

/// What the keys of all results begin with that a key of project, op, run stands for.
pub(super) fn results_of_op_run(key: &[u8]) -> Result<Vec<u8>, StoreError> {
    let parts = key.split_at_checked(PROJECT_BYTES).and_then(|(project, rest)| {
        let (op, run) = rest.split_at_checked(rest.len().checked_sub(NUMBER_BYTES)?)?;
        Some([project, run, op].concat())
    });
    parts.ok_or_else(|| bad_key(key))
}

/// project, tag, time, then an op or a kernel.
pub(super) fn tagged_key(project: &str, tag: &str, time: u64, name: &str) -> Vec<u8> {
    with_name(&with_number(&name_prefix(&project_prefix(project), tag), time), name)
}

/// project, kernel, time, then what tells two artifacts of one moment apart.
pub(super) fn artifact_key(record: &ArtifactRecord) -> Result<Vec<u8>, StoreError> {
    let metrics = record.metrics.to_json().map_err(|error| StoreError::Encode(error.to_string()))?;
    let mut key = with_number(&name_prefix(&project_prefix(&record.project), &record.kernel), record.time);
    key.extend(blake2b(CONTENT_BYTES).hash(metrics.as_bytes()).as_bytes());
    Ok(key)
}

/// A prefix and a number that sorts as numbers do.
pub(super) fn with_number(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

fn with_name(prefix: &[u8], name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + name.len() + 2 + NUMBER_BYTES);
    key.extend_from_slice(prefix);
    for byte in name.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(u8::MAX);
        }
    }
    key.extend([0, 0]);
    key
}

pub(super) fn key_project(key: &[u8]) -> Result<&[u8], StoreError> {
    key.get(..PROJECT_BYTES).ok_or_else(|| bad_key(key))
}

/// The number that stands after a prefix: a run or a time.
pub(super) fn key_number(key: &[u8], prefix_length: usize) -> Result<u64, StoreError> {
    let number = key.get(prefix_length..).and_then(|rest| rest.first_chunk::<NUMBER_BYTES>());
    number.map(|bytes| u64::from_be_bytes(*bytes)).ok_or_else(|| bad_key(key))
}

/// The name that stands after the project: a tag, a kernel or an op.
pub(super) fn key_name(key: &[u8]) -> Result<String, StoreError> {
    let mut rest = key.get(PROJECT_BYTES..).ok_or_else(|| bad_key(key))?.iter();
    let mut name = Vec::new();
    loop {
        match rest.next() {
            Some(0) => match rest.next() {
                Some(0) => return String::from_utf8(name).map_err(|_| bad_key(key)),
                Some(&u8::MAX) => name.push(0),
                _ => return Err(bad_key(key)),
            },
            Some(byte) => name.push(*byte),
            None => return Err(bad_key(key)),
        }
    }
}

fn bad_key(key: &[u8]) -> StoreError {
    StoreError::Damaged(format!("a key of {} bytes is none that gpuemu writes", key.len()))
}

/// Keys from one, up to but not including another; to the last one if there is no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyRange {
    pub start: Vec<u8>,
    /// First key that no longer belongs to it.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys that begin with a prefix.
    pub(super) fn of_prefix(prefix: &[u8]) -> Self {
        Self { start: prefix.to_vec(), end: after_prefix(prefix) }
    }

    /// As redb wants it.
    pub(super) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        // A range that ends before it starts would be the database's to interpret.
        match &self.end {
            Some(end) if *end <= self.start => (Bound::Included(end), Bound::Excluded(end)),
            Some(end) => (Bound::Included(&self.start), Bound::Excluded(end)),
            None => (Bound::Included(&self.start), Bound::Unbounded),
        }
    }
}

/// The first key that no key with a prefix reaches; `None` where there is none.
pub(super) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_end_of_a_prefix_is_above_all_its_keys() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 255]), Some(vec![2]));
        assert_eq!(after_prefix(&[255, 255]), None);
    }

    #[test]
    fn keys_that_nobody_wrote_are_errors() {
        let cut = |key: &[u8]| [key_name(key).is_err(), key_number(key, PROJECT_BYTES).is_err()];
        assert_eq!(cut(&[]), [true, true]);
        assert_eq!(cut(&[7; PROJECT_BYTES]), [true, true]);
        assert_eq!(cut(&[&[7; PROJECT_BYTES][..], b"abc\0"].concat()), [true, true]);
        assert_eq!(cut(&[&[7; PROJECT_BYTES][..], b"a\0\x07defgh"].concat()), [true, false]);
        assert!(key_name(&[&[7; PROJECT_BYTES][..], b"\xff\xfe\0\0"].concat()).is_err());
        assert!(key_project(&[7; PROJECT_BYTES - 1]).is_err());
    }

    fn any_name() -> impl Strategy<Value = String> {
        prop_oneof![any::<String>(), "[\u{0}\u{1}aé]{0,4}"]
    }

    /// Two names, of which the second often begins with the first.
    fn two_names() -> impl Strategy<Value = (String, String)> {
        prop_oneof![
            (any_name(), any_name()),
            ("[\u{0}a]{0,3}", "[\u{0}\u{1}a]{0,3}").prop_map(|(name, more)| (name.clone(), name + &more)),
        ]
    }

    fn any_number() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), 0u64..3, (u64::MAX - 2)..=u64::MAX]
    }

    fn key(run: u64, op: &str, index: u64) -> Vec<u8> {
        with_number(&op_prefix(&project_prefix("p"), run, op), index)
    }

    proptest! {
        #[test]
        fn result_keys_sort_by_run_then_op_then_index(
            runs in (any_number(), any_number()), same_run: bool, ops in two_names(), indices in (any_number(), any_number()),
        ) {
            let first = (runs.0, ops.0, indices.0);
            let second = (if same_run { runs.0 } else { runs.1 }, ops.1, indices.1);
            let keys = key(first.0, &first.1, first.2).cmp(&key(second.0, &second.1, second.2));
            prop_assert_eq!(keys, first.cmp(&second));
        }

        #[test]
        fn no_name_is_the_beginning_of_another((first, second) in two_names(), rest in any::<[u8; 8]>()) {
            let project = project_prefix("p");
            let (one, other) = (name_prefix(&project, &first), name_prefix(&project, &second));
            prop_assert_eq!(first == second, other.starts_with(&one));
            let long = [&other[..], &rest].concat();
            prop_assert_eq!(first == second, long.starts_with(&one));
        }

        #[test]
        fn a_range_of_a_prefix_holds_its_keys_and_no_others(
            (op, other) in two_names(), run in any_number(), index in any_number(),
        ) {
            let range = KeyRange::of_prefix(&op_prefix(&project_prefix("p"), run, &op));
            let inside = |key: &[u8]| std::ops::RangeBounds::<&[u8]>::contains(&range.bounds(), &key);
            prop_assert!(inside(&key(run, &op, index)));
            prop_assert_eq!(inside(&key(run, &other, index)), op == other);
        }

        #[test]
        fn names_and_numbers_are_read_back(tag in any_name(), op in any_name(), time in any_number()) {
            let key = tagged_key("p", &tag, time, &op);
            let project = project_prefix("p");
            prop_assert_eq!(key_project(&key), Ok(&project[..]));
            prop_assert_eq!(key_name(&key), Ok(tag.clone()));
            prop_assert_eq!(key_number(&key, name_prefix(&project, &tag).len()), Ok(time));
        }

        #[test]
        fn the_op_and_run_of_a_result_are_read_off_its_key(op in any_name(), run in any_number(), index in any_number()) {
            let project = project_prefix("p");
            let found = op_run_of_result(&key(run, &op, index)).unwrap();
            prop_assert_eq!(&found, &with_number(&name_prefix(&project, &op), run));
            prop_assert_eq!(results_of_op_run(&found), Ok(op_prefix(&project, run, &op)));
        }

        #[test]
        fn foreign_keys_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = (key_name(&bytes), key_project(&bytes), key_number(&bytes, PROJECT_BYTES));
            let _ = (op_run_of_result(&bytes), results_of_op_run(&bytes));
        }
    }
}
