//! The requests of one connection, so that one that is sent again is not run again.
//!
//! A client that waited long, NNG's after a minute, sends the same request under the same id. It may do so while the
//! request is answered, or at the moment at which the answer is on its way.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Requests that took less are not sent again by anybody: their ids may be used anew at once.
const SLOW: Duration = Duration::from_millis(50);

/// How long after its answer a slow request is still known.
const CROSSING: Duration = Duration::from_secs(1);

/// Bytes at the start of a body that tell it from others, together with its length.
const TELLING_BYTES: usize = 4096;

/// The requests of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownRequests(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    answering: HashMap<Vec<u8>, u64>,
    answered: VecDeque<Answered>,
}

#[derive(Debug)]
struct Answered {
    id: Vec<u8>,
    fingerprint: u64,
    time: Instant,
}

impl KnownRequests {
    /// Begins to answer a request whose body starts with so many bytes of id; `None` if it is one that was sent again.
    pub(crate) fn begin(&self, body: &[u8], id: usize) -> Option<Answering> {
        let (id, fingerprint) = (body[..id].to_vec(), fingerprint(body));
        let mut state = self.lock();
        while state.answered.front().is_some_and(|answered| answered.time.elapsed() > CROSSING) {
            state.answered.pop_front();
        }
        let is_it = |answered: &Answered| answered.id == id && answered.fingerprint == fingerprint;
        if state.answering.contains_key(&id) || state.answered.iter().any(is_it) {
            return None;
        }
        state.answering.insert(id.clone(), fingerprint);
        Some(Answering { known: self.clone(), id, started: Instant::now() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fingerprint(body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (body.len(), &body[..body.len().min(TELLING_BYTES)]).hash(&mut hasher);
    hasher.finish()
}

/// A request while it is being answered, however that ends.
#[derive(Debug)]
pub(crate) struct Answering {
    known: KnownRequests,
    id: Vec<u8>,
    started: Instant,
}

impl Answering {
    /// Its id, with the words that proxies put before it.
    pub(crate) fn id(&self) -> &[u8] {
        &self.id
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.known.lock();
        let Some(fingerprint) = state.answering.remove(&self.id) else { return };
        // A request that panicked has no answer: whoever sends it again means it.
        if self.started.elapsed() >= SLOW && !std::thread::panicking() {
            state.answered.push_back(Answered { id: std::mem::take(&mut self.id), fingerprint, time: Instant::now() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_while_it_is_answered_and_a_slow_one_a_little_longer() {
        let known = KnownRequests::default();
        let quick = known.begin(b"id-1body", 4);
        assert!(quick.is_some() && known.begin(b"id-1body", 4).is_none());
        assert!(known.begin(b"id-2body", 4).is_some());
        drop(quick);
        let slow = known.begin(b"id-1body", 4);
        assert!(slow.is_some());
        std::thread::sleep(SLOW);
        drop(slow);
        assert!(known.begin(b"id-1body", 4).is_none());
        assert!(known.begin(b"id-1other", 4).is_some());
        std::thread::sleep(CROSSING);
        assert!(known.begin(b"id-1body", 4).is_some());
    }
}
