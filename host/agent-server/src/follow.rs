//! Reading what a run writes into the log, until nothing more comes of it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::watch;
use wattle_graph::event::{Event, EventKind, RunStatus};
use wattle_run::call::runs::{RunRef, Runs as _};
use wattle_run::ports::store::RunRecord;

use crate::agents::Agents;

/// Silence after which a sign of life is sent: clients measure it and give a connection up after
/// some of them.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Events read from the log at a time.
const PAGE_EVENTS: usize = 128;

/// What comes next.
pub(crate) enum Next {
    /// An event of the run.
    Event(Box<Event>),
    /// Nothing for a while.
    Silence,
    /// Nothing more: the run is over and everybody can see that, or it is gone.
    Over,
    /// Nothing more from this host, which stops or cannot read the log.
    Broken,
}

/// Reads the events of one run.
pub(crate) struct Log {
    agents: Agents,
    run: RunRef,
    after: u64,
    news: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    page: VecDeque<Event>,
    /// Whether its last event was read. What comes after it in the log is of later runs.
    has_ended: bool,
}

impl Log {
    /// Reads from the first event of a run.
    pub(crate) fn new(agents: &Agents, record: &RunRecord) -> Self {
        let run = RunRef { thread: record.thread.clone(), run: record.id.clone() };
        Self {
            after: record.first_seq.saturating_sub(1),
            news: agents.engine().watch(&run.thread),
            stopping: agents.api().stopping.clone(),
            agents: agents.clone(),
            run,
            page: VecDeque::new(),
            has_ended: false,
        }
    }

    /// What comes next.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            if self.has_ended {
                return self.over().await;
            }
            while let Some(event) = self.page.pop_front() {
                self.after = event.seq;
                if event.run == self.run.run {
                    if event.namespace.is_root() && matches!(event.kind, EventKind::RunEnded(_)) {
                        self.has_ended = true;
                        self.page.clear();
                    }
                    return Next::Event(Box::new(event));
                }
            }
            // Before anything is read: whatever is written after that wakes the wait below.
            self.news.borrow_and_update();
            let store = &self.agents.ports().store;
            let record = match store.run(&self.run.run).await {
                Ok(Some(record)) => record,
                Ok(None) => return Next::Over,
                Err(error) => return self.broken(&error),
            };
            match self.agents.engine().events(&self.run.thread, self.after, PAGE_EVENTS).await {
                Ok(events) => self.page = events.into(),
                Err(failure) => return self.broken(&failure),
            }
            if !self.page.is_empty() {
                continue;
            }
            if record.status != RunStatus::Running {
                return self.over().await;
            }
            tokio::select! {
                changed = self.news.changed() => if changed.is_err() { return Next::Over },
                _ = self.stopping.wait_for(|stopping| *stopping) => return Next::Broken,
                () = tokio::time::sleep(HEARTBEAT) => return Next::Silence,
            }
        }
    }

    /// The thread is free again before the stream ends.
    async fn over(&self) -> Next {
        let _ = self.agents.engine().wait(&self.run).await;
        Next::Over
    }

    fn broken(&self, error: &dyn std::fmt::Display) -> Next {
        tracing::warn!(thread = %self.run.thread, %error, "the stream of a run ends");
        Next::Broken
    }
}
