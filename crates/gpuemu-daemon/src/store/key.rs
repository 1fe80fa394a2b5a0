//! Keys whose order in the store is the order in which people ask: a project's newest run last.

use gpuemu_common::rng::blake2b;

use super::record::ResultRecord;

/// Bytes that stand for a project.
pub(super) const PROJECT_BYTES: usize = 16;

/// What all keys of a project begin with.
pub(super) fn project_prefix(project: &str) -> Vec<u8> {
    blake2b(PROJECT_BYTES).hash(project.as_bytes()).as_bytes().to_vec()
}

/// project, run, op, index.
pub(super) fn result_key(record: &ResultRecord) -> Vec<u8> {
    let mut key = project_prefix(&record.project);
    key.extend(record.run.to_be_bytes());
    key.extend(record.op.as_bytes());
    key.push(0);
    key.extend(record.index.to_be_bytes());
    key
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

    #[test]
    fn the_end_of_a_prefix_is_above_all_its_keys() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 255]), Some(vec![2]));
        assert_eq!(after_prefix(&[255, 255]), None);
    }
}
