//! The trees of the store, and how they are walked.

use redb::{Range, ReadOnlyTable, ReadTransaction, Table, TableDefinition, WriteTransaction};

use super::error::Problem;
use super::key::{KeyRange, key_name, name_prefix};

type Bytes = &'static [u8];

pub(super) type ReadTree = ReadOnlyTable<Bytes, Bytes>;

/// What a record belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tree {
    Results,
    Failures,
    Baselines,
    Artifacts,
    ArtifactBaselines,
    Runs,
    OpRuns,
    Campaigns,
}

impl Tree {
    pub(super) const ALL: [Tree; 8] = [
        Tree::Results,
        Tree::Failures,
        Tree::Baselines,
        Tree::Artifacts,
        Tree::ArtifactBaselines,
        Tree::Runs,
        Tree::OpRuns,
        Tree::Campaigns,
    ];

    /// Its name in the database.
    pub(super) const fn definition(self) -> TableDefinition<'static, Bytes, Bytes> {
        TableDefinition::new(match self {
            Tree::Results => "results",
            Tree::Failures => "failures",
            Tree::Baselines => "baselines",
            Tree::Artifacts => "artifacts",
            Tree::ArtifactBaselines => "artifact_baselines",
            Tree::Runs => "runs",
            Tree::OpRuns => "op_runs",
            Tree::Campaigns => "campaigns",
        })
    }

    pub(super) fn read(self, transaction: &ReadTransaction) -> Result<ReadTree, Problem> {
        Ok(transaction.open_table(self.definition())?)
    }

    /// The tree, to write; made if it is not there.
    pub(super) fn write(self, transaction: &WriteTransaction) -> Result<Table<'_, Bytes, Bytes>, Problem> {
        Ok(transaction.open_table(self.definition())?)
    }
}

/// What lies in a range.
pub(super) fn entries(tree: &ReadTree, range: &KeyRange) -> Result<Range<'static, Bytes, Bytes>, Problem> {
    Ok(tree.range::<&[u8]>(range.bounds())?)
}

pub(super) fn first_key(tree: &ReadTree, range: &KeyRange) -> Result<Option<Vec<u8>>, Problem> {
    Ok(entries(tree, range)?.next().transpose()?.map(|(key, _)| key.value().to_vec()))
}

pub(super) fn last_key(tree: &ReadTree, range: &KeyRange) -> Result<Option<Vec<u8>>, Problem> {
    Ok(entries(tree, range)?.next_back().transpose()?.map(|(key, _)| key.value().to_vec()))
}

/// The names that stand after a project in the keys of a tree; each is found by one seek.
pub(super) fn names(tree: &ReadTree, project: &[u8]) -> Result<Vec<String>, Problem> {
    let mut names = Vec::new();
    let mut rest = KeyRange::of_prefix(project);
    while let Some(key) = first_key(tree, &rest)? {
        let name = key_name(&key)?;
        let end = KeyRange::of_prefix(&name_prefix(project, &name)).end;
        names.push(name);
        let Some(end) = end else { break };
        rest.start = end;
    }
    Ok(names)
}
