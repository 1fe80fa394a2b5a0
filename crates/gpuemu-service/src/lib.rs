//! What requests do: a request of the protocol goes in, and the answer to it comes out.
//!
//! The daemon puts a [`Service`] behind its socket; the command line and Python hold one in their own process. It reads
//! the project, has the crate of runs try its ops, and keeps what comes of it in the store. Long requests are `jobs`;
//! `home` is the folder of one user. Each kind of request has a file of its own: open `run.rs` for runs, `replay.rs` for
//! single cases.

mod artifacts;
mod baselines;
mod calibrate;
mod campaign;
mod cases;
mod evidence;
pub mod home;
mod illustrate;
pub mod jobs;
mod keeper;
mod recording;
mod records;
mod replay;
mod run;
mod stored_report;
mod streamed;
mod validate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpuemu_config::failure::Failure;
use gpuemu_config::{ConfigError, Daemon, Environment, Storage, load_daemon};
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::tensor_data::{NamedTensorData, Payload, TensorData};
use gpuemu_process::fault;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::project::Project;
use gpuemu_runners::executor::Pool;
use gpuemu_store::{Store, StoreError};
use gpuemu_tensor::Tensor;
use gpuemu_wire::protocol::{
    DaemonStatus, Encoding, OpSummary, PROTOCOL_VERSION, ProjectOnly, Request, Response, TreeCounts,
};
use gpuemu_wire::shared_memory;
use thiserror::Error;

use crate::home::{Home, HomeError};
use crate::jobs::{Job, Jobs};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why there is no service.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The folder cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings are wrong.
    #[error("{0}")]
    Config(Box<ConfigError>),
}

impl From<ConfigError> for ServiceError {
    fn from(error: ConfigError) -> Self {
        ServiceError::Config(Box::new(error))
    }
}

/// Everything that answers requests. It holds gpuemu's folder for as long as it lives.
pub struct Service {
    store: Store,
    pool: Pool,
    jobs: Jobs,
    environment: Environment,
    storage: Storage,
    pub settings: Daemon,
    started: Instant,
    recordings: recording::Locks,
    home: Home,
}

/// An answer, and the tensors behind it.
#[derive(Debug)]
pub struct Answer {
    pub response: Response,
    /// Bytes that tensors of the answer point into.
    pub payload: Payload,
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self { response, payload: Payload::default() }
    }
}

impl Service {
    /// Takes gpuemu's folder and opens the store in it. `holder` says who has it.
    pub fn open(home: &Path, holder: &str, environment: Environment) -> Result<Arc<Self>, ServiceError> {
        let (settings, storage) = load_daemon(&environment)?;
        let home = Home::open(home, holder)?;
        let store = Store::open(&home.store())?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = if settings.workers == 0 { 2 * cores } else { settings.workers };
        let service = Self {
            store,
            pool: Pool::new(workers),
            jobs: Jobs::default(),
            environment,
            storage,
            settings,
            started: Instant::now(),
            recordings: recording::Locks::default(),
            home,
        };
        Ok(Arc::new(service))
    }

    /// Removes what the retention settings no longer keep.
    pub fn clean(&self) -> Result<usize, StoreError> {
        let Some(days) = self.storage.keep_days else { return Ok(0) };
        let oldest = gpuemu_run::result::now().saturating_sub(u64::from(days) * 24 * 3_600_000);
        self.store.retain(None, oldest)
    }

    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Answers a request. A fault of gpuemu is an answer too.
    pub fn answer(self: &Arc<Self>, request: Request, payload: &[u8]) -> Answer {
        let answered = catch_unwind(AssertUnwindSafe(|| self.dispatch(request, payload, &Job::unwatched())));
        settle(answered)
    }

