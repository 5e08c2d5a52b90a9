//! The tail of one run: its events until its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunRef;
use wattle_run::ports::store::RunRecord;
use wattle_run::tail::{self, Tail, TailQuery, Until};

/// Interval without an event after which a stream sends a heartbeat. Clients measure this interval,
/// and close a connection after several missing heartbeats.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// The next item of a tail.
pub(crate) enum RunTailItem {
    /// An event of the run.
    Event(Arc<Event>),
    /// No event has arrived for the heartbeat interval.
    Heartbeat,
    /// The run has ended and its thread is free, or the run was deleted. No event follows.
    Ended,
    /// The host is shutting down. No event follows, but the run has not ended.
    ShuttingDown,
    /// The log cannot be read. No event follows, and it is unknown whether the run continues.
    ReadFailed(Failure),
}

/// The tail of the events of one run.
pub(crate) struct RunTail {
    engine: Engine,
    run: RunRef,
    tail: Tail,
    stopping: watch::Receiver<bool>,
    /// Whether the last event of the run was read. Later events of the log belong to later runs.
    has_ended: bool,
}

impl RunTail {
    /// Creates a tail that begins with the first event of a run.
    pub(crate) fn new(
        engine: &Engine,
        stopping: &watch::Receiver<bool>,
        record: &RunRecord,
    ) -> Self {
        let run = RunRef { thread: record.thread.clone(), run: record.id.clone() };
        let tail = engine.tail(TailQuery {
            thread: run.thread.clone(),
            run: Some(run.run.clone()),
            after: record.first_seq.saturating_sub(1),
            until: Until::Deleted,
        });
        let (engine, stopping) = (engine.clone(), stopping.clone());
        Self { engine, run, tail, stopping, has_ended: false }
    }

    /// Waits for the next item.
    pub(crate) async fn next(&mut self) -> RunTailItem {
        loop {
            if self.has_ended {
                return self.wait_for_end().await;
            }
            match self.tail.next().await {
                Ok(tail::TailItem::Event(event)) => {
                    let is_root = event.namespace.is_root();
                    self.has_ended = is_root && matches!(event.kind, EventKind::RunEnded(_));
                    return RunTailItem::Event(event);
                }
                // A run that was set aside counts as running: the stream waits until the run
                // continues.
                Ok(tail::TailItem::CaughtUp) if self.tail.is_run_active() => {}
                Ok(tail::TailItem::CaughtUp | tail::TailItem::Idle) => {
                    return self.wait_for_end().await;
                }
                Ok(tail::TailItem::Gone | tail::TailItem::Replaced) => return RunTailItem::Ended,
                Err(failure) => {
                    let thread = &self.run.thread;
                    tracing::warn!(%thread, error = %failure, "run stream aborted");
                    return RunTailItem::ReadFailed(failure);
                }
            }
            tokio::select! {
                has_changed = self.tail.wait(HEARTBEAT_INTERVAL) => if !has_changed {
                    return RunTailItem::Heartbeat;
                },
                _ = self.stopping.wait_for(|stopping| *stopping) => {
                    return RunTailItem::ShuttingDown;
                }
            }
        }
    }

    /// Waits until the run no longer occupies its thread. A client that reads the end of the stream
    /// can then start the next run.
    async fn wait_for_end(&self) -> RunTailItem {
        let _ = self.engine.wait_ended(&self.run).await;
        RunTailItem::Ended
    }
}
