//! Reading the log of a whole thread, which may not be there yet.

use std::collections::VecDeque;

use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;
use wattle_run::call::runs::Runs as _;
use wattle_run::ports::store::{StoreError, ThreadHead, ThreadRecord};

use crate::agents::Agents;
use crate::follow::HEARTBEAT;

/// Events read from the log at a time.
const PAGE_EVENTS: usize = 128;

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// An event.
    Event,
    /// Another thread has the id now, whose log begins anew.
    Anew,
    /// Nothing for a while.
    Silence,
    /// Nothing more: the thread was deleted, or it is somebody else's.
    Gone,
    /// Nothing more from this host, which stops.
    Stopping,
    /// Nothing more, since the log cannot be read.
    Broken,
}

/// Reads the events of all runs of a thread.
pub(crate) struct ThreadLog {
    agents: Agents,
    tenant: Option<String>,
    thread: ThreadId,
    /// The thread as it was when it was looked at last, and its newest event.
    known: Option<(ThreadRecord, u64)>,
    after: u64,
    page: VecDeque<Event>,
    news: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
}

impl ThreadLog {
    /// Reads from the event on that comes after one.
    pub(crate) fn new(
        agents: &Agents,
        tenant: Option<String>,
        thread: &ThreadId,
        after: u64,
    ) -> Self {
        Self {
            news: agents.engine().watch(thread),
            stopping: agents.api().stopping.clone(),
            agents: agents.clone(),
            tenant,
            thread: thread.clone(),
            known: None,
            after,
            page: VecDeque::new(),
        }
    }

    /// The thread.
    pub(crate) fn id(&self) -> &ThreadId {
        &self.thread
    }

    /// The thread, if it was there when it was looked at last, and its newest event.
    pub(crate) fn thread(&self) -> Option<(&ThreadRecord, u64)> {
        self.known.as_ref().map(|(record, last_seq)| (record, *last_seq))
    }

    /// Reads from the first event on.
    pub(crate) fn rewind(&mut self) {
        self.after = 0;
        self.page.clear();
    }

    /// Takes the event that is ready.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let event = self.page.pop_front()?;
        self.after = event.seq;
        Some(event)
    }

    /// Waits for an event. Nothing is lost if that is given up.
    pub(crate) async fn ready(&mut self) -> Ready {
        loop {
            if !self.page.is_empty() {
                return Ready::Event;
            }
            if let Some(ready) = self.look(true).await {
                return ready;
            }
            if !self.page.is_empty() {
                continue;
            }
            if let Some(ready) = self.wait().await {
                return ready;
            }
        }
    }

    /// Waits for anything but events.
    pub(crate) async fn idle(&mut self) -> Ready {
        loop {
            if let Some(ready) = self.look(false).await {
                return ready;
            }
            if let Some(ready) = self.wait().await {
                return ready;
            }
        }
    }

    /// Looks at the thread, and reads on if that is wanted.
    async fn look(&mut self, reads: bool) -> Option<Ready> {
        // Before anything is read: whatever is written after that wakes the wait below.
        self.news.borrow_and_update();
        let head = match self.head().await {
            Ok(head) => head,
            Err(error) => return Some(self.broken(&error)),
        };
        let Some(head) = head else {
            return self.known.is_some().then_some(Ready::Gone);
        };
        if self.tenant.is_some() && head.record.tenant != self.tenant {
            return Some(Ready::Gone);
        }
        let before = self.known.replace((head.record, head.last_seq));
        let (record, _) = self.known.as_ref()?;
        if before.is_some_and(|(before, _)| before.born != record.born) {
            self.rewind();
            return Some(Ready::Anew);
        }
        if reads {
            match self.agents.engine().events(&self.thread, self.after, PAGE_EVENTS).await {
                Ok(events) => self.page = events.into(),
                Err(failure) => return Some(self.broken(&failure)),
            }
        }
        None
    }

    /// The thread as it stands. One that is gone may just be made anew, by who takes away its only
    /// run; whoever does that is waited for.
    async fn head(&self) -> Result<Option<ThreadHead>, StoreError> {
        let store = &self.agents.ports().store;
        match store.thread(&self.thread).await? {
            None if self.known.is_some() => {
                self.agents.queue().settle(&self.thread).await;
                store.thread(&self.thread).await
            }
            head => Ok(head),
        }
    }

    async fn wait(&mut self) -> Option<Ready> {
        tokio::select! {
            changed = self.news.changed() => {
                if changed.is_err() {
                    // The thread is gone, or it has never been there.
                    self.news = self.agents.engine().watch(&self.thread);
                }
                None
            }
            _ = self.stopping.wait_for(|stopping| *stopping) => Some(Ready::Stopping),
            () = tokio::time::sleep(HEARTBEAT) => Some(Ready::Silence),
        }
    }

    fn broken(&self, error: &dyn std::fmt::Display) -> Ready {
        tracing::warn!(thread = %self.thread, %error, "the stream of a thread ends");
        Ready::Broken
    }
}