    fn dispatch(self: &Arc<Self>, request: Request, payload: &[u8], job: &Job) -> Result<Answer, Failure> {
        let response = match request {
            Request::Ping { protocol_version } => self.ping(protocol_version)?,
            Request::Shutdown => Response::Ok,
            Request::Status => Response::Status { status: self.status()? },
            Request::ListOps(ProjectOnly { project }) => self.list_ops(&self.project(&project)?)?,
            Request::ValidateOp(request) => self.validate(&request, payload)?,
            Request::FuzzOp(request) => self.fuzz(request, job)?,
            Request::RunCi(request) => self.run(&request, job)?,
            Request::InspectKernels(request) => self.inspect_kernels(&request, job)?,
            Request::Calibrate(request) => self.calibrate(&request, job)?,
            Request::Reproduce(request) => self.reproduce(&request)?,
            Request::Inspect(request) => self.inspect(&request)?,
            Request::Illustrate(request) => self.illustrate(&request, job)?,
            Request::Minimize(request) => self.minimize(&request, job)?,
            Request::ReplayFailures(request) => self.replay_failures(&request, job)?,
            Request::GetResult(request) => self.get_result(&request)?,
            Request::ListResults(request) => self.list_results(&request)?,
            Request::ListFailures(request) => self.list_failures(&request)?,
            Request::ListRuns(request) => self.list_runs(&request)?,
            Request::ReportStored(request) => self.report_stored(&request)?,
            Request::GatherEvidence(request) => self.gather_evidence(&request, job)?,
            Request::StoreBaseline(request) => self.store_baseline(&request, job)?,
            Request::ListBaselines(ProjectOnly { project }) => self.list_baselines(&project)?,
            Request::DeleteBaseline(request) => self.delete_baseline(&request)?,
            Request::CompareBaseline(request) => self.compare_baseline(&request, job)?,
            Request::GetTestCase(request) => return self.test_case(&request),
            Request::GetTestBatch(request) => return self.test_batch(&request),
            Request::SubmitOutput(request) => self.submit_output(&request, payload)?,
            Request::RecordResults(request) => self.record_results(request, payload)?,
            Request::GetRun(request) => self.get_run(&request)?,
            Request::BeginCampaign(request) => self.begin_campaign(&request)?,
            Request::GetCampaign(request) => self.get_campaign(&request)?,
            Request::KeepPart(request) => self.keep_part(request, payload)?,
            Request::KeepMinimized(request) => self.keep_minimized(&request, payload)?,
            Request::EndCampaign(request) => self.end_campaign(&request)?,
            Request::SubmitJob { job } => self.submit(*job)?,
            Request::JobStatus(request) => {
                let job = self.job(request.job)?;
                Response::Job { job: job.status(Duration::from_millis(request.wait_ms)) }
            }
            Request::CancelJob(request) => {
                let job = self.job(request.job)?;
                job.cancel();
                Response::Job { job: job.status(Duration::ZERO) }
            }
            Request::ListJobs => Response::Jobs { jobs: self.jobs.list() },
        };
        Ok(response.into())
    }

    fn ping(&self, theirs: Option<u32>) -> Result<Response, Failure> {
        if let Some(theirs) = theirs.filter(|theirs| *theirs != PROTOCOL_VERSION) {
            let message = format!(
                "the client speaks version {theirs} of the protocol, gpuemu {VERSION} speaks {PROTOCOL_VERSION}"
            );
            let hint = "use the same version of gpuemu on both sides; `gpuemu daemon stop` ends the old daemon";
            return Err(Failure::new(ErrorCode::VersionMismatch, message).hint(hint));
        }
        Ok(Response::Pong {
            version: VERSION.to_string(),
            protocol_version: PROTOCOL_VERSION,
            uptime_seconds: self.started.elapsed().as_secs(),
        })
    }

    fn status(&self) -> Result<DaemonStatus, Failure> {
        let counts = self.store.counts()?;
        Ok(DaemonStatus {
            version: VERSION.to_string(),
            pid: std::process::id(),
            uptime_seconds: self.started.elapsed().as_secs(),
            home: self.home.path().to_path_buf(),
            running_jobs: self.jobs.running(),
            stored: TreeCounts {
                results: counts.results,
                failures: counts.failures,
                baselines: counts.baselines,
                artifacts: counts.artifacts,
                artifact_baselines: counts.artifact_baselines,
            },
            distrusted_scripts: self.pool.distrusted(),
        })
    }

