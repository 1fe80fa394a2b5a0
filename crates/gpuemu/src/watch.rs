//! Running again whenever a file of the project changes.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use notify::{Event, EventKind, RecursiveMode, Watcher};

use crate::expected_error::ExpectedError;
use crate::session::{Session, note};

/// Changes that come this close together are one.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Runs once, and again after every change, until the user interrupts. Returns the last exit status.
pub fn run(
    session: &mut Session,
    mut once: impl FnMut(&mut Session) -> Result<u8, ExpectedError>,
) -> Result<u8, ExpectedError> {
    let failed =
        |error: notify::Error| ExpectedError::plain(format!("the project's folder cannot be watched: {error}"));
    let (sender, receiver) = channel();
    let root = std::fs::canonicalize(&session.config.root)?;
    let watched = root.clone();
    let notice = move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| concerns(&event, &root)) {
            // Nobody listens any more once the command ends.
            let _ = sender.send(());
        }
    };
    let mut watcher = notify::recommended_watcher(notice).map_err(failed)?;
    watcher.watch(&watched, RecursiveMode::Recursive).map_err(failed)?;
    loop {
        let reloaded = session.reload();
        // A mistake in the configuration or in an op is shown; mending it is the next change.
        let status = match reloaded.and_then(|()| once(session)) {
            Ok(status) => status,
            Err(error) => {
                crate::report_error(&error);
                crate::exit_code::ENVIRONMENT_ERROR
            }
        };
        note("waiting for changes (interrupt to end)");
        loop {
            match receiver.recv_timeout(DEBOUNCE) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) if !Session::interrupted() => {}
                Err(_) => return Ok(status),
            }
        }
        while receiver.recv_timeout(DEBOUNCE).is_ok() {}
    }
}

/// Whether an event is a change of a source: reading files, and changes in hidden folders, are not.
fn concerns(event: &Event, root: &Path) -> bool {
    let changes = matches!(event.kind, EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_));
    let source = |path: &Path| {
        let known = path.extension().is_some_and(|extension| {
            ["py", "toml", "cu", "cuh", "ptx", "h", "cpp"].iter().any(|known| extension == *known)
        });
        known && !path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
    };
    changes && event.paths.iter().any(|path| source(path.strip_prefix(root).unwrap_or(path)))
}
