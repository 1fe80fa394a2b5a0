//! The report on a project before anything was run.

use gpuemu_model::FuzzConfig;
use gpuemu_model::report::{REPORT_VERSION, RunReport};

use crate::Config;

impl Config {
    /// A report in which nothing is said yet.
    pub fn blank_report(&self, gpuemu: &str, mode: &str) -> RunReport {
        RunReport {
            version: REPORT_VERSION,
            gpuemu: gpuemu.to_string(),
            project: self.project.name.clone(),
            config: self.file.display().to_string(),
            run: 0,
            time: 0,
            seconds: 0.0,
            mode: mode.to_string(),
            seed: 0,
            settings: FuzzConfig::default(),
            part: None,
            config_digest: self.digest.clone(),
            passed: false,
            ops: Vec::new(),
            left_out: 0,
            kernels: Vec::new(),
            comparison: None,
            warnings: Vec::new(),
            evidence: None,
        }
    }
}
