//! Campaigns whose parts are made elsewhere: what is needed to join them, until they are joined.

use super::key::{KeyRange, campaign_key, key_number, project_prefix, run_prefix, with_number};
use super::record::{CampaignRecord, FailureRecord, ResultRecord, decode};
use super::tree::{Tree, entries, last_key};
use super::{Store, StoreError, appended, entry};

impl Store {
    /// Keeps a campaign, or a part of one with its results: together or not at all. What is kept again replaces itself.
    pub fn put_campaign(
        &self,
        record: &CampaignRecord,
        results: &[ResultRecord],
        failures: &[FailureRecord],
    ) -> Result<(), StoreError> {
        let (mut written, mut clock) = appended(results, failures)?;
        clock.include_run(record.run);
        written.push(entry(Tree::Campaigns, campaign_key(record), record)?);
        self.write(written, clock)
    }

    /// A campaign that has not ended.
    pub fn campaign(&self, project: &str, run: u64) -> Result<Option<CampaignRecord>, StoreError> {
        let key = with_number(&run_prefix(&project_prefix(project), run), 0);
        self.file.read(|transaction| {
            let found = Tree::Campaigns.read(transaction)?.get(key.as_slice())?;
            Ok(found.map(|value| decode::<CampaignRecord>(value.value())).transpose()?)
        })
    }

    /// The numbers of the parts of a campaign that are kept.
    pub fn kept_parts(&self, project: &str, run: u64) -> Result<Vec<u64>, StoreError> {
        let prefix = run_prefix(&project_prefix(project), run);
        self.file.read(|transaction| {
            let found = entries(&Tree::Campaigns.read(transaction)?, &parts(&prefix))?;
            found.map(|entry| Ok(key_number(entry?.0.value(), prefix.len())?)).collect()
        })
    }

    /// The parts of a campaign that are kept, in their order.
    pub fn campaign_parts(&self, project: &str, run: u64) -> Result<Vec<CampaignRecord>, StoreError> {
        let range = parts(&run_prefix(&project_prefix(project), run));
        self.file.read(|transaction| {
            let found = entries(&Tree::Campaigns.read(transaction)?, &range)?;
            found.map(|entry| Ok(decode::<CampaignRecord>(entry?.1.value())?)).collect()
        })
    }

    /// The run of a project's newest campaign that has not ended.
    pub fn newest_campaign(&self, project: &str) -> Result<Option<u64>, StoreError> {
        let project = project_prefix(project);
        self.file.read(|transaction| {
            let last = last_key(&Tree::Campaigns.read(transaction)?, &KeyRange::of_prefix(&project))?;
            Ok(last.map(|key| key_number(&key, project.len())).transpose()?)
        })
    }

    /// Forgets a campaign that was joined; its results stay.
    pub fn forget_campaign(&self, project: &str, run: u64) -> Result<(), StoreError> {
        let range = KeyRange::of_prefix(&run_prefix(&project_prefix(project), run));
        self.file.write(|transaction| {
            let mut table = Tree::Campaigns.write(transaction)?;
            table.retain_in::<&[u8], _>(range.bounds(), |_, _| false)?;
            Ok(())
        })
    }
}

/// The keys of the parts of a campaign, itself left out.
fn parts(run: &[u8]) -> KeyRange {
    KeyRange { start: with_number(run, 1), ..KeyRange::of_prefix(run) }
}

#[cfg(test)]
mod tests {
    use gpuemu_model::FuzzConfig;
    use gpuemu_model::campaign::CampaignStatus;
    use gpuemu_model::report::{REPORT_VERSION, RunReport};

    use super::super::CampaignContent;
    use super::*;

    fn report(run: u64) -> Box<RunReport> {
        Box::new(RunReport {
            version: REPORT_VERSION,
            gpuemu: "0".to_string(),
            project: "p".to_string(),
            config: "gpuemu.toml".to_string(),
            run,
            time: run / 1000,
            seconds: 0.0,
            mode: "thorough".to_string(),
            seed: 1,
            settings: FuzzConfig::default(),
            part: None,
            config_digest: String::new(),
            passed: true,
            ops: Vec::new(),
            left_out: 0,
            kernels: Vec::new(),
            comparison: None,
            warnings: Vec::new(),
            evidence: None,
        })
    }

    fn record(run: u64, part: u32) -> CampaignRecord {
        let begun = || CampaignStatus {
            run,
            ops: Vec::new(),
            planned_ops: vec!["softmax".to_string()],
            config: FuzzConfig::default(),
            parts: 300,
            kept: Vec::new(),
            client_side: false,
            report: report(run),
        };
        let content = match part {
            0 => CampaignContent::Begun(Box::new(begun())),
            part => CampaignContent::Part(part, report(run)),
        };
        CampaignRecord { project: "/p".to_string(), run, time: run / 1000, content }
    }

    #[test]
    fn a_campaign_is_kept_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        assert_eq!(store.newest_campaign("/p").unwrap(), None);
        for (run, part) in [(7, 0), (5, 0), (7, 300), (7, 2), (7, 2)] {
            store.put_campaign(&record(run, part), &[], &[]).unwrap();
        }
        assert_eq!(store.newest_campaign("/p").unwrap(), Some(7));
        assert_eq!(store.newest_campaign("/other").unwrap(), None);
        assert_eq!(store.campaign("/p", 7).unwrap(), Some(record(7, 0)));
        assert_eq!(store.kept_parts("/p", 7).unwrap(), [2, 300]);
        assert_eq!(store.campaign_parts("/p", 7).unwrap(), [record(7, 2), record(7, 300)]);
        assert!(store.next_run() > 7);
        store.forget_campaign("/p", 7).unwrap();
        assert_eq!(store.campaign("/p", 7).unwrap(), None);
        assert!(store.kept_parts("/p", 7).unwrap().is_empty());
        assert_eq!(store.newest_campaign("/p").unwrap(), Some(5));
    }
}
