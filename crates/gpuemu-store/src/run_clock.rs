//! How the numbers of runs and the times of records relate.
//!
//! A run has the microseconds since 1970 for a number, but nothing forces that: the clock may have
//! been set, or the number been chosen. So the store remembers how far any record is from it,
//! and only so far does the number of a run tell the time of its records.

use redb::{ReadableTable, Table, TableDefinition};

use super::error::Problem;
use super::record::ResultRecord;

/// Numbers about the store as a whole.
pub(super) const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");

const LARGEST_RUN: &str = "largest_run";
const LEAD: &str = "largest_time_after_run";
const LAG: &str = "largest_time_before_run";

/// Bounds over every record that was ever written, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RunClock {
    /// Largest number of a run.
    pub largest_run: u64,
    /// Furthest that a record's time is after its run's number.
    lead: u64,
    /// Furthest that a record's time is before its run's number.
    lag: u64,
}

impl RunClock {
    /// Takes a result into account.
    pub(super) fn include(&mut self, record: &ResultRecord) {
        let time = microseconds(record.result.time);
        self.include_run(record.run);
        self.lead = self.lead.max(time.saturating_sub(record.run));
        self.lag = self.lag.max(record.run.saturating_sub(time));
    }

    /// Takes a run into account whose results are not here.
    pub(super) fn include_run(&mut self, run: u64) {
        self.largest_run = self.largest_run.max(run);
    }

    /// What holds for the records of both.
    pub(super) fn merged(self, other: Self) -> Self {
        Self {
            largest_run: self.largest_run.max(other.largest_run),
            lead: self.lead.max(other.lead),
            lag: self.lag.max(other.lag),
        }
    }

    /// The first run that may have a record of a time (in milliseconds) or later.
    pub(super) fn first_run_since(self, time: u64) -> u64 {
        microseconds(time).saturating_sub(self.lead)
    }

    /// The last run that may have a record from before a time (in milliseconds).
    pub(super) fn last_run_before(self, time: u64) -> u64 {
        microseconds(time).saturating_add(self.lag)
    }

    pub(super) fn load(meta: &impl ReadableTable<&'static str, u64>) -> Result<Self, Problem> {
        let number = |key| Ok::<u64, Problem>(meta.get(key)?.map_or(0, |value| value.value()));
        Ok(Self { largest_run: number(LARGEST_RUN)?, lead: number(LEAD)?, lag: number(LAG)? })
    }

    pub(super) fn save(self, meta: &mut Table<'_, &'static str, u64>) -> Result<(), Problem> {
        for (key, number) in [(LARGEST_RUN, self.largest_run), (LEAD, self.lead), (LAG, self.lag)] {
            meta.insert(key, number)?;
        }
        Ok(())
    }
}

fn microseconds(milliseconds: u64) -> u64 {
    milliseconds.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use proptest::prelude::*;

    fn at(run: u64, time: u64) -> ResultRecord {
        let mut record = ResultRecord { run, ..record() };
        record.result.time = time;
        record
    }

    fn any_number() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), 0u64..10, 1_800_000_000_000u64..1_800_000_000_100, u64::MAX - 3..=u64::MAX]
    }

    proptest! {
        #[test]
        fn the_bounds_hold_for_every_record_however_odd(
            records in proptest::collection::vec((any_number(), any_number()), 1..6),
            time in any_number(),
        ) {
            let mut clock = RunClock::default();
            for (run, time) in &records {
                let mut alone = RunClock::default();
                alone.include(&at(*run, *time));
                clock = clock.merged(alone);
            }
            for (run, record_time) in records {
                prop_assert!(run <= clock.largest_run);
                prop_assert!(record_time < time || run >= clock.first_run_since(time));
                prop_assert!(record_time >= time || run <= clock.last_run_before(time));
            }
        }
    }

    #[test]
    fn runs_that_are_times_bound_tightly() {
        let mut clock = RunClock::default();
        clock.include(&at(5_000_000, 5_002));
        clock.include(&at(6_000_000, 5_999));
        assert_eq!(clock.first_run_since(7_000), 7_000_000 - 2_000);
        assert_eq!(clock.last_run_before(7_000), 7_000_000 + 1_000);
    }
}
