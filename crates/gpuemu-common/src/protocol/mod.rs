//! The messages between clients and the daemon: JSON objects with a field `type`, or binary frames whose
//! header is such an object.

mod calibrate;
mod campaign;
mod error_code;
mod frame;
mod illustrate;
mod inspect_kernels;
mod request;
mod response;
mod tensor_data;

pub use calibrate::{Calibrate, CalibrationReport, DtypeCalibration};
pub use campaign::{BeginCampaign, CampaignReference, CampaignStatus, GetRun, KeepMinimized, KeepPart};
pub use error_code::ErrorCode;
pub use frame::{Frame, FrameError, MAGIC};
pub use illustrate::{Illustrate, Illustration, SmallestCase};
pub use inspect_kernels::{InspectKernels, LaunchOptions, LintOptions, RuleText};
pub use request::{
    BaselineReference, CompareBaseline, Encoding, FuzzConfig, FuzzOp, GatherEvidence, GetResult, GetTestBatch,
    GetTestCase, JobReference, ListResults, ListRuns, Minimize, Mode, ProjectOnly, ProjectReference, RecordResults,
    ReplayCase, ReplayFailures, ReportStored, Request, RunCi, StoreBaseline, SubmitOutput, ValidateOp,
};
pub use response::{
    BaselineSummary, DaemonStatus, Inspection, InspectionStep, JobState, JobStatus, Minimized, Neighbour, OpSummary,
    Replayed, Response, TestCase, TreeCounts,
};
pub use tensor_data::{LARGEST_EXPANSION, NamedTensorData, Payload, SharedMemory, Span, TensorData, TensorDataError};

/// The version of the messages. Clients and daemon of different versions do not talk to each other.
pub const PROTOCOL_VERSION: u32 = 1;
