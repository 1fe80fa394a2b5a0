//! Warm workers of all projects, and the scripts that may not have one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpuemu_config::Framework;

use super::warm::Content;
use super::worker::{Key, Work, Worker};
use super::{Callable, ExecutorError, Interpreter, WarmScript};

/// Warm workers of all projects. Clones are the same pool; the last one ends the idle workers.
///
/// A worker is leased again only while the script and the modules that it loaded from the project are what they
/// were. Other files that it read are not watched.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most_workers: usize,
    /// The ones that were used last are last.
    idle: Mutex<Vec<Worker>>,
    distrusted: Mutex<HashMap<PathBuf, (Content, String)>>,
}

impl Pool {
    /// A pool that keeps so many idle workers at most. Whoever asks is given a worker even beyond that; the surplus
    /// is ended when it comes back.
    pub fn new(most_workers: usize) -> Self {
        let (idle, distrusted) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { most_workers, idle, distrusted }))
    }

    /// A script kept warm, proven against cold runs.
    pub fn script(&self, interpreter: &Interpreter, script: &Path) -> Result<WarmScript, ExecutorError> {
        WarmScript::new(self.clone(), interpreter, script)
    }

    /// A callable: `pkg.mod`, whose function is named like the op or `run`, or `pkg.mod:function`.
    pub fn callable(
        &self,
        interpreter: &Interpreter,
        target: &str,
        op: &str,
        framework: Framework,
    ) -> Result<Callable, ExecutorError> {
        self.callable_that_launches(None, interpreter, target, op, framework)
    }

    /// A callable whose calls are watched for what they have to run, `pkg.mod:name`.
    pub fn callable_that_launches(
        &self,
        launches: Option<&str>,
        interpreter: &Interpreter,
        target: &str,
        op: &str,
        framework: Framework,
    ) -> Result<Callable, ExecutorError> {
        let launches = launches.map(ToString::to_string);
        let work = Work::Callable { target: target.to_string(), op: op.to_string(), framework, launches };
        let key = Key { interpreter: interpreter.clone(), work };
        let worker = self.lease(&key)?;
        Ok(Callable::new(self.clone(), key, worker))
    }

    /// Scripts that are no longer kept warm because a warm run differed from a cold one, with what differed.
    pub fn distrusted(&self) -> Vec<(PathBuf, String)> {
        let distrusted = self.lock_distrusted();
        let mut scripts: Vec<_> = distrusted.iter().map(|(path, (_, what))| (path.clone(), what.clone())).collect();
        scripts.sort();
        scripts
    }

    pub fn clear(&self) {
        let ended = std::mem::take(&mut *self.lock_idle());
        drop(ended);
    }

    /// An idle worker that runs what is in the files, or a new one.
    pub(super) fn lease(&self, key: &Key) -> Result<Worker, ExecutorError> {
        while let Some(mut worker) = self.take(key) {
            if !worker.is_stale() {
                return Ok(worker);
            }
        }
        Worker::start(key)
    }

    fn take(&self, key: &Key) -> Option<Worker> {
        let mut idle = self.lock_idle();
        let at = idle.iter().rposition(|worker| worker.key() == key)?;
        Some(idle.remove(at))
    }

    /// Takes a worker back. The ones that were not used for longest go first.
    pub(super) fn give_back(&self, worker: Worker) {
        if !worker.is_healthy() {
            return;
        }
        let mut idle = self.lock_idle();
        idle.push(worker);
        let surplus = idle.len().saturating_sub(self.0.most_workers);
        let ended: Vec<Worker> = idle.drain(..surplus).collect();
        // Ending them takes time that others need not wait for.
        drop(idle);
        drop(ended);
    }

    /// Whether a script of this content has to stay cold.
    pub(super) fn distrusts(&self, script: &Path, content: &Content) -> bool {
        self.lock_distrusted().get(script).is_some_and(|(known, _)| known == content)
    }

    /// Keeps a script of this content cold from now on.
    pub(super) fn distrust(&self, script: &Path, content: Content, difference: String) {
        let path = script.display();
        tracing::warn!(script = %path, difference, "a warm run differs from a cold one; the script stays cold");
        self.lock_distrusted().insert(script.to_path_buf(), (content, difference));
    }

    /// Forgets what was held against other contents of a script.
    pub(super) fn reconsider(&self, script: &Path, content: &Content) {
        self.lock_distrusted().retain(|path, (known, _)| path != script || known == content);
    }

    fn lock_idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_distrusted(&self) -> MutexGuard<'_, HashMap<PathBuf, (Content, String)>> {
        self.0.distrusted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
