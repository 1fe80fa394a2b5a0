//! `gpuemu daemon`: start, stop and look at the daemon.

use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use clap::Subcommand;
use gpuemu_config::Environment;
use gpuemu_service::home::{is_free, log_file};
use gpuemu_wire::protocol::{Request, Response};
use gpuemu_wire::start;
use serde_json::json;

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::session::{GlobalOptions, connect, connect_or_start, note};

/// How long the daemon may take to end.
const STOP_TIME: Duration = Duration::from_secs(10);

/// Arguments of `gpuemu daemon`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// What is done with the daemon.
#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Start it, here or in the background.
    Start {
        /// In the background; returns when it answers.
        #[arg(long)]
        background: bool,
    },
    /// Run it here, until it ends.
    Run {
        /// Log only to the file, not to stderr.
        #[arg(long)]
        detached: bool,
    },
    /// End it; jobs that run are cancelled, nothing stored is lost.
    Stop,
    /// Say whether it runs. Exit status 2 if it does not.
    Status {
        /// Format of the result.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Print its log.
    Logs {
        /// The last so many lines.
        #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
        lines: usize,
        /// Go on printing what is added.
        #[arg(long, short)]
        follow: bool,
    },
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let environment = Environment::of_process();
    match arguments.action {
        Action::Start { background: true } => {
            let already = connect(&environment)?.is_some();
            connect_or_start(&environment, options.quiet)?;
            if already {
                write_text("the daemon runs already\n")?;
            }
            Ok(exit_code::PASSED)
        }
        Action::Start { background: false } => foreground(environment, true),
        Action::Run { detached } => foreground(environment, !detached),
        Action::Stop => stop(&environment),
        Action::Status { format } => status(&environment, format),
        Action::Logs { lines, follow } => logs(&environment, lines, follow),
    }
}

fn foreground(environment: Environment, log_to_stderr: bool) -> Result<u8, ExpectedError> {
    match gpuemu_daemon::lifecycle::run(environment, log_to_stderr) {
        Ok(()) => Ok(exit_code::PASSED),
        // Whoever started it in the background tries again for a while.
        Err(error) if !log_to_stderr && error.is_in_use() => {
            note(&format!("error: {error}"));
            Ok(start::IN_USE)
        }
        Err(error) => Err(ExpectedError::plain(error.to_string())),
    }
}

fn stop(environment: &Environment) -> Result<u8, ExpectedError> {
    let Some(mut client) = connect(environment)? else {
        write_text("the daemon does not run\n")?;
        return Ok(exit_code::PASSED);
    };
    client.call(&Request::Shutdown)?;
    let deadline = Instant::now() + STOP_TIME;
    let home = environment.home().unwrap_or_default();
    // Whoever comes next needs the folder, not only the silence.
    while !is_free(&home) {
        if Instant::now() >= deadline {
            let message = format!("the daemon still runs {} s after it was asked to end", STOP_TIME.as_secs());
            return Err(ExpectedError::new(message, "see `gpuemu daemon logs`"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    write_text("the daemon has ended\n")?;
    Ok(exit_code::PASSED)
}

fn status(environment: &Environment, format: Format) -> Result<u8, ExpectedError> {
    let socket = environment.socket().unwrap_or_default();
    let Some(mut client) = connect(environment)? else {
        match format {
            Format::Json => write_json(&json!({ "running": false, "socket": socket }))?,
            Format::Text => write_text("the daemon does not run\n")?,
        }
        return Ok(exit_code::ENVIRONMENT_ERROR);
    };
    let Response::Status { status } = client.call(&Request::Status)? else {
        return Err(ExpectedError::plain("the daemon's answer cannot be read"));
    };
    match format {
        Format::Json => write_json(&json!({ "running": true, "socket": socket, "status": status }))?,
        Format::Text => {
            let stored = &status.stored;
            let mut text = format!(
                "gpuemu {} runs as process {} since {} s on {}\n{} jobs running; stored: {} results, {} failures, {} baselines\n",
                status.version,
                status.pid,
                status.uptime_seconds,
                socket.display(),
                status.running_jobs,
                stored.results,
                stored.failures,
                stored.baselines
            );
            for (script, why) in &status.distrusted_scripts {
                text.push_str(&format!("{} is no longer kept warm: {why}\n", script.display()));
            }
            write_text(&text)?;
        }
    }
    Ok(exit_code::PASSED)
}

fn logs(environment: &Environment, lines: usize, follow: bool) -> Result<u8, ExpectedError> {
    let home = environment.home().unwrap_or_default();
    let path = log_file(&home);
    let missing = |error: std::io::Error| {
        ExpectedError::new(format!("there is no log {}: {error}", path.display()), "the daemon writes one when it runs")
    };
    let mut file = std::fs::File::open(&path).map_err(missing)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let start = text.lines().count().saturating_sub(lines);
    write_text(&text.lines().skip(start).map(|line| format!("{line}\n")).collect::<String>())?;
    let mut place = file.stream_position()?;
    if !follow {
        return Ok(exit_code::PASSED);
    }
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let length = std::fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or(place);
        if length < place {
            // The log was put aside: a new one begins.
            file = std::fs::File::open(&path).map_err(missing)?;
            place = 0;
        }
        file.seek(SeekFrom::Start(place))?;
        let mut added = String::new();
        file.read_to_string(&mut added)?;
        place += added.len() as u64;
        write_text(&added)?;
    }
}
