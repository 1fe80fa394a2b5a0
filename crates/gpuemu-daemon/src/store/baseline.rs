//! Baselines: what a tag stood for when it was stored last. Older storings stay.

use super::error::Problem;
use super::key::{KeyRange, key_name, key_number, name_prefix, project_prefix, tagged_key, with_number};
use super::record::{ArtifactBaselineRecord, BaselineRecord, Decodable, decode, view};
use super::run_clock::RunClock;
use super::tree::{ReadTree, Tree, entries, first_key, last_key};
use super::{Store, StoreError, entry};

/// A tag, as it was stored last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineTag {
    /// Its name.
    pub tag: String,
    /// When, in milliseconds since 1970.
    pub time: u64,
    /// Ops it has.
    pub ops: usize,
    /// Cases of all of them.
    pub cases: usize,
}

impl Store {
    /// Keeps baselines: together or not at all. Of one tag, those with the greatest time count.
    pub fn put_baseline(&self, records: &[BaselineRecord]) -> Result<(), StoreError> {
        let mut clock = RunClock::default();
        records.iter().for_each(|record| clock.include_run(record.run));
        let entries = records.iter().map(|record| {
            entry(Tree::Baselines, tagged_key(&record.project, &record.tag, record.time, &record.op), record)
        });
        self.write(entries.collect::<Result<_, _>>()?, clock)
    }

    /// What a tag stood for when it was stored last, by op; nothing if it never was.
    pub fn baseline(&self, project: &str, tag: &str) -> Result<Vec<BaselineRecord>, StoreError> {
        self.newest_of_tag(Tree::Baselines, project, tag)
    }

    /// A project's tags, the newest first.
    pub fn baseline_tags(&self, project: &str) -> Result<Vec<BaselineTag>, StoreError> {
        let project = project_prefix(project);
        let mut tags = self.file.read(|transaction| {
            let table = Tree::Baselines.read(transaction)?;
            let mut tags = Vec::new();
            let mut rest = KeyRange::of_prefix(&project);
            while let Some(key) = first_key(&table, &rest)? {
                let tag = key_name(&key)?;
                let all = KeyRange::of_prefix(&name_prefix(&project, &tag));
                if let Some((time, newest)) = newest_storing(&table, &all)? {
                    let mut found = BaselineTag { tag, time, ops: 0, cases: 0 };
                    for entry in entries(&table, &newest)? {
                        found.ops += 1;
                        found.cases += view::<BaselineRecord>(entry?.1.value())?.cases.len();
                    }
                    tags.push(found);
                }
                let Some(end) = all.end else { break };
                rest.start = end;
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
            for entry in Tree::Baselines.write(transaction)?.extract_from_if::<&[u8], _>(range.bounds(), |_, _| true)? {
                entry?;
                removed += 1;
            }
            Ok(removed)
        })
    }

    /// Keeps baselines of artifacts: together or not at all. Of one tag, those with the greatest time count.
    pub fn put_artifact_baseline(&self, records: &[ArtifactBaselineRecord]) -> Result<(), StoreError> {
        let entries = records.iter().map(|record| {
            let key = tagged_key(&record.project, &record.tag, record.time, &record.kernel);
            entry(Tree::ArtifactBaselines, key, record)
        });
        self.write(entries.collect::<Result<_, _>>()?, RunClock::default())
    }

    /// What a tag stood for when it was stored last, by kernel; nothing if it never was.
    pub fn artifact_baseline(&self, project: &str, tag: &str) -> Result<Vec<ArtifactBaselineRecord>, StoreError> {
        self.newest_of_tag(Tree::ArtifactBaselines, project, tag)
    }

    fn newest_of_tag<T: Decodable>(&self, tree: Tree, project: &str, tag: &str) -> Result<Vec<T>, StoreError> {
        let all = KeyRange::of_prefix(&name_prefix(&project_prefix(project), tag));
        self.file.read(|transaction| {
            let table = tree.read(transaction)?;
            let Some((_, newest)) = newest_storing(&table, &all)? else { return Ok(Vec::new()) };
            let range = entries(&table, &newest)?;
            range.map(|entry| Ok(decode::<T>(entry?.1.value())?)).collect()
        })
    }
}

/// The time and the keys of a tag's last storing.
fn newest_storing(table: &ReadTree, tag: &KeyRange) -> Result<Option<(u64, KeyRange)>, Problem> {
    let Some(last) = last_key(table, tag)? else { return Ok(None) };
    let time = key_number(&last, tag.start.len())?;
    Ok(Some((time, KeyRange::of_prefix(&with_number(&tag.start, time)))))
}
