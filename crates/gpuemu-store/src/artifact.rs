//! What was measured of compiled kernels, by kernel and time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::error::Problem;
use super::key::{KeyRange, artifact_key, key_number, name_prefix, project_prefix};
use super::record::{ArtifactRecord, decode};
use super::run_clock::RunClock;
use super::tree::{ReadTree, Tree, last_key, names};
use super::{Store, StoreError, entry};

impl Store {
    pub fn put_artifact(&self, record: &ArtifactRecord) -> Result<(), StoreError> {
        self.write(vec![entry(Tree::Artifacts, artifact_key(record)?, record)?], RunClock::default())
    }

    /// A project's artifacts, of one kernel if named, the newest first.
    pub fn artifacts(
        &self,
        project: &str,
        kernel: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ArtifactRecord>, StoreError> {
        let project = project_prefix(project);
        self.file.read(|transaction| {
            let table = Tree::Artifacts.read(transaction)?;
            let names = match kernel {
                Some(kernel) => vec![kernel.to_string()],
                None => names(&table, &project)?,
            };
            let of_kernel = |name: &String| KeyRange::of_prefix(&name_prefix(&project, name));
            let kernels: Vec<KeyRange> = names.iter().map(of_kernel).collect();
            // The newest of each kernel that was not taken yet; of one moment, the kernel that sorts first.
            let mut newest = BinaryHeap::new();
            for (number, range) in kernels.iter().enumerate() {
                newest.extend(newest_below(&table, range)?.map(|(time, key)| (time, Reverse(number), key)));
            }
            let mut found = Vec::new();
            while found.len() < limit
                && let Some((_, number, key)) = newest.pop()
            {
                if let Some(value) = table.get(key.as_slice())? {
                    found.push(decode::<ArtifactRecord>(value.value())?);
                }
                let range = &kernels[number.0];
                let older = KeyRange { start: range.start.clone(), end: Some(key) };
                newest.extend(newest_below(&table, &older)?.map(|(time, key)| (time, number, key)));
            }
            Ok(found)
        })
    }
}

/// The last key of a kernel's range, after its time.
fn newest_below(table: &ReadTree, kernel: &KeyRange) -> Result<Option<(u64, Vec<u8>)>, Problem> {
    let Some(key) = last_key(table, kernel)? else { return Ok(None) };
    Ok(Some((key_number(&key, kernel.start.len())?, key)))
}