    fn project(&self, reference: &gpuemu_model::settings::ProjectReference) -> Result<Project, Failure> {
        Project::open(reference, &self.environment)
    }

    fn list_ops(&self, project: &Project) -> Result<Response, Failure> {
        let mut ops = Vec::new();
        for op in &project.config.ops {
            let ready = ConfiguredOp::open(project, &op.name, &Default::default(), &self.pool)?;
            let inside = |file: std::path::PathBuf| {
                file.strip_prefix(&project.config.root).map(Path::to_path_buf).unwrap_or(file)
            };
            ops.push(OpSummary {
                name: op.name.clone(),
                line: op.line,
                source: ready.source.clone(),
                reference: ready.reference.clone(),
                signature: ready.subject.schema().signature.clone(),
                dtypes: op.dtypes.clone(),
                files: ready.files().into_iter().map(inside).collect(),
            });
        }
        Ok(Response::Ops { ops })
    }

    fn submit(self: &Arc<Self>, request: Request) -> Result<Response, Failure> {
        let Some(kind) = request.job_kind() else {
            return Err(Failure::invalid(format!("only these can be jobs: {}", Request::JOBS.join(", "))));
        };
        let job = self.jobs.start(kind);
        let (service, working) = (self.clone(), job.clone());
        let work = move || {
            // Whatever becomes of this thread, whoever waits for the job hears of it.
            let ending = JobEnding(working);
            fault!("job.thread");
            let answered = catch_unwind(AssertUnwindSafe(|| service.dispatch(request, &[], &ending.0)));
            let response = settle(answered).response;
            fault!("job.finish");
            ending.0.finish(response);
        };
        let thread = std::thread::Builder::new().name(format!("gpuemu-job-{}", job.number()));
        let spawned = fault!("job.start", std::io::Error::other("injected"), thread.spawn(work).map(drop));
        if let Err(error) = spawned {
            job.finish(Response::error(ErrorCode::InternalError, format!("no thread for a job: {error}")));
        }
        Ok(Response::Job { job: job.status(Duration::ZERO) })
    }

    fn job(&self, number: u64) -> Result<Arc<Job>, Failure> {
        self.jobs.get(number).ok_or_else(|| Failure::new(ErrorCode::NotFound, format!("there is no job {number}")))
    }
}

/// The end of a job's thread: a job that has no answer by then ends with an error.
struct JobEnding(Arc<Job>);

impl Drop for JobEnding {
    fn drop(&mut self) {
        self.0.give_up(Response::error(ErrorCode::InternalError, "internal error: the job's thread panicked"));
    }
}

/// An answer from what a request gave, a panic included.
fn settle(answered: std::thread::Result<Result<Answer, Failure>>) -> Answer {
    match answered {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => Response::from(failure).into(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
            tracing::error!("a request panicked: {text}");
            Response::error(ErrorCode::InternalError, format!("internal error: {text}")).into()
        }
    }
}

/// Tensors of a message.
fn read_tensors(named: &NamedTensorData, payload: &[u8]) -> Result<Vec<(String, Tensor)>, Failure> {
    let tensors = named.0.iter().map(|(name, data)| Ok((name.clone(), read_tensor(name, data, payload)?)));
    tensors.collect()
}

fn read_tensor(name: &str, data: &TensorData, payload: &[u8]) -> Result<Tensor, Failure> {
    data.tensor(payload, shared_memory::read).map_err(|error| Failure::invalid(format!("tensor '{name}': {error}")))
}

/// Tensors for an answer.
fn write_tensors(tensors: &[(String, Tensor)], encoding: Encoding, payload: &mut Payload) -> NamedTensorData {
    let write = |tensor: &Tensor, payload: &mut Payload| match encoding {
        Encoding::Base64 => TensorData::base64(tensor),
        Encoding::Binary => payload.push(tensor),
    };
    let mut named = NamedTensorData::default();
    for (name, tensor) in tensors {
        named.0.push((name.clone(), write(tensor, payload)));
    }
    named
}
