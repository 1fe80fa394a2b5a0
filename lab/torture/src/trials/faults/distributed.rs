//! Faults while the daemon keeps and joins the parts of a campaign over many machines: a campaign that has not ended is
//! no pass, and one that is gone on with ends as if nothing had happened.

use std::path::Path;

use gpuemu_model::report::{OpStatus, RunReport};
use gpuemu_model::settings::{FuzzConfig, Mode, ProjectReference};
use gpuemu_model::shard::Shard;
use gpuemu_wire::Client;
use gpuemu_wire::protocol::{
    BeginCampaign, CampaignReference, CampaignStatus, GetRun, KeepPart, ListRuns, Request, Response, RunCi,
};

use super::faulty_daemon::FaultyDaemon;
use super::points::Point;
use super::trial::Ground;
use crate::requests::stored;

/// What begins the names of places that only this comes by.
pub const AREA: &str = "campaign.";

const PARTS: u32 = 2;
const ITERATIONS: u64 = 6;

/// Times that a driver asks again for what has failed.
const ATTEMPTS: usize = 3;

/// Strikes at each of these places, first and later, by errors and panics; how often.
pub fn strike(ground: &Ground, points: &[&Point]) -> Result<usize, String> {
    let mut tried = 0;
    for point in points {
        for panics in if point.fallible { &[true, false][..] } else { &[true] } {
            let mut hit = 1;
            // The last time is the one that is no longer reached.
            while struck(ground, point, hit, *panics)
                .map_err(|problem| format!("{} at hit {hit}: {problem}", point.name))?
            {
                (hit, tried) = (hit + 1, tried + 1);
            }
            if hit == 1 {
                return Err(format!("no campaign comes by {}", point.name));
            }
        }
    }
    Ok(tried)
}

/// Whether the place was come by so often; the campaign has to be whole either way.
fn struck(ground: &Ground, point: &Point, hit: usize, panics: bool) -> Result<bool, String> {
    let folder = ground.copy_of("kernel")?;
    let daemon = FaultyDaemon::start(folder.path(), point, hit, panics)?;
    let mut driver = Driver { client: daemon.connect()?, project: reference(&folder.path().join("kernel")) };
    let joined = driver.campaign()?;
    driver.check(&joined)?;
    daemon.was_struck()
}

fn reference(root: &Path) -> ProjectReference {
    let config = Some(root.join("gpuemu.toml"));
    ProjectReference { root: root.to_path_buf(), config, digest: None, python: None }
}

/// Who begins a campaign, has its parts run, and ends it.
struct Driver {
    client: Client,
    project: ProjectReference,
}

impl Driver {
    /// Begins a campaign, keeps each part as soon as it is there, and ends it.
    fn campaign(&mut self) -> Result<RunReport, String> {
        let project = self.project.clone();
        let config = FuzzConfig { iterations: Some(ITERATIONS), seed: Some(7), ..FuzzConfig::default() };
        let begin = BeginCampaign { project, ops: Vec::new(), config, parts: PARTS, client_side: false };
        let Response::Campaign { campaign } = self.ask(&Request::BeginCampaign(begin))? else {
            return Err("unexpected response to BeginCampaign".to_string());
        };
        for index in 1..=PARTS {
            self.part(&campaign, index)?;
            self.nothing_is_passed(campaign.run)?;
        }
        let project = self.project.clone();
        match self.ask(&Request::EndCampaign(CampaignReference { project, run: Some(campaign.run) }))? {
            Response::Report { report } => Ok(*report),
            _ => Err("unexpected response to EndCampaign".to_string()),
        }
    }

    /// Runs a part, as a worker does, and has it kept.
    fn part(&mut self, campaign: &CampaignStatus, index: u32) -> Result<(), String> {
        let project = self.project.clone();
        let run = RunCi {
            project: project.clone(),
            ops: campaign.ops.clone(),
            mode: Mode::Fuzz,
            config: campaign.config.clone(),
            parallel: Some(1),
            fail_fast: false,
            shard: Some(Shard::new(index, PARTS).map_err(|error| error.to_string())?),
            baseline: None,
            fail_on_regression: false,
            kernels: Some(false),
            tools: None,
        };
        let Response::Report { report } = self.ask(&Request::RunCi(run))? else {
            return Err("unexpected response to RunCi".to_string());
        };
        let mut results = Vec::new();
        for op in report.ops.iter().filter(|op| op.part.is_some()) {
            let request = GetRun { project: project.clone(), op_name: op.op.clone(), run: report.run };
            match self.ask(&Request::GetRun(request))? {
                Response::Results { results: more } => results.extend(more),
                _ => return Err("unexpected response to GetRun".to_string()),
            }
        }
        let keep = KeepPart { project, run: campaign.run, report, results };
        match self.ask(&Request::KeepPart(keep))? {
            Response::Ok => Ok(()),
            _ => Err("unexpected response to KeepPart".to_string()),
        }
    }

    /// Asks, and again where that failed, as a driver that goes on with a campaign does.
    fn ask(&mut self, request: &Request) -> Result<Response, String> {
        let mut problem = String::new();
        for _ in 0..ATTEMPTS {
            match self.client.call(request) {
                Ok(Response::Report { report }) if report.ops.iter().any(|op| op.status == OpStatus::Error) => {
                    problem = format!("an op could not be judged: {:?}", report.ops[0].message);
                }
                Ok(response) => return Ok(response),
                Err(error) => problem = error.to_string(),
            }
        }
        Err(format!("{ATTEMPTS} attempts failed, the last one: {problem}"))
    }

    /// A campaign that has not ended is not stored as passed.
    fn nothing_is_passed(&mut self, run: u64) -> Result<(), String> {
        let passed = self.runs()?.into_iter().any(|(of, status)| of == run && status == OpStatus::Passed);
        if passed { Err("a campaign that has not ended is stored as passed".to_string()) } else { Ok(()) }
    }

    fn runs(&mut self) -> Result<Vec<(u64, OpStatus)>, String> {
        let request = ListRuns { project: self.project.clone(), op_name: None, limit: Some(u64::MAX) };
        match self.ask(&Request::ListRuns(request))? {
            Response::Runs { runs } => Ok(runs.into_iter().map(|run| (run.run, run.op.status)).collect()),
            _ => Err("unexpected response to ListRuns".to_string()),
        }
    }

    /// What was joined is the whole run, and so is what is stored of it.
    fn check(&mut self, joined: &RunReport) -> Result<(), String> {
        let whole = |count: u64| count == ITERATIONS;
        if !joined.passed || !joined.ops.iter().all(|op| whole(op.cases) && whole(op.planned)) {
            return Err(format!("the campaign is not whole: {:?}", joined.ops));
        }
        if !self.runs()?.contains(&(joined.run, OpStatus::Passed)) {
            return Err("what was joined is not stored".to_string());
        }
        let results = stored(&mut self.client, &self.project)?;
        let kept = results.iter().filter(|result| result.run == Some(joined.run)).count() as u64;
        if whole(kept) { Ok(()) } else { Err(format!("{kept} of {ITERATIONS} results are stored")) }
    }
}
