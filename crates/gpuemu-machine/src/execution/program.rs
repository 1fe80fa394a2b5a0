//! A kernel, decoded once, that can be launched many times.

use std::sync::{Arc, Mutex, PoisonError};

use gpuemu_ptx::source::{PtxError, Source};
use gpuemu_tensor::FloatEnvironment;

use super::grid;
use super::launch::{Launch, LaunchError, LaunchOptions, Outcome};
use crate::approximations::Approximation;
use crate::decode::{DecodeOptions, DecodedEntry, decode};
use crate::registers::Level;
use crate::tensor_core::TensorCore;

pub use crate::decode::Parameter;

/// A kernel that can be launched.
#[derive(Debug, Clone)]
pub struct Program {
    source: Source,
    entry: String,
    default: Arc<DecodedEntry>,
    options: DecodeOptions,
    /// The kernel for other chips' tensor cores, and other ways to round: other instructions, decoded when first asked for.
    others: Arc<Mutex<Others>>,
}

type Others = Vec<(DecodeOptions, Arc<DecodedEntry>)>;

impl Program {
    /// Decodes an entry; the only one of the file if no name is given. Instruction forms that the machine does not know
    /// are refused by name and line.
    pub fn decode(source: &Source, entry: Option<&str>) -> Result<Self, PtxError> {
        let options = decode_options(TensorCore::default(), Approximation::default());
        let decoded = decode(source, entry, options)?;
        let entry = decoded.name.clone();
        Ok(Self { source: source.clone(), entry, default: Arc::new(decoded), options, others: Arc::default() })
    }

    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.default.parameters
    }

    pub fn decoded(&self) -> &DecodedEntry {
        &self.default
    }

    pub fn launch(&self, launch: &Launch, options: &LaunchOptions) -> Result<Outcome, LaunchError> {
        // The chip knows nothing of the thread that launches.
        let _standard = FloatEnvironment::enter_standard();
        let wanted = decode_options(options.tensor_core, options.approximation);
        if wanted == self.options {
            return grid::run(&self.default, launch, options);
        }
        let decoded = self.other(wanted).map_err(|error| LaunchError::Refused(error.to_string()))?;
        grid::run(&decoded, launch, options)
    }

    fn other(&self, wanted: DecodeOptions) -> Result<Arc<DecodedEntry>, PtxError> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, decoded)) = others.iter().find(|(options, _)| *options == wanted) {
            return Ok(Arc::clone(decoded));
        }
        let decoded = Arc::new(decode(&self.source, Some(&self.entry), wanted)?);
        others.push((wanted, Arc::clone(&decoded)));
        Ok(decoded)
    }
}

fn decode_options(tensor_core: TensorCore, approximation: Approximation) -> DecodeOptions {
    DecodeOptions { tensor_core, approximation, level: Level::detect() }
}
