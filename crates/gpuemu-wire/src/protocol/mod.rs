//! The messages between clients and the daemon: JSON objects with a field `type`, or binary frames whose
//! header is such an object.

mod calibrate;
mod campaign;
mod frame;
mod illustrate;
mod inspect_kernels;
mod request;
mod response;

pub use calibrate::{Calibrate, CalibrationReport, DtypeCalibration};
pub use campaign::{BeginCampaign, CampaignReference, CampaignStatus, GetRun, KeepMinimized, KeepPart};
pub use frame::{Frame, FrameError, MAGIC};
pub use illustrate::{Illustrate, Illustration, SmallestCase};
pub use inspect_kernels::{InspectKernels, LintOptions, RuleText};
pub use request::{
    BaselineReference, CompareBaseline, Encoding, FuzzOp, GatherEvidence, GetResult, GetTestBatch, GetTestCase,
    JobReference, ListResults, ListRuns, Minimize, ProjectOnly, RecordResults, ReplayCase, ReplayFailures,
    ReportStored, Request, RunCi, StoreBaseline, SubmitOutput, ValidateOp,
};
pub use response::{
    BaselineSummary, DaemonStatus, Inspection, InspectionStep, JobState, JobStatus, Minimized, Neighbour, OpSummary,
    Replayed, Response, TestCase, TreeCounts,
};

gpuemu_model::write_json!(BaselineSummary, CalibrationReport, Illustration, Minimized, Replayed, Request, Response);
gpuemu_model::read_json!(Request, Response);

/// The version of the messages. Clients and daemon of different versions do not talk to each other.
pub const PROTOCOL_VERSION: u32 = 1;
