//! File projections of apps: `[files.<name>]` in `app.toml`.
//!
//! A separate task reads a run after it has ended, so file projections do not disturb runs. The
//! task has at most one file in memory. File names depend only on the events, so projecting a run
//! again writes the same files.
//!
//! * `content`: the content of a file, with blobs; `pretty`: its indentation.
//! * `write`: one file; `budget`: the limits of a run and of an app; `output_folder`: the folder of
//!   the files.

mod budget;
mod content;
mod output_folder;
mod pretty;
mod write;

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use wattle_api::projection::{StateAtEvent, apply_in_turn, is_long_event, run_info};
use wattle_graph::event::Event;
use wattle_graph::limit::Exceeded;
use wattle_graph::mapping::{
    EventContext, FileProjection, ProjectedFile, ProjectionBudget, RunFileProjector, RunInfo,
};
use wattle_run::app::App;
use wattle_run::blocking::are_large_values;
use wattle_run::caller_id::CallerId;
use wattle_run::caps::Caps;
use wattle_run::catalog::Catalog;
use wattle_run::free_disk::{DiskUse, FreeDisk};
use wattle_run::ports::observer::{Observer, RunSummary};
use wattle_run::ports::store::StoreError;
use wattle_run::ports::{BlobStore, Clock, Ports, Store};
use wattle_run::state_cache::StateCache;
use wattle_run::tail::range::EventRange;

use crate::env::ReadEnv;
use crate::file_projection::budget::{AppUsage, RunBudget};
use crate::file_projection::content::FileContent;
use crate::file_projection::write::WrittenFile;
use crate::files_folder::FilesFolder;
use crate::load::Loader;

/// Maximum number of runs that wait for their files to be written. Reading a run is much faster
/// than executing it, so a full queue means that the disk is blocked.
const QUEUE_LEN: usize = 1_024;

/// Timeout for writing the queued files when the host stops.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The observer that writes the files of ended runs.
pub struct FileProjector {
    jobs: mpsc::Sender<Job>,
}

enum Job {
    Run(Box<RunSummary>),
    Flush(oneshot::Sender<()>),
}

impl Observer for FileProjector {
    fn run_ended(&self, summary: RunSummary) {
        let run = summary.run.clone();
        if self.jobs.try_send(Job::Run(Box::new(summary))).is_err() {
            tracing::warn!(%run, "file projections of a run are skipped: the queue is full");
        }
    }
}

impl FileProjector {
    /// Waits until the files of all queued runs are written, at most [`FLUSH_TIMEOUT`].
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let writing = async {
            if self.jobs.send(Job::Flush(done)).await.is_ok() {
                // An error means that the task has ended and no files are pending.
                let _ = flushed.await;
            }
        };
        if tokio::time::timeout(FLUSH_TIMEOUT, writing).await.is_err() {
            tracing::warn!("file projections of some runs did not complete before the stop");
        }
    }
}

/// Starts the task that writes files.
pub fn start(
    runtime: &Handle,
    ports: &Ports,
    catalog: &Arc<Catalog>,
    loader: &Loader,
    env: &ReadEnv,
    free_disk: FreeDisk,
) -> Arc<FileProjector> {
    let (jobs, queue) = mpsc::channel(QUEUE_LEN);
    let worker = Worker {
        store: ports.store.clone(),
        blobs: ports.blobs.clone(),
        clock: ports.clock.clone(),
        catalog: catalog.clone(),
        loader: loader.clone(),
        env: env.clone(),
        free_disk,
        usage: AppUsage::new(ports.clock.clone()),
    };
    runtime.spawn(worker.run(queue));
    Arc::new(FileProjector { jobs })
}

struct Worker {
    store: Arc<dyn Store>,
    blobs: Arc<dyn BlobStore>,
    clock: Arc<dyn Clock>,
    catalog: Arc<Catalog>,
    loader: Loader,
    env: ReadEnv,
    free_disk: FreeDisk,
    usage: AppUsage,
}

