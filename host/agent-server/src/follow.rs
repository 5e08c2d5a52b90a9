//! Reading what a run writes into the log, until nothing more comes of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_run::hostcall::runs::{RunRef, Runs as _};
use wattle_run::ports::store::RunRecord;
use wattle_run::tail::{self, Tail, TailQuery, Until};

use crate::agents::Agents;

/// Silence after which a sign of life is sent: clients measure it and give a connection up after
/// some of them.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);

/// What comes next.
pub(crate) enum Next {
    /// An event of the run.
    Event(Arc<Event>),
    /// Nothing for a while.
    Silence,
    /// Nothing more: the run is over and everybody can see that, or it is gone.
    Over,
    /// Nothing more from this host, which stops. The run is not over.
    Stopping,
    /// Nothing more, since the log cannot be read. Whether the run goes on is not known.
    Unreadable(Failure),
}

/// Reads the events of one run.
pub(crate) struct Log {
    agents: Agents,
    run: RunRef,
    tail: Tail,
    stopping: watch::Receiver<bool>,
    /// Whether its last event was read. What comes after it in the log is of later runs.
    has_ended: bool,
}

impl Log {
    /// Reads from the first event of a run.
    pub(crate) fn new(agents: &Agents, record: &RunRecord) -> Self {
        let run = RunRef { thread: record.thread.clone(), run: record.id.clone() };
        let tail = agents.engine().tail(TailQuery {
            thread: run.thread.clone(),
            run: Some(run.run.clone()),
            after: record.first_seq.saturating_sub(1),
            until: Until::Deleted,
        });
        let stopping = agents.api().stopping.clone();
        Self { agents: agents.clone(), run, tail, stopping, has_ended: false }
    }

    /// What comes next.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            if self.has_ended {
                return self.over().await;
            }
            match self.tail.next().await {
                Ok(tail::Next::Event(event)) => {
                    let is_root = event.namespace.is_root();
                    self.has_ended = is_root && matches!(event.kind, EventKind::RunEnded(_));
                    return Next::Event(event);
                }
                // A run that was set aside is at work here: its client waits until it goes on.
                Ok(tail::Next::CaughtUp) if self.tail.is_at_work() => {}
                Ok(tail::Next::CaughtUp | tail::Next::Idle) => return self.over().await,
                Ok(tail::Next::Gone | tail::Next::Replaced) => return Next::Over,
                Err(failure) => {
                    let thread = &self.run.thread;
                    tracing::warn!(%thread, error = %failure, "the stream of a run ends");
                    return Next::Unreadable(failure);
                }
            }
            tokio::select! {
                is_news = self.tail.wait(HEARTBEAT) => if !is_news { return Next::Silence },
                _ = self.stopping.wait_for(|stopping| *stopping) => return Next::Stopping,
            }
        }
    }

    /// The thread is free again before the stream ends.
    async fn over(&self) -> Next {
        let _ = self.agents.engine().wait(&self.run).await;
        Next::Over
    }
}
