//! Baselines: what a tag stood for when it was stored last. Older storings stay.
//!
//! A tag has ops, compiled kernels, or both: they are stored together, and only those of one moment count.

use std::collections::BTreeSet;

use redb::ReadTransaction;

use super::error::Problem;
use super::key::{KeyRange, key_number, name_prefix, project_prefix, tagged_key, with_number};
use super::record::{ArtifactBaselineRecord, ArtifactRecord, BaselineRecord, Record, decode, head};
use super::run_clock::RunClock;
use super::tree::{Tree, entries, last_key, names};
use super::{Store, StoreError, entry};

/// The trees that a tag is stored in.
const TREES: [Tree; 2] = [Tree::Baselines, Tree::ArtifactBaselines];

/// A tag, as it was stored last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineTag {
    pub tag: String,
    /// When, in milliseconds since 1970.
    pub time: u64,
    pub ops: usize,
    pub cases: usize,
    pub kernels: usize,
}

impl Store {
    /// Keeps baselines of ops and of kernels: together or not at all. Of one tag, those with the greatest time count.
    pub fn put_baseline(&self, ops: &[BaselineRecord], kernels: &[ArtifactBaselineRecord]) -> Result<(), StoreError> {
        let mut clock = RunClock::default();
        ops.iter().for_each(|record| clock.include_run(record.run));
        let ops = ops.iter().map(|record| {
            entry(Tree::Baselines, tagged_key(&record.project, &record.tag, record.time, &record.op), record)
        });
        let kernels = kernels.iter().map(|record| {
            let ArtifactRecord { project, kernel, time, .. } = &record.artifact;
            entry(Tree::ArtifactBaselines, tagged_key(project, &record.tag, *time, kernel), record)
        });
        self.write(ops.chain(kernels).collect::<Result<_, _>>()?, clock)
    }

    /// The ops of a tag when it was stored last; none if it never was, or had none.
    pub fn baseline(&self, project: &str, tag: &str) -> Result<Vec<BaselineRecord>, StoreError> {
        self.newest_of_tag(Tree::Baselines, project, tag)
    }

    /// The kernels of a tag when it was stored last; none if it never was, or had none.
    pub fn artifact_baseline(&self, project: &str, tag: &str) -> Result<Vec<ArtifactBaselineRecord>, StoreError> {
        self.newest_of_tag(Tree::ArtifactBaselines, project, tag)
    }

    /// A project's tags, the newest first.
    pub fn baseline_tags(&self, project: &str) -> Result<Vec<BaselineTag>, StoreError> {
        let project = project_prefix(project);
        let mut tags = self.file.read(|transaction| {
            let mut tag_names = BTreeSet::new();
            for tree in TREES {
                tag_names.extend(names(&tree.read(transaction)?, &project)?);
            }
            let mut tags = Vec::new();
            for tag in tag_names {
                let all = name_prefix(&project, &tag);
                let Some((time, newest)) = newest_storing(transaction, &all)? else { continue };
                let mut found = BaselineTag { tag, time, ops: 0, cases: 0, kernels: 0 };
                for entry in entries(&Tree::Baselines.read(transaction)?, &newest)? {
                    found.ops += 1;
                    found.cases += head::<BaselineRecord>(entry?.1.value())?.cases;
                }
                for entry in entries(&Tree::ArtifactBaselines.read(transaction)?, &newest)? {
                    entry?;
                    found.kernels += 1;
                }
                tags.push(found);
            }
            Ok(tags)
        })?;
        tags.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.tag.cmp(&other.tag)));
        Ok(tags)
    }

    /// Removes a tag with all its storings. Returns how many records that were.
    pub fn delete_baseline(&self, project: &str, tag: &str) -> Result<usize, StoreError> {
        let range = KeyRange::of_prefix(&name_prefix(&project_prefix(project), tag));
        self.file.write(|transaction| {
            let mut removed = 0;
            for tree in TREES {
                for entry in tree.write(transaction)?.extract_from_if::<&[u8], _>(range.bounds(), |_, _| true)? {
                    entry?;
                    removed += 1;
                }
            }
            Ok(removed)
        })
    }

    fn newest_of_tag<T: Record>(&self, tree: Tree, project: &str, tag: &str) -> Result<Vec<T>, StoreError> {
        let all = name_prefix(&project_prefix(project), tag);
        self.file.read(|transaction| {
            let Some((_, newest)) = newest_storing(transaction, &all)? else { return Ok(Vec::new()) };
            let range = entries(&tree.read(transaction)?, &newest)?;
            range.map(|entry| Ok(decode::<T>(entry?.1.value())?)).collect()
        })
    }
}

/// The time and the keys of a tag's last storing, in whichever tree it is.
fn newest_storing(transaction: &ReadTransaction, tag: &[u8]) -> Result<Option<(u64, KeyRange)>, Problem> {
    let mut newest = None;
    for tree in TREES {
        if let Some(last) = last_key(&tree.read(transaction)?, &KeyRange::of_prefix(tag))? {
            newest = newest.max(Some(key_number(&last, tag.len())?));
        }
    }
    Ok(newest.map(|time| (time, KeyRange::of_prefix(&with_number(tag, time)))))
}