impl Worker {
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(job) = queue.recv().await {
            match job {
                Job::Run(summary) => self.project(&summary).await,
                // The send fails only if the caller no longer waits.
                Job::Flush(done) => drop(done.send(())),
            }
        }
    }

    async fn project(&mut self, summary: &RunSummary) {
        let Some(app) = self.catalog.app(&summary.app) else { return };
        let (config, tables) = (self.loader.config(), self.loader.grant_tables());
        let with_folder = |(name, mapping): (&String, &Arc<FileProjection>)| {
            let (env, app) = (&self.env, &app.name);
            let folder = output_folder::output_folder(config, &tables, env, app, name, mapping)?;
            Some((folder, mapping.clone()))
        };
        let mappings: Vec<_> = app.projections.files.iter().filter_map(with_folder).collect();
        if mappings.is_empty() {
            return;
        }
        let now_ns = self.clock.monotonic_ns();
        if let Err(failure) = self.free_disk.check(now_ns, DiskUse::New).await {
            let (run, app) = (&summary.run, &app.name);
            tracing::warn!(%run, %app, "the files of a run are not written: {failure}");
            return;
        }
        let Caps { run_file_bytes, app_file_bytes, .. } = config.caps();
        let folders = mappings.iter().map(|(folder, _)| folder.clone()).collect();
        let remaining =
            self.usage.remaining(&app.name, folders, app_file_bytes, run_file_bytes).await;
        let mut budget = RunBudget::new(run_file_bytes, remaining);
        for (folder, mapping) in &mappings {
            let run = &summary.run;
            let projection = (folder, mapping.as_ref());
            match self.write_files(summary, &app, projection, &mut budget).await {
                Ok(()) => {}
                Err(StopReason::Limit(limit)) => {
                    tracing::warn!(
                        %run, app = %app.name, limit,
                        "further files of a run are not written: its files, their expressions, or \
                         the files of its app have reached a limit; see `run_file_bytes` and \
                         `app_file_bytes` under `[limits]`"
                    );
                    break;
                }
                Err(StopReason::Unreadable(error)) => {
                    tracing::warn!(%run, %error, "cannot read a run for its file projections");
                }
            }
        }
        self.usage.add(&app.name, budget.added);
    }

    /// Writes the files of a run one by one. A file that cannot be written is logged, and the
    /// remaining files are still written.
    async fn write_files(
        &self,
        summary: &RunSummary,
        app: &App,
        (folder, mapping): (&FilesFolder, &FileProjection),
        budget: &mut RunBudget,
    ) -> Result<(), StopReason> {
        let info: RunInfo = run_info(app, summary.thread.as_str(), summary.run.as_str());
        let states = StateCache::disabled(self.store.clone());
        let mut state_at_event = StateAtEvent::new(states, self.clock.time_zone(), &summary.thread);
        let mut run = RunFileProjector::new(mapping, &info);
        let owner = CallerId::of_app(&app.name);
        let before = summary.first_seq.saturating_sub(1);
        let mut events =
            EventRange::new(self.store.as_ref(), &summary.thread, before, summary.last_seq);
        while let Some(page) = events.next().await? {
            for event in page.iter().filter(|event| event.run == summary.run) {
                let expressions = &mut budget.expressions;
                let file = project(&mut run, &mut state_at_event, event, owner, expressions).await;
                let file = file.map_err(|exceeded| StopReason::Limit(exceeded.limit))?;
                let Some(file) = file else { continue };
                let limit = budget.begin_file().map_err(StopReason::Limit)?;
                let content = FileContent::read(self.blobs.as_ref(), file.content).await;
                let path = PathBuf::from(file.path);
                match write(folder.clone(), path.clone(), event.seq, content, limit).await {
                    Ok(written) => budget.finish_file(written),
                    Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                        return Err(StopReason::Limit(budget.exceeded()));
                    }
                    Err(error) => {
                        let path = folder.path().join(path);
                        tracing::warn!(
                            path = %path.display(), %error,
                            "cannot write a file projection; no folder on the way to it may be a \
                             symbolic link"
                        );
                    }
                }
            }
        }
        Ok(())
    }
}

/// The reason why no further files of a run are written.
enum StopReason {
    /// A limit, by name.
    Limit(&'static str),
    /// The events cannot be read.
    Unreadable(StoreError),
}

impl From<StoreError> for StopReason {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error)
    }
}

/// Writes a file on the blocking pool.
async fn write(
    folder: FilesFolder,
    path: PathBuf,
    seq: u64,
    content: FileContent,
    limit: u64,
) -> io::Result<WrittenFile> {
    let work = move || write::file(&folder, &path, seq, &content, limit);
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

async fn project(
    run: &mut RunFileProjector<'_>,
    state_at_event: &mut StateAtEvent,
    event: &Event,
    owner: CallerId,
    budget: &mut ProjectionBudget,
) -> Result<Option<ProjectedFile>, Exceeded> {
    state_at_event.apply(event);
    let (time, stamp) = (state_at_event.time(event), state_at_event.file_timestamp(event));
    let wants_state = run.wants_state(event);
    let state = if wants_state { state_at_event.state(owner).await } else { &Value::Null };
    let context = EventContext { time: &time, state };
    let is_long = run.evaluates(event) && (is_long_event(event) || are_large_values([state]));
    let apply = |budget: &mut ProjectionBudget| run.apply(event, context, &stamp, budget);
    apply_in_turn(owner, is_long, budget, apply).await
}
