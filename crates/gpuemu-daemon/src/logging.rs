//! The daemon's log: a file that is put aside when it is large.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gpuemu_config::LogLevel;
use gpuemu_store::private_file::open_private;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

use gpuemu_service::home::log_file;

/// Bytes after which a log is put aside.
const MOST_BYTES: u64 = 4 << 20;

/// Logs that are kept beside the newest.
const KEPT: usize = 4;

/// Starts logging to the file, and to stderr as well if the daemon is in the foreground.
pub fn start(home: &Path, level: LogLevel, foreground: bool) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_target(false);
    // Whoever has set a logger before, as a test has, keeps it.
    let _ = match RotatingFile::open(log_file(home), MOST_BYTES) {
        Ok(file) if foreground => builder.with_writer(Mutex::new(file).and(io::stderr)).try_init(),
        Ok(file) => builder.with_writer(Mutex::new(file)).try_init(),
        Err(_) => builder.with_writer(io::stderr).try_init(),
    };
}

/// A file that is renamed to `.1` when it is full, what was `.1` to `.2`, and so on.
struct RotatingFile {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
}

impl RotatingFile {
    fn open(path: PathBuf, limit: u64) -> io::Result<Self> {
        let file = open_private(OpenOptions::new().append(true).create(true), &path)?;
        let size = file.metadata()?.len();
        Ok(Self { path, file, size, limit })
    }

    fn rotate(&mut self) -> io::Result<()> {
        let aside = |number: usize| self.path.with_extension(format!("log.{number}"));
        for number in (1..KEPT).rev() {
            // The older ones may not be there yet.
            let _ = std::fs::rename(aside(number), aside(number + 1));
        }
        std::fs::rename(&self.path, aside(1))?;
        *self = Self::open(self.path.clone(), self.limit)?;
        Ok(())
    }
}

impl Write for RotatingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.size > 0 && self.size + bytes.len() as u64 > self.limit {
            self.rotate()?;
        }
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_put_aside_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let mut file = RotatingFile::open(path.clone(), 10).unwrap();
        for line in 0..8 {
            writeln!(file, "line {line:03}").unwrap();
        }
        drop(file);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("daemon.log"), "line 007\n");
        assert_eq!(read("daemon.log.1"), "line 006\n");
        assert_eq!(read("daemon.log.4"), "line 003\n");
        assert!(!folder.path().join("daemon.log.5").exists());
        let mut again = RotatingFile::open(path, 10).unwrap();
        writeln!(again, "x").unwrap();
        assert_eq!(read("daemon.log"), "x\n");
    }
}
