//! The daemon's life: it takes the folder, listens, and ends when told to or when nobody needs it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gpuemu_config::Environment;
use gpuemu_runners::executor;
use gpuemu_service::home::HomeError;
use gpuemu_service::{Service, ServiceError, VERSION};
use gpuemu_store::StoreError;
use thiserror::Error;

use crate::logging;
use crate::server::Daemon;
use crate::transport::{Handler, Server, ServerError};

/// Threads that serve connections; work is done on others. They are more than there are cores because the system
/// shares cores by thread: where very many requests are worked on, few such threads would come too seldom, and a Ping
/// take three times as long.
const CONNECTION_THREADS: usize = 16;

/// Time without work after which memory that is not in use is returned.
const REST: Duration = Duration::from_secs(1);

/// Why the daemon does not run.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The folder, the store or the settings.
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("the daemon cannot start: {0}")]
    System(#[from] std::io::Error),
}

impl DaemonError {
    /// Whether another process has the folder or the store: it may let go of it soon.
    pub fn is_in_use(&self) -> bool {
        matches!(
            self,
            Self::Service(ServiceError::Home(HomeError::InUse { .. }) | ServiceError::Store(StoreError::InUse(_)))
        )
    }
}

/// Runs the daemon until it ends. `foreground` logs to stderr as well as to the file.
pub fn run(environment: Environment, foreground: bool) -> Result<(), DaemonError> {
    let unknown = || ServiceError::from(HomeError::Unknown);
    let home = environment.home().ok_or_else(unknown)?;
    let socket = environment.socket().ok_or_else(unknown)?;
    gpuemu_process::share_arenas();
    gpuemu_process::adopt_orphans()?;
    // A Ping is answered in time whatever is computed: see the campaign `load`.
    gpuemu_process::start_processes_apart()?;
    let service = Service::open(&home, "the daemon", environment)?;
    logging::start(&home, service.settings.log_level, foreground);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONNECTION_THREADS)
        .max_blocking_threads(2048)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(serve(service, &socket));
    // A reference that hangs must neither keep the daemon alive nor outlive it.
    executor::end_all();
    runtime.shutdown_timeout(Duration::from_secs(2));
    executor::end_all();
    ended
}

async fn serve(service: Arc<Service>, socket: &Path) -> Result<(), DaemonError> {
    let server = Server::bind(socket, service.settings.message_bytes)?;
    let idle_timeout = service.settings.idle_timeout;
    tracing::info!("gpuemu {VERSION} listens on {}", socket.display());
    let daemon = Daemon::new(service);
    // What clients of the daemon before left behind.
    daemon.client_gone();
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(clean_daily(daemon.service().clone()));
    tokio::spawn(return_memory_at_rest(daemon.clone()));
    tokio::select! {
        () = server.serve(daemon.clone()) => {}
        () = daemon.ended() => {
            tracing::info!("asked to end");
            // The answer to whoever asked is on its way.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        () = idle(daemon.clone(), idle_timeout) => tracing::info!("nobody asked for anything: ending"),
        _ = tokio::signal::ctrl_c() => tracing::info!("interrupted"),
        _ = terminated.recv() => tracing::info!("terminated"),
    }
    daemon.service().jobs().cancel_all();
    Ok(())
}

/// Returns after a long enough time without work; never, if there is no such time.
async fn idle(daemon: Arc<Daemon>, timeout: Option<Duration>) {
    let Some(timeout) = timeout else { return std::future::pending().await };
    loop {
        let idle = daemon.idle();
        if idle >= timeout {
            return;
        }
        tokio::time::sleep((timeout - idle).max(Duration::from_millis(10))).await;
    }
}

/// Gives memory back after every time of work: a daemon may be there for days and work for minutes.
async fn return_memory_at_rest(daemon: Arc<Daemon>) {
    let mut returned = false;
    loop {
        tokio::time::sleep(REST).await;
        let at_rest = daemon.idle() >= REST;
        if at_rest && !returned {
            // A thread that broke off has returned nothing, and nothing depends on it.
            let _ = tokio::task::spawn_blocking(gpuemu_process::return_memory).await;
        }
        returned = at_rest;
    }
}

async fn clean_daily(service: Arc<Service>) {
    loop {
        let cleaning = service.clone();
        match tokio::task::spawn_blocking(move || cleaning.clean()).await {
            Ok(Ok(0)) | Err(_) => {}
            Ok(Ok(removed)) => tracing::info!("{removed} old results were removed"),
            Ok(Err(error)) => tracing::warn!("old results could not be removed: {error}"),
        }
        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    }
}
