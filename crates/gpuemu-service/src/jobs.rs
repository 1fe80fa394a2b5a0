//! Long work: how far it is, and whether somebody wants it stopped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpuemu_wire::protocol::{JobState, JobStatus, Response};

/// Ended jobs whose results are kept for whoever asks.
const ENDED_JOBS: usize = 64;

/// What a client may wait in one request; NNG's own clients ask again after a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// One piece of long work.
#[derive(Debug)]
pub struct Job {
    number: u64,
    kind: String,
    cancelled: AtomicBool,
    progress: Mutex<Progress>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    done: u64,
    total: u64,
    failures: u64,
    message: String,
    result: Option<Box<Response>>,
}

impl Job {
    /// Work that nobody watches: the client waits for its answer.
    pub fn unwatched() -> Arc<Self> {
        Self::new(0, String::new())
    }

    fn new(number: u64, kind: String) -> Arc<Self> {
        let (cancelled, progress, ended) = (AtomicBool::new(false), Mutex::default(), Condvar::new());
        Arc::new(Self { number, kind, cancelled, progress, ended })
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether somebody wants it stopped.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Asks it to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// More work is known of.
    pub fn plan(&self, cases: u64) {
        self.lock().total += cases;
    }

    /// A case is done.
    pub fn advance(&self, failed: bool) {
        let mut progress = self.lock();
        progress.done += 1;
        progress.failures += u64::from(failed);
    }

    pub fn say(&self, message: &str) {
        self.lock().message = message.to_string();
    }

    /// It has an answer.
    pub fn finish(&self, response: Response) {
        self.lock().result = Some(Box::new(response));
        self.ended.notify_all();
    }

    /// It has this answer, unless it has one already.
    pub fn give_up(&self, response: Response) {
        self.lock().result.get_or_insert_with(|| Box::new(response));
        self.ended.notify_all();
    }

    /// How far it is, at its end or after so long.
    pub fn status(&self, wait: Duration) -> JobStatus {
        let deadline = Instant::now() + wait.min(LONGEST_WAIT);
        let mut progress = self.lock();
        while progress.result.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            progress = self.ended.wait_timeout(progress, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let state = match (&progress.result, self.is_cancelled()) {
            (None, _) => JobState::Running,
            (Some(_), true) => JobState::Cancelled,
            (Some(_), false) => JobState::Done,
        };
        JobStatus {
            job: self.number,
            kind: self.kind.clone(),
            state,
            done: progress.done,
            total: progress.total,
            failures: progress.failures,
            message: progress.message.clone(),
            result: progress.result.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub struct Jobs {
    next: AtomicU64,
    jobs: Mutex<BTreeMap<u64, Arc<Job>>>,
}

impl Jobs {
    pub fn start(&self, kind: &str) -> Arc<Job> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let job = Job::new(number, kind.to_string());
        let mut jobs = self.lock();
        jobs.insert(number, job.clone());
        let ended: Vec<u64> =
            jobs.iter().filter(|(_, job)| job.lock().result.is_some()).map(|(number, _)| *number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(ENDED_JOBS)) {
            jobs.remove(number);
        }
        job
    }

    pub fn get(&self, number: u64) -> Option<Arc<Job>> {
        self.lock().get(&number).cloned()
    }

    /// All of them, without results.
    pub fn list(&self) -> Vec<JobStatus> {
        let jobs: Vec<Arc<Job>> = self.lock().values().cloned().collect();
        jobs.iter().map(|job| JobStatus { result: None, ..job.status(Duration::ZERO) }).collect()
    }

    pub fn running(&self) -> usize {
        self.lock().values().filter(|job| job.lock().result.is_none()).count()
    }

    /// Asks all of them to stop.
    pub fn cancel_all(&self) {
        self.lock().values().for_each(|job| job.cancel());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_the_result() {
        let jobs = Jobs::default();
        let job = jobs.start("FuzzOp");
        job.plan(2);
        job.advance(true);
        let status = job.status(Duration::ZERO);
        assert_eq!((status.done, status.total, status.failures, status.state), (1, 2, 1, JobState::Running));
        let waiter = std::thread::spawn({
            let job = job.clone();
            move || job.status(Duration::from_secs(60))
        });
        job.cancel();
        job.finish(Response::Ok);
        let status = waiter.join().unwrap();
        assert_eq!((status.state, status.result), (JobState::Cancelled, Some(Box::new(Response::Ok))));
        assert_eq!((jobs.running(), jobs.list().len()), (0, 1));
    }

    #[test]
    fn an_answer_is_not_replaced_by_giving_up() {
        let jobs = Jobs::default();
        let (done, broken) = (jobs.start("FuzzOp"), jobs.start("FuzzOp"));
        done.finish(Response::Ok);
        let error = || Response::error(gpuemu_model::error_code::ErrorCode::InternalError, "broke off");
        done.give_up(error());
        broken.give_up(error());
        let result = |job: &Job| job.status(Duration::ZERO).result;
        assert_eq!((result(&done), result(&broken)), (Some(Box::new(Response::Ok)), Some(Box::new(error()))));
    }

    #[test]
    fn ended_jobs_are_forgotten_in_the_end_but_running_ones_never() {
        let jobs = Jobs::default();
        let running = jobs.start("RunCi");
        for _ in 0..3 * ENDED_JOBS {
            jobs.start("FuzzOp").finish(Response::Ok);
        }
        assert!(jobs.list().len() <= ENDED_JOBS + 2);
        assert!(jobs.get(running.number()).is_some());
    }
}
