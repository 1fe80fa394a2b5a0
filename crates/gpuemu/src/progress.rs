//! Progress of long work: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use gpuemu_wire::protocol::JobStatus;
use indicatif::{ProgressBar, ProgressStyle};

use crate::session::note;

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The progress of one job.
pub struct Progress {
    bar: ProgressBar,
    lines: bool,
    last: Instant,
}

impl Progress {
    /// Starts showing progress on stderr.
    pub fn start(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let template = "{msg:20!} {wide_bar} {human_pos}/{human_len} {prefix} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, lines: !terminal && !quiet, last: Instant::now() }
    }

    /// Shows how far a job is.
    pub fn show(&mut self, status: &JobStatus) {
        let message = match status.failures {
            0 => status.message.clone(),
            failures => format!("{} ({failures} failed)", status.message),
        };
        let unit = if status.kind == "InspectKernels" { "kernels" } else { "cases" };
        self.bar.set_prefix(unit);
        self.bar.set_length(status.total.max(status.done));
        self.bar.set_position(status.done);
        if self.lines && self.last.elapsed() >= LINE_EVERY {
            self.last = Instant::now();
            note(&format!("{message}: {} of {} {unit}", status.done, status.total.max(status.done)));
        }
        self.bar.set_message(message);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
