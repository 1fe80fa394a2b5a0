//! A fault at every step between a case and its report: none may end as "passed".

mod disks;
mod distributed;
mod faulty_daemon;
mod points;
mod scenarios;
mod submitted;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use gpuemu_tensor::Stream;
use serde_json::Value;

use self::points::Point;
use self::scenarios::Scenario;
use self::trial::{Came, Ground, SEEN, Way, trials};
use crate::daemon_process::{program, python};
use crate::trial::{Ended, Extent, Trial, grouped};

pub const TRIAL: Trial =
    Trial { name: "faults", about: "errors and panics at every step from case to report: none is a pass", run };

/// Faults that the short form tries.
const SHORT: usize = 24;

/// Problems that are told at once.
const MOST_PROBLEMS: usize = 20;

fn run(extent: &Extent) -> Ended {
    let Some(python) = python() else { return Ended::Impossible("there is no Python: GPUEMU_TEST_PYTHON".to_string()) };
    if let Err(missing) = program(trial::PROGRAM) {
        return Ended::Impossible(missing);
    }
    Ground::prepare(python).and_then(|ground| strike_everywhere(&ground, extent)).into()
}

/// A fault: where, in which scenario, and the how manieth time that the place is passed.
struct Fault<'a> {
    point: &'a Point,
    scenario: &'static Scenario,
    way: Way,
    /// Which of the times it is: the first, a later one, the last.
    moment: usize,
    hit: usize,
    panics: bool,
}

/// Leaves one fault for each place, way, moment and kind, in a scenario that the seed draws; of these the short form leaves few.
fn choose(faults: &mut Vec<Fault<'_>>, extent: &Extent) {
    let mut choices = Stream::new(extent.seed, "torture/faults");
    for place in (1..faults.len()).rev() {
        faults.swap(place, choices.below(place as u64 + 1) as usize);
    }
    let mut known = BTreeSet::new();
    faults
        .retain(|fault| known.insert((fault.point.name.clone(), fault.way == Way::Daemon, fault.moment, fault.panics)));
    if extent.short {
        faults.truncate(SHORT);
    }
}

fn strike_everywhere(ground: &Ground, extent: &Extent) -> Result<Vec<String>, String> {
    let real = disks::strike(ground)?;
    let points = points::all()?;
    let of = |area: &str| points.iter().filter(|point| point.name.starts_with(area)).collect::<Vec<&Point>>();
    let submitted = submitted::strike(&of(submitted::AREA))?;
    let distributed = distributed::strike(ground, &of(distributed::AREA))?;
    let apart = [submitted::AREA, distributed::AREA];
    let of_runs: Vec<&Point> =
        points.iter().filter(|point| !apart.iter().any(|area| point.name.starts_with(area))).collect();
    let mut faults = plan(ground, &of_runs)?;
    let possible = faults.len();
    choose(&mut faults, extent);
    let (mut recovered, mut missed, mut panics, mut problems) = (0, 0, 0, Vec::new());
    for fault in &faults {
        panics += usize::from(fault.panics);
        match strike(ground, fault) {
            Ok(Struck::Failed) => {}
            Ok(Struck::Recovered) => recovered += 1,
            Ok(Struck::Missed) => missed += 1,
            Err(problem) => problems.push(problem),
        }
        if problems.len() >= MOST_PROBLEMS {
            break;
        }
    }
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    Ok(vec![
        format!("{} places in {} scenarios and ways", points.len(), trials().count()),
        format!("{} of {} possible faults", grouped(faults.len() as u64), grouped(possible as u64)),
        format!("{submitted} on submitted outputs, {distributed} on campaigns over many machines"),
        format!("{panics} panics, {} errors", faults.len() - panics),
        format!("{recovered} recovered by a second way to the verdict"),
        format!("{missed} missed, since how often a place is passed depends on time"),
        "0 passes".to_string(),
        real,
    ])
}

/// Every fault that can be: where each scenario passes a place, the first time, a later one and the last, by an error if
/// the place can return one and by a panic.
fn plan<'a>(ground: &Ground, points: &[&'a Point]) -> Result<Vec<Fault<'a>>, String> {
    let names: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
    let names = names.join(",");
    let mut faults = Vec::new();
    for (scenario, way) in trials() {
        let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let path = file.path().display().to_string();
        let came = ground.try_out(scenario, way, &[(SEEN, &path), ("GPUEMU_FAULTS_NAMES", &names)])?;
        if came.status != Some(scenario.status) {
            return Err(format!("'{}' ({way:?}) ends with {:?}: {}", scenario.name, came.status, came.errors));
        }
        let seen = std::fs::read_to_string(file.path()).map_err(|error| error.to_string())?;
        let mut hits: BTreeMap<&str, usize> = BTreeMap::new();
        seen.lines().for_each(|name| *hits.entry(name).or_default() += 1);
        for point in points {
            let Some(&most) = hits.get(point.name.as_str()) else { continue };
            let mut moments = vec![(0, 1), (1, most.min(3)), (2, most)];
            moments.dedup_by_key(|(_, hit)| *hit);
            for (moment, hit) in moments {
                let both = if point.fallible { &[true, false][..] } else { &[true] };
                faults.extend(both.iter().map(|&panics| Fault { point, scenario, way, moment, hit, panics }));
            }
        }
    }
    let missed = points.iter().filter(|point| !faults.iter().any(|fault| fault.point.name == point.name));
    let missed: Vec<&str> = missed.map(|point| point.name.as_str()).collect();
    if missed.is_empty() { Ok(faults) } else { Err(format!("no scenario comes by {}", missed.join(", "))) }
}

