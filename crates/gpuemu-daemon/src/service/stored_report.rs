//! The report on stored results: of each op its newest run. Only what the report shows is copied.

use std::collections::BTreeSet;

use gpuemu_config::failure::Failure;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{CaseSummary, Conclusion, DtypeCounts, OpReport, OpStatus, StoredRun};
use gpuemu_run::project::Project;
use gpuemu_store::results::{outcome_of, stored_runner};
use gpuemu_store::{FailureRecord, ResultQuery, ResultRecord};
use gpuemu_wire::protocol::{ReportStored, Response};

use super::records::{since, stored_failure, stored_result, stored_run};
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
        names.extend(self.store.runs(&project.key, None, 1)?.into_iter().map(|record| record.op));
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
        let run = self.store.runs(&project.key, query.op.as_deref(), 1)?.pop();
        let run = run.filter(|run| query.since.is_none_or(|since| run.time >= since));
        let run = run.filter(|run| newest.as_ref().is_none_or(|newest| run.run >= newest.run));
        let time = newest.as_ref().map_or(0, |newest| newest.time);
        let mut report = match (run, newest) {
            (Some(run), _) => self.report_run(project, stored_run(&run)?)?,
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
        let failures = failures.iter().map(stored_failure).collect::<Result<Vec<_>, _>>()?;
        report.failures = failures.into_iter().filter(|failure| !failure.minimized).collect();
        report.case_results = cases.iter().map(summary).collect::<Result<_, _>>()?;
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
        let together = match newest.runner == SUBMITTED {
            true => ResultQuery { runner: Some(SUBMITTED.to_string()), ..query },
            false => ResultQuery { run: Some(newest.run), ..query },
        };
        let few = |limit| ResultQuery { limit, ..together.clone() };
        let results = self.store.results(&project.key, &few(MOST_RESULTS))?;
        let failures = self.store.failures(&project.key, &few(OpReport::MOST_FAILURES))?;
        recorded(&newest.op, &results, &failures)
    }
}

fn recorded(name: &str, results: &[ResultRecord], failures: &[FailureRecord]) -> Result<OpReport, Failure> {
    let count = |outcome: Outcome| results.iter().filter(|one| outcome_of(one.outcome) == outcome).count() as u64;
    let largest = |error: fn(&ResultRecord) -> f64| results.iter().map(error).fold(0.0, f64::max);
    // A failure may be older than what is counted.
    let failed = count(Outcome::Failed).max(failures.len() as u64);
    let status = match (failed, count(Outcome::Error), count(Outcome::Passed)) {
        (1.., ..) => OpStatus::Failed,
        (0, 1.., _) | (0, 0, 0) => OpStatus::Error,
        _ => OpStatus::Passed,
    };
    let mut warnings = Vec::new();
    if results.len() >= MOST_RESULTS {
        warnings.push(format!("only its newest {MOST_RESULTS} results are counted: ask for a shorter time"));
    }
    Ok(OpReport {
        status,
        runner: results.first().map_or(String::new(), |result| stored_runner(result).0.to_string()),
        planned: results.len() as u64,
        cases: results.len() as u64,
        passed: count(Outcome::Passed),
        failed,
        undetermined: count(Outcome::Undetermined),
        errors: count(Outcome::Error),
        dtypes: by_dtype(results)?,
        max_abs_diff: largest(|result| result.max_abs),
        max_rel_diff: largest(|result| result.max_rel),
        max_ulp_diff: largest(|result| result.max_ulp),
        tolerance_share: largest(|result| result.largest_share),
        failures: failures.iter().map(stored_failure).collect::<Result<_, _>>()?,
        case_results: results.iter().take(OpReport::MOST_CASES).map(summary).collect::<Result<_, _>>()?,
        warnings,
        ..OpReport::blank(name)
    })
}

fn by_dtype(results: &[ResultRecord]) -> Result<Vec<DtypeCounts>, Failure> {
    let mut found: Vec<DtypeCounts> = Vec::new();
    for result in results {
        let dtype = result.parsed_dtype()?;
        let place = found.iter().position(|counts| counts.dtype == dtype).unwrap_or_else(|| {
            found.push(DtypeCounts { dtype, cases: 0, failed: 0, judged: 0, max_abs_diff: 0.0 });
            found.len() - 1
        });
        let outcome = outcome_of(result.outcome);
        found[place].cases += 1;
        found[place].failed += u64::from(outcome == Outcome::Failed);
        found[place].judged += u64::from(outcome == Outcome::Passed);
        found[place].max_abs_diff = found[place].max_abs_diff.max(result.max_abs);
    }
    found.sort_by_key(|counts| counts.dtype);
    Ok(found)
}

fn summary(record: &ResultRecord) -> Result<CaseSummary, Failure> {
    let result = stored_result(record)?;
    Ok(CaseSummary {
        outcome: result.outcome,
        max_abs_diff: result.max_abs_diff,
        max_ulp_diff: result.max_ulp_diff,
        case: result.case,
    })
}
