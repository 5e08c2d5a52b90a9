//! File projections of apps: `[files.<name>]` in `app.toml`.
//!
//! A separate task reads a run after it has ended, so file projections do not disturb runs. File
//! names depend only on the events, so projecting a run again writes the same files.

mod folder;
mod large;
mod write;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use wattle_api::projection::{Past, subject};
use wattle_graph::event::Event;
use wattle_graph::mapping::{
    EventContext, FileProjection, ProjectedFile, RunFileProjector, RunInfo,
};
use wattle_run::app::App;
use wattle_run::catalog::Catalog;
use wattle_run::ports::observer::{Observer, RunSummary};
use wattle_run::ports::store::StoreError;
use wattle_run::ports::{BlobStore, Ports, Store};
use wattle_run::tail::range::EventRange;

use crate::config::Config;
use crate::wire::ReadEnv;

/// Maximum number of runs that wait for their files to be written. Reading a run is much faster
/// than executing it, so a full queue means that the disk is blocked.
const QUEUE: usize = 1_024;

/// Timeout for writing pending files when the host stops.
const LONGEST_FINISH: Duration = Duration::from_secs(5);

/// The observer that writes the files of ended runs.
pub struct FileProjector {
    jobs: mpsc::Sender<Job>,
}

enum Job {
    Run(Box<RunSummary>),
    Finish(oneshot::Sender<()>),
}

impl Observer for FileProjector {
    fn run_ended(&self, note: RunSummary) {
        let run = note.run.clone();
        if self.jobs.try_send(Job::Run(Box::new(note))).is_err() {
            tracing::warn!(%run, "file projections of a run are skipped: the queue is full");
        }
    }
}

impl FileProjector {
    /// Waits until all pending files are written, or until a timeout.
    pub async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        let writing = async {
            if self.jobs.send(Job::Finish(done)).await.is_ok() {
                // An error means that the task has ended and no files are pending.
                let _ = finished.await;
            }
        };
        if tokio::time::timeout(LONGEST_FINISH, writing).await.is_err() {
            tracing::warn!("file projections of some runs did not complete before the stop");
        }
    }
}

/// Starts the task that writes files.
pub fn start(
    runtime: &Handle,
    ports: &Ports,
    catalog: &Arc<Catalog>,
    config: &Arc<Config>,
    env: &ReadEnv,
) -> Arc<FileProjector> {
    let (jobs, waiting) = mpsc::channel(QUEUE);
    let worker = Worker {
        store: ports.store.clone(),
        blobs: ports.blobs.clone(),
        zone: ports.clock.time_zone().to_owned(),
        catalog: catalog.clone(),
        config: config.clone(),
        env: env.clone(),
    };
    runtime.spawn(worker.run(waiting));
    Arc::new(FileProjector { jobs })
}

struct Worker {
    store: Arc<dyn Store>,
    blobs: Arc<dyn BlobStore>,
    zone: String,
    catalog: Arc<Catalog>,
    config: Arc<Config>,
    env: ReadEnv,
}

impl Worker {
    async fn run(self, mut waiting: mpsc::Receiver<Job>) {
        while let Some(job) = waiting.recv().await {
            match job {
                Job::Run(note) => self.project(&note).await,
                // The send fails only if the caller no longer waits.
                Job::Finish(done) => drop(done.send(())),
            }
        }
    }

    async fn project(&self, note: &RunSummary) {
        let Some(app) = self.catalog.app(&note.app) else { return };
        for (name, mapping) in &app.projections.files {
            let folder = folder::of_files(&self.config, &self.env, &app.name, name, mapping);
            let Some(folder) = folder else { continue };
            let run = &note.run;
            match self.files(note, &app, mapping).await {
                Ok(files) => write::all(folder, files).await,
                Err(error) => {
                    tracing::warn!(%run, %error, "cannot read a run for its file projections");
                }
            }
        }
    }

    async fn files(
        &self,
        note: &RunSummary,
        app: &App,
        mapping: &FileProjection,
    ) -> Result<Vec<(u64, ProjectedFile)>, StoreError> {
        let subject: RunInfo = subject(app, note.thread.as_str(), note.run.as_str());
        let mut past = Past::new(self.store.clone(), &self.zone, &note.thread);
        let mut run = RunFileProjector::new(mapping, &subject);
        let mut files = Vec::new();
        let before = note.first_seq.saturating_sub(1);
        let mut events = EventRange::new(self.store.as_ref(), &note.thread, before, note.last_seq);
        while let Some(page) = events.next().await? {
            for event in page.iter().filter(|event| event.run == note.run) {
                if let Some(mut file) = project(&mut run, &mut past, event).await {
                    large::fill(self.blobs.as_ref(), &mut file.content).await;
                    files.push((event.seq, file));
                }
            }
        }
        Ok(files)
    }
}

async fn project(
    run: &mut RunFileProjector<'_>,
    past: &mut Past,
    event: &Event,
) -> Option<ProjectedFile> {
    past.see(event);
    let (time, stamp) = (past.time(event), past.stamp(event));
    let state = if run.wants_state(event) { past.state().await } else { &Value::Null };
    run.apply(event, EventContext { time: &time, state }, &stamp)
}
