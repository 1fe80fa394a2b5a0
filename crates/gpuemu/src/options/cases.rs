//! Options that several commands share: which cases are drawn, and which ops are run.

use gpuemu_model::Strategy;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_tensor::DType;

use crate::expected_error::ExpectedError;

/// Which cases are drawn.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct CaseOptions {
    /// Only these dtypes, separated by commas, in place of the configured ones.
    #[arg(long, value_delimiter = ',', value_name = "DTYPE")]
    pub dtypes: Vec<DType>,
    /// How values are chosen: adversarial, regular, special, large, tiny, ...
    #[arg(long, value_name = "STRATEGY")]
    pub values: Option<Strategy>,
    /// Memory layouts of inputs, separated by commas: contiguous, strided, transposed, ...
    #[arg(long, value_delimiter = ',', value_name = "LAYOUT")]
    pub layouts: Vec<String>,
    /// Smallest sizes of the op's dims, in the order of its signature.
    #[arg(long, value_delimiter = ',', value_name = "SIZE", alias = "min_shape")]
    pub min_shape: Vec<usize>,
    /// Largest sizes of the op's dims, in the order of its signature.
    #[arg(long, value_delimiter = ',', value_name = "SIZE", alias = "max_shape")]
    pub max_shape: Vec<usize>,
}

impl CaseOptions {
    /// The settings of a request.
    pub fn config(&self) -> Result<FuzzConfig, ExpectedError> {
        let config = FuzzConfig {
            dtypes: (!self.dtypes.is_empty()).then(|| self.dtypes.clone()),
            values: self.values,
            layouts: (!self.layouts.is_empty()).then(|| self.layouts.clone()),
            min_shape: self.min_shape.clone(),
            max_shape: self.max_shape.clone(),
            ..FuzzConfig::default()
        };
        config.layouts().map_err(ExpectedError::plain)?;
        Ok(config)
    }
}

/// A case seed, given as an argument or as an option.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub struct SeedArgument {
    /// The seed of the case.
    #[arg(value_name = "SEED")]
    seed: Option<u64>,
    /// The seed of the case, as an option.
    #[arg(long = "seed", value_name = "SEED", id = "seed_option")]
    option: Option<u64>,
}

impl SeedArgument {
    pub fn value(&self) -> u64 {
        self.seed.or(self.option).unwrap_or_default()
    }
}
