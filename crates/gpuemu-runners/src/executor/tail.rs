//! The end of what a process writes to its stderr, drained by a thread so that it never waits for a reader.

use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are kept.
const KEPT: usize = 16 << 10;

/// The end of a stream.
#[derive(Debug, Clone)]
pub(super) struct Tail(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    cut: bool,
    closed: bool,
}

impl Tail {
    /// Starts to drain a stream. The thread ends when the last process that has it open closes it.
    pub(super) fn of(mut stream: impl Read + Send + 'static) -> io::Result<Self> {
        let tail = Self(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }));
        let shared = tail.clone();
        std::thread::Builder::new().name("gpuemu-stderr".to_string()).spawn(move || {
            let mut chunk = vec![0; 4096];
            loop {
                match stream.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(count) => shared.push(&chunk[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            shared.lock().closed = true;
            shared.0.changed.notify_all();
        })?;
        Ok(tail)
    }

    /// Forgets what was written so far.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.bytes.clear();
        state.cut = false;
    }

    /// What was written before the stream was closed, for which it waits no longer than it has patience.
    pub(super) fn at_end(&self, patience: Duration) -> String {
        self.after(patience, |state| state.closed).text()
    }

    /// What was written before a mark, for which it waits no longer than it has patience.
    pub(super) fn before(&self, mark: &str, patience: Duration) -> String {
        let mut state = self.after(patience, |state| state.closed || find(&state.bytes, mark).is_some());
        if let Some(at) = find(&state.bytes, mark) {
            state.bytes.truncate(at);
        }
        state.text()
    }

    fn after(&self, patience: Duration, ready: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.0.changed.wait_timeout_while(self.lock(), patience, |state| !ready(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn push(&self, chunk: &[u8]) {
        let mut state = self.lock();
        state.bytes.extend_from_slice(chunk);
        // Not at every write: what is in front has to be moved away.
        if state.bytes.len() > 4 * KEPT {
            let surplus = state.bytes.len() - 2 * KEPT;
            state.bytes.drain(..surplus);
            state.cut = true;
        }
        drop(state);
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn text(&self) -> String {
        let start = self.bytes.len().saturating_sub(KEPT);
        let text = String::from_utf8_lossy(&self.bytes[start..]);
        if self.cut || start > 0 { format!("... {text}") } else { text.into_owned() }
    }
}

fn find(bytes: &[u8], mark: &str) -> Option<usize> {
    bytes.windows(mark.len().max(1)).rposition(|window| window == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn the_end_is_kept_and_what_is_missing_is_shown() {
        let text: String = (0..100_000).map(|number| format!("{number}\n")).collect();
        let kept = Tail::of(io::Cursor::new(text.clone())).unwrap().at_end(PATIENCE);
        assert_eq!(kept.len(), KEPT + 4);
        assert!(kept.starts_with("... ") && text.ends_with(&kept[4..]));
        assert_eq!(Tail::of(io::Cursor::new("short")).unwrap().at_end(PATIENCE), "short");
    }

    #[test]
    fn a_mark_ends_the_text_and_is_not_shown() {
        let tail = Tail::of(io::Cursor::new("one<mark>two")).unwrap();
        assert_eq!(tail.before("<mark>", PATIENCE), "one");
        tail.clear();
        assert_eq!(tail.before("<mark>", PATIENCE), "");
    }
}
