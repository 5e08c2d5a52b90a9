//! The observer of runs, which only queues notifications about ended runs, and the worker that
//! processes them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use wattle_graph::id::{AppName, GraphName, PluginName};
use wattle_project::spans::{Route, View, spans};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::observer::RunSummary;
use wattle_run::ports::{Caller, Model, Observer, Store};

use crate::config::TelemetryConfig;
use crate::error::ConfigError;
use crate::export::{self, OtlpSender, SpanQueue};
use crate::metrics::Metrics;
use crate::otlp;
use crate::run_log;
use crate::statistics::RunStatistics;

/// Maximum number of notifications in the queue. A notification is small, and reading the log of
/// its run takes a millisecond.
const QUEUE_CAPACITY: usize = 4096;

/// Plugin name with which the worker looks up routes. Routes do not depend on the plugin.
const PLUGIN: &str = "telemetry";

/// The observer that records the metrics and statistics of runs and exports their traces.
pub struct Telemetry {
    metrics: Metrics,
    statistics: Option<RunStatistics>,
    /// The sending end of the queue; `None` after `close`.
    ended_runs: Mutex<Option<mpsc::Sender<RunSummary>>>,
    workers: Mutex<JoinSet<()>>,
}

impl Telemetry {
    /// Starts the workers on the current runtime. If `statistics` is `None`, no statistics are
    /// recorded.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError`] for headers that cannot be sent.
    pub fn start(
        config: &TelemetryConfig,
        store: Arc<dyn Store>,
        model: Arc<dyn Model>,
        statistics: Option<RunStatistics>,
    ) -> Result<Self, ConfigError> {
        let metrics = Metrics::default();
        let mut workers = JoinSet::new();
        let mut spans = None;
        if let Some(otlp) = &config.otlp {
            let sender = OtlpSender::new(otlp, metrics.export.clone())?;
            let (queue, runs) = export::queue();
            workers.spawn(export::run_exporter(runs, sender, metrics.export.clone()));
            spans = Some(queue);
        }
        let (notes, ended) = mpsc::channel(QUEUE_CAPACITY);
        let (worker_ends, worker_ended) = oneshot::channel();
        if let Some(statistics) = &statistics {
            workers.spawn(statistics.clone().run(worker_ended));
        }
        let reader = Worker {
            store,
            model,
            spans,
            content: config.content,
            metrics: metrics.clone(),
            statistics: statistics.clone(),
        };
        workers.spawn(async move {
            reader.run(ended).await;
            drop(worker_ends);
        });
        let (ended_runs, workers) = (Mutex::new(Some(notes)), Mutex::new(workers));
        Ok(Self { metrics, statistics, ended_runs, workers })
    }

    /// Returns a handle to the metrics of this observer.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Stops accepting runs, exports the queued spans, writes the statistics and stops the workers.
    /// Spans that are not exported and statistics that are not written within `limit` are dropped.
    pub async fn close(&self, limit: Duration) {
        self.ended_runs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut workers =
            std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::warn!("some traces or statistics were dropped because the host stopped");
        }
    }
}

impl Observer for Telemetry {
    fn run_started(&self, app: &AppName, graph: &GraphName) {
        self.metrics.run_started(app, graph);
    }

    fn run_ended(&self, note: RunSummary) {
        self.metrics.run_ended(&note.app, &note.graph, note.status);
        let notes = self.ended_runs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(notes) = notes.as_ref() else { return };
        match notes.try_send(note) {
            Ok(()) => {
                self.metrics.export.waiting_runs.inc();
            }
            Err(TrySendError::Full(note) | TrySendError::Closed(note)) => {
                self.metrics.export.dropped_runs.inc();
                if let Some(statistics) = &self.statistics {
                    statistics.record_summary(&note);
                }
            }
        }
    }
}

/// The worker that reads the logs of ended runs, records metrics and statistics, and queues spans.
struct Worker {
    store: Arc<dyn Store>,
    model: Arc<dyn Model>,
    spans: Option<SpanQueue>,
    content: bool,
    metrics: Metrics,
    statistics: Option<RunStatistics>,
}

impl Worker {
    async fn run(self, mut ended: mpsc::Receiver<RunSummary>) {
        while let Some(note) = ended.recv().await {
            self.metrics.export.waiting_runs.dec();
            self.process(note).await;
        }
    }

    async fn process(&self, note: RunSummary) {
        let states = self.content && self.spans.is_some();
        let (run, summary) = (note.run.clone(), self.statistics.is_some().then(|| note.clone()));
        let record = match run_log::read_run(self.store.as_ref(), note, states).await {
            Ok(record) if !record.events.is_empty() => record,
            unread => {
                // The log of a deleted thread has no events and causes no error.
                if let Err(error) = unread {
                    tracing::warn!(%run, %error, "cannot read a run for telemetry");
                    self.metrics.export.dropped_runs.inc();
                }
                if let (Some(statistics), Some(summary)) = (&self.statistics, &summary) {
                    statistics.record_summary(summary);
                }
                return;
            }
        };
        let models = |route: &str| self.model.configured_models(route);
        self.metrics.record_run(&record, &models);
        if let Some(statistics) = &self.statistics {
            statistics.record_run(&record, &models);
        }
        let Some(queue) = &self.spans else { return };
        let route = |name: &str| self.route(&record.note, name);
        let view = View { content: self.content, route: &route };
        let spans = spans(&record.run(), &record.events, &view);
        export::try_enqueue(
            queue,
            spans.into_iter().map(otlp::span).collect(),
            &self.metrics.export,
        );
    }

    fn route(&self, note: &RunSummary, name: &str) -> Option<Route> {
        let plugin = PluginName::new(PLUGIN).ok()?;
        let (app, owner) = (note.app.clone(), CallerId::of_app(&note.app));
        let caller = Caller { app, plugin, tenant: note.tenant.clone(), owner };
        let info = self.model.route(&caller, name)?;
        Some(Route { provider: info.provider, model: info.model })
    }
}
