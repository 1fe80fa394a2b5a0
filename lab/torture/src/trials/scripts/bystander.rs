//! Somebody with another project, who must not notice.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuemu_wire::protocol::{Request, Response};

use crate::daemon_process::DaemonProcess;
use crate::requests::right_answer;

#[derive(Debug, Default)]
pub struct Waits {
    pub ping: Duration,
    /// For a small validation.
    pub validation: Duration,
}

impl fmt::Display for Waits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ping, validation) = (self.ping.as_secs_f64() * 1e3, self.validation.as_secs_f64() * 1e3);
        write!(formatter, "slowest Ping {ping:.0} ms and slowest validation of another project {validation:.0} ms")
    }
}

/// Pings and validates until it is over.
pub fn watch(daemon: &DaemonProcess, over: &AtomicBool) -> Result<Waits, String> {
    let project = daemon.project("bystander", &[])?;
    let mut client = daemon.client()?;
    let validation = right_answer(&project)?;
    let mut waits = Waits::default();
    while !over.load(Ordering::Relaxed) {
        let start = Instant::now();
        client.call(&Request::Ping { protocol_version: None }).map_err(|error| error.to_string())?;
        waits.ping = waits.ping.max(start.elapsed());
        let start = Instant::now();
        match client.call(&validation).map_err(|error| error.to_string())? {
            Response::ValidationResult { result } if result.passed => {}
            _ => return Err("a right output does not pass meanwhile".to_string()),
        }
        waits.validation = waits.validation.max(start.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(waits)
}
