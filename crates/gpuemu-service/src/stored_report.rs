//! The report on stored results: of each op its newest run. Only what the report shows is copied.

use std::collections::BTreeSet;

use gpuemu_config::failure::Failure;
use gpuemu_model::finding::{LargestErrors, Outcome};
use gpuemu_model::report::{Conclusion, DtypeCounts, OpReport, OpStatus, StoredRun};
use gpuemu_run::project::Project;
use gpuemu_run::tally::summary_of;
use gpuemu_store::{ResultHead, ResultQuery, ResultRecord};
use gpuemu_wire::protocol::{ReportStored, Response};

use super::records::since;
use super::{Service, VERSION};

/// What produced an output that a client submitted.
const SUBMITTED: &str = "submitted output";

/// Results that clients recorded of an op, and that a report on it is made of at most.
const MOST_RESULTS: usize = 100_000;

impl Service {
    pub(super) fn report_stored(&self, request: &ReportStored) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let since = since(request.since_hours)?;
        let mut names: BTreeSet<String> = self.store.ops_with_results(&project.key)?.into_iter().collect();
        names.extend(self.store.runs(&project.key, None, 1)?.into_iter().map(|record| record.run.op.op));
        names.retain(|name| request.op_name.as_ref().is_none_or(|wanted| wanted == name));
        let mut report = project.config.blank_report(VERSION, "stored");
        for name in names {
            let query = ResultQuery { op: Some(name), since, limit: 1, ..ResultQuery::default() };
            if let Some((op, time)) = self.report_op(&project, query)? {
                report.ops.push(op);
                report.time = report.time.max(time);
            }
        }
        report.passed = report.conclusion() == Conclusion::Passed;
        Ok(Response::Report { report: Box::new(report) })
    }

    /// The report on an op, and when its newest result was; none if nothing of it is stored for that time.
    fn report_op(&self, project: &Project, query: ResultQuery) -> Result<Option<(OpReport, u64)>, Failure> {
        let newest = self.store.results(&project.key, &query)?.pop();
        let run = self.store.runs(&project.key, query.op.as_deref(), 1)?.pop().map(|record| record.run);
        let run = run.filter(|run| query.since.is_none_or(|since| run.time >= since));
        let run = run.filter(|run| newest.as_ref().is_none_or(|newest| run.run >= newest.run));
        let time = newest.as_ref().map_or(0, |newest| newest.result.time);
        let mut report = match (run, newest) {
            (Some(run), _) => self.report_run(project, run)?,
            // Nobody said what these come to: a client recorded them.
            (None, Some(newest)) => self.report_recorded(project, query, &newest)?,
            (None, None) => return Ok(None),
        };
        report.line = project.config.ops.iter().find(|op| op.name == report.op).map_or(0, |op| op.line);
        Ok(Some((report, time)))
    }

    /// The report on an op as its run left it, with the failures and cases that are stored by themselves.
    fn report_run(&self, project: &Project, run: StoredRun) -> Result<OpReport, Failure> {
        let (number, mut report) = (run.run, run.op);
        let (cases, count) = self.store.first_results(&project.key, number, &report.op, OpReport::MOST_CASES)?;
        if count != report.cases {
            report.warnings.push(format!("{count} of the {} results of its run are still stored", report.cases));
        }
        let failures = self.store.first_failures(&project.key, number, &report.op, OpReport::MOST_FAILURES)?;
        let failures = failures.into_iter().map(|failure| failure.result.result);
        report.failures = failures.filter(|failure| !failure.minimized).collect();
        report.case_results = cases.iter().map(|case| summary_of(&case.result)).collect();
        Ok(report)
    }

    /// The report on what clients recorded of an op.
    fn report_recorded(
        &self,
        project: &Project,
        query: ResultQuery,
        newest: &ResultRecord,
    ) -> Result<OpReport, Failure> {
        // Each submitted output is a run of its own: together they are what the client's code did.
        let together = match newest.result.runner == SUBMITTED {
            true => ResultQuery { runner: Some(SUBMITTED.to_string()), ..query },
            false => ResultQuery { run: Some(newest.run), ..query },
        };
        let few = |limit| ResultQuery { limit, ..together.clone() };
        // Clients may be writing: what is counted has all failures that are listed, which were written with it.
        let failures = self.store.failures(&project.key, &few(OpReport::MOST_FAILURES))?;
        let results = self.store.result_heads(&project.key, &few(MOST_RESULTS))?;
        let shown = self.store.results(&project.key, &few(OpReport::MOST_CASES))?;
        let mut report = recorded(&newest.result.op, &results, failures.len() as u64);
        report.failures = failures.into_iter().map(|failure| failure.result.result).collect();
        report.case_results = shown.iter().map(|record| summary_of(&record.result)).collect();
        Ok(report)
    }
}

fn recorded(name: &str, results: &[ResultHead], failures: u64) -> OpReport {
    let count = |outcome: Outcome| results.iter().filter(|one| one.outcome == outcome).count() as u64;
    // A failure may be older than what is counted.
    let failed = count(Outcome::Failed).max(failures);
    let status = match (failed, count(Outcome::Error), count(Outcome::Passed)) {
        (1.., ..) => OpStatus::Failed,
        (0, 1.., _) | (0, 0, 0) => OpStatus::Error,
        _ => OpStatus::Passed,
    };
    let mut warnings = Vec::new();
    if results.len() >= MOST_RESULTS {
        warnings.push(format!("only its newest {MOST_RESULTS} results are counted: ask for a shorter time"));
    }
    OpReport {
        status,
        runner: results.first().map_or(String::new(), |result| result.runner.clone()),
        planned: results.len() as u64,
        cases: results.len() as u64,
        passed: count(Outcome::Passed),
        failed,
        undetermined: count(Outcome::Undetermined),
        errors: count(Outcome::Error),
        dtypes: by_dtype(results),
        largest: results.iter().fold(LargestErrors::default(), |largest, result| largest.join(result.largest)),
        warnings,
        ..OpReport::blank(name)
    }
}

fn by_dtype(results: &[ResultHead]) -> Vec<DtypeCounts> {
    let mut found: Vec<DtypeCounts> = Vec::new();
    for result in results {
        let dtype = result.dtype;
        let place = found.iter().position(|counts| counts.dtype == dtype).unwrap_or_else(|| {
            found.push(DtypeCounts { dtype, cases: 0, failed: 0, judged: 0, max_abs_diff: 0.0 });
            found.len() - 1
        });
        found[place].cases += 1;
        found[place].failed += u64::from(result.outcome == Outcome::Failed);
        found[place].judged += u64::from(result.outcome == Outcome::Passed);
        found[place].max_abs_diff = found[place].max_abs_diff.max(result.largest.max_abs_diff);
    }
    found.sort_by_key(|counts| counts.dtype);
    found
}