/// What came of a fault.
enum Struck {
    Failed,
    /// Another way led to a verdict.
    Recovered,
    /// The place was not passed that often this time.
    Missed,
}

fn strike(ground: &Ground, fault: &Fault<'_>) -> Result<Struck, String> {
    let Fault { point, scenario, way, hit, panics, .. } = fault;
    let armed = point.armed(*hit, *panics);
    let came = ground.try_out(scenario, *way, &[("FAILPOINTS", &armed)])?;
    if !came.errors.contains(&point.struck(*panics)) && *hit > 1 {
        return Ok(Struck::Missed);
    }
    let passed = came.status == Some(0);
    let recovered = passed && scenario.recovers && is_complete(&came);
    let judged = judge(point, scenario, &came, recovered);
    let about = || format!("{armed} in '{}' ({way:?})", scenario.name);
    judged.map_err(|problem| format!("{problem}: {}\n{}\n{}", about(), came.said.join("\n"), came.errors))?;
    Ok(if recovered { Struck::Recovered } else { Struck::Failed })
}

fn judge(point: &Point, scenario: &Scenario, came: &Came, recovered: bool) -> Result<(), String> {
    if !came.answers {
        return Err("the daemon no longer answers".to_string());
    }
    if !recovered && !matches!(came.status, Some(1 | 2)) {
        return Err(format!("the exit status is {:?}", came.status));
    }
    if !recovered && !point.is_after_the_report() && came.said.iter().any(|text| says_passed(text)) {
        return Err("a report says passed".to_string());
    }
    let Some(stored) = came.stored.as_ref().filter(|_| scenario.status == 0 && !recovered) else { return Ok(()) };
    let ops = stored["ops"].as_array().cloned().unwrap_or_default();
    let is_passed = |op: &&Value| op["status"] == "passed";
    let is_whole = |op: &Value| {
        let kept = op["case_results"].as_array().map(|cases| cases.len() as u64);
        op["cases"] == op["planned"] && kept == op["cases"].as_u64()
    };
    if let Some(op) = ops.iter().filter(is_passed).find(|op| !is_whole(op)) {
        return Err(format!("{} is stored as passed without all of its cases", op["op"]));
    }
    // Ops of one project are judged apart: another one may have passed by right.
    if point.is_before_the_verdict() && !scenario.reads && ops.iter().all(|op| op["status"] == "passed") {
        return Err("everything is stored as passed".to_string());
    }
    Ok(())
}

/// Whether a run came to a verdict on every case that it planned.
fn is_complete(came: &Came) -> bool {
    let reports = came.said.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let complete = |op: &Value| op["status"] == "passed" && op["cases"] == op["planned"] && op["errors"] == 0;
    let mut ops = reports.filter_map(|report| report["ops"].as_array().cloned()).flatten().peekable();
    ops.peek().is_some() && ops.all(|op| complete(&op))
}

/// Whether a text of any format says that everything passed.
fn says_passed(text: &str) -> bool {
    if let Ok(report) = serde_json::from_str::<Value>(text) {
        let sarif = &report["runs"][0]["invocations"][0]["executionSuccessful"];
        let errors = report["runs"][0]["results"]
            .as_array()
            .is_some_and(|results| results.iter().any(|result| result["level"] == "error"));
        return report["passed"] == true || (sarif == true && !errors);
    }
    if text.contains("<testsuites") {
        return !text.contains("<failure") && !text.contains("<error");
    }
    let all_of_them = |line: &str| {
        let counts = line.split_once(" ops passed").and_then(|(counts, _)| counts.split_once(" of "));
        counts.is_some_and(|(passed, all)| passed == all)
    };
    // Compiled kernels are looked at apart from the ops that are made of them.
    let op = |line: &str| line.starts_with("PASSED") || (line.starts_with("PASS ") && line.contains(" softmax"));
    // A document whose ops passed, and which says of itself that it is no evidence of that.
    if text.lines().any(|line| line.starts_with("NOT PASSED")) {
        return false;
    }
    let plain = text.lines().any(|line| op(line) || all_of_them(line));
    plain || text.contains(">Passed<") || text.contains(": passed.**")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_seen_in_every_format() {
        for text in [
            "PASS  softmax",
            "1 of 1 ops passed; 4 cases",
            "<h1>x</h1><b>Passed</b>",
            "**gpuemu `p`: passed.** 1 of 1",
            "<testsuites><testsuite></testsuite></testsuites>",
            "{\"passed\": true}",
            "{\"runs\": [{\"invocations\": [{\"executionSuccessful\": true}], \"results\": []}]}",
        ] {
            assert!(says_passed(text), "{text}");
        }
        for text in [
            "ERROR softmax",
            "PASS  right  kernel",
            "0 of 1 ops passed",
            "PASS  softmax\nNOT PASSED: signed by key 12",
            "{\"passed\": false}",
            "<testsuites><error/></testsuites>",
            "",
        ] {
            assert!(!says_passed(text), "{text}");
        }
    }
}
