//! Subscriptions to the typed events of a thread.
//!
//! # Cost of a subscription
//!
//! The server stores nothing for a subscription. Each subscription encodes the log as if from the
//! first event of the thread, and skips the events that its client already has. An event therefore
//! has the same number in all subscriptions. A run that has completed leaves nothing open, so a
//! subscription after some event begins with the run of that event, or with the first of the runs
//! that it continues. A subscription reads the log once, with one page in memory at a time. With
//! states, it also reads each checkpoint that is new to the client once. The memory grows only with
//! what is not complete: messages and tool calls, ids of messages, and the state of each graph. The
//! subscriptions of one connection share one reader. A later subscription first catches up with the
//! others, so that the event numbers on a connection increase for each subscription.

mod hold;
mod log;
mod start;

use std::collections::BTreeMap;

use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;
use wattle_project::agent_server::thread_info::ThreadInfo;
use wattle_project::agent_server::v2::{StreamEvent, Subscription, V2};
use wattle_project::projection::{EventState, Projection as _};
use wattle_run::ports::store::{Store, StoreError, ThreadHead, ThreadRecord};

use crate::graphs;
use crate::past::Past;
use crate::state::AgentServer;
use crate::view;

pub(crate) use self::hold::Holds;
use self::hold::{Connection, Scope};
pub(crate) use self::log::{Ready, ThreadLog};
use self::start::feed_start;
pub(crate) use self::start::run_start;

/// The subscriptions of one connection.
pub(crate) struct Feed {
    server: AgentServer,
    log: ThreadLog,
    past: Past,
    subscribers: Vec<Subscriber>,
    connection: Connection,
}

/// A subscription of a client.
struct Subscriber {
    id: String,
    subscription: Subscription,
    /// Number of the last event that the client has.
    since: u64,
    /// The sequence number of the last event that was encoded for the subscription; `None` before
    /// it is known where the subscription begins.
    at: Option<u64>,
    /// The encoder, and the record of the thread from which its render context was created.
    fold: Option<(V2, ThreadRecord)>,
}

impl Feed {
    /// Creates an empty set of subscriptions to a thread. The thread need not exist yet.
    pub(crate) fn new(server: &AgentServer, tenant: Option<String>, thread: &ThreadId) -> Self {
        Self {
            server: server.clone(),
            log: ThreadLog::new(server, tenant, thread, 0),
            past: Past::new(server, thread, false),
            subscribers: Vec::new(),
            connection: server.holds().connect(thread),
        }
    }

    /// Adds a subscription to the events of the thread with numbers above `since`.
    pub(crate) fn subscribe(&mut self, id: String, subscription: Subscription, since: u64) {
        self.subscribers.push(Subscriber { id, subscription, since, at: None, fold: None });
        self.connection.see(self.scope(), 0, true);
    }

    /// Restarts a subscription with the events above `since`. Returns whether the subscription
    /// exists.
    pub(crate) fn repeat(&mut self, id: &str, since: u64) -> bool {
        let found = self.subscribers.iter().position(|subscriber| subscriber.id == id);
        let Some(place) = found else { return false };
        let Subscriber { id, subscription, .. } = self.subscribers.remove(place);
        self.subscribe(id, subscription, since);
        true
    }

    /// Removes a subscription. Returns whether it existed.
    pub(crate) fn unsubscribe(&mut self, id: &str) -> bool {
        let before = self.subscribers.len();
        self.subscribers.retain(|subscriber| subscriber.id != id);
        self.connection.see(self.scope(), self.log.position(), false);
        self.subscribers.len() < before
    }

    /// Returns the ids of all subscriptions.
    pub(crate) fn subscribers(&self) -> Vec<String> {
        self.subscribers.iter().map(|subscriber| subscriber.id.clone()).collect()
    }

    /// Waits for an event to send. The client must have been sent all results of earlier calls of
    /// [`Self::take`]. This method is cancel safe.
    pub(crate) async fn ready(&mut self) -> Ready {
        if self.subscribers.is_empty() {
            // Without a subscription no event is sent, but a deletion of the thread is reported.
            return self.log.idle().await;
        }
        if let Err(error) = self.begin().await {
            return self.log.unreadable(error.into());
        }
        self.connection.handed(self.log.position());
        let ready = self.log.ready().await;
        match ready {
            Ready::Event => return self.hold().await,
            Ready::Anew => {
                for subscriber in &mut self.subscribers {
                    (subscriber.at, subscriber.since, subscriber.fold) = (Some(0), 0, None);
                }
                self.seek(0);
            }
            _ => {}
        }
        ready
    }

    /// Waits until the connection may send the next event to the client.
    async fn hold(&mut self) -> Ready {
        let Some(event) = self.log.next() else { return Ready::Event };
        let now_ms = self.server.now_ms();
        let mut stopping = self.server.api().stopping.clone();
        tokio::select! {
            biased;
            () = self.connection.may_have(&event, now_ms) => Ready::Event,
            _ = stopping.wait_for(|stopping| *stopping) => Ready::Stopping,
        }
    }

    /// Returns the part of the thread's events that the client receives.
    fn scope(&self) -> Scope {
        let of = |wanted: fn(&Subscription) -> bool| {
            self.subscribers.iter().any(|subscriber| wanted(&subscriber.subscription))
        };
        if of(Subscription::is_whole) {
            Scope::All
        } else if of(Subscription::has_content) {
            Scope::Content
        } else {
            Scope::Lifecycle
        }
    }

    /// Takes the next event, and returns the typed events for all subscriptions, each of them once.
    pub(crate) async fn take(&mut self) -> Vec<StreamEvent> {
        let Some(event) = self.log.pop() else { return Vec::new() };
        let Some(ThreadHead { record, last_seq, .. }) = self.log.head() else { return Vec::new() };
        let mut need = None;
        for subscriber in self.subscribers.iter_mut().filter(|it| it.is_behind(&event)) {
            let fold = subscriber.fold(&self.server, record, *last_seq);
            need = need.or(fold.needs(&event));
        }
        if self.subscribers.iter().any(Subscriber::shows_state) {
            self.past.ask();
        }
        let state = self.past.show(&event, need.as_ref()).await;
        let mut told = BTreeMap::new();
        for subscriber in &mut self.subscribers {
            let sent = subscriber.take(&event, &state);
            told.extend(sent.into_iter().map(|sent| (sent.seq, sent)));
        }
        told.into_values().collect()
    }

    /// Moves the reader back to where new subscriptions begin. This method is cancel safe.
    async fn begin(&mut self) -> Result<(), StoreError> {
        while let Some(place) = self.subscribers.iter().position(|it| it.at.is_none()) {
            let (store, thread) = (self.server.ports().store.clone(), self.log.id().clone());
            let since = self.subscribers[place].since;
            let before = start_after(store.as_ref(), &thread, since).await?;
            let is_first = self.subscribers.iter().all(|it| it.at.is_none());
            self.subscribers[place].at = Some(before);
            if is_first || before < self.log.position() {
                self.seek(before);
            }
        }
        Ok(())
    }

    /// Continues with the event after a sequence number, which is the first one of a run.
    fn seek(&mut self, after: u64) {
        self.log.seek(after);
        self.past = Past::new(&self.server, self.log.id(), false);
    }
}

impl Subscriber {
    fn shows_state(&self) -> bool {
        self.fold.as_ref().is_some_and(|(fold, _)| fold.shows_state())
    }

    /// Returns the encoder. The first event creates it, because it depends on the thread.
    fn fold(&mut self, server: &AgentServer, record: &ThreadRecord, last_seq: u64) -> &V2 {
        let is_new = |(_, seen): &(V2, ThreadRecord)| seen.version != record.version;
        if self.fold.as_ref().is_none_or(is_new) {
            let (thread_info, graph) = shown(server, record);
            let fold = match self.fold.take() {
                Some((mut fold, _)) => {
                    fold.set_thread(thread_info);
                    fold
                }
                None => {
                    // A number above the last event comes from a deleted thread with the same id.
                    let is_of_it = self.since <= EventId::end_of(last_seq);
                    let since = if is_of_it { self.since } else { 0 };
                    V2::new(self.subscription.clone(), thread_info, graph).after(since)
                }
            };
            self.fold = Some((fold, record.clone()));
        }
        let (fold, _) = self.fold.as_ref().expect("it was made if there was none");
        fold
    }

    /// Returns whether an event was not yet encoded for the subscription.
    fn is_behind(&self, event: &Event) -> bool {
        self.at.is_some_and(|at| at < event.seq)
    }

    fn take(&mut self, event: &Event, state: &EventState) -> Vec<StreamEvent> {
        if !self.is_behind(event) {
            return Vec::new();
        }
        self.at = Some(event.seq);
        let Some((fold, _)) = &mut self.fold else { return Vec::new() };
        fold.apply(event, state)
    }
}

/// Returns the sequence number after which the log is encoded for a client that has the events up
/// to the number `since`.
async fn start_after(store: &dyn Store, thread: &ThreadId, since: u64) -> Result<u64, StoreError> {
    if since == 0 {
        return Ok(0);
    }
    let head = store.thread(thread).await?;
    // A number above the last event comes from a deleted thread with the same id.
    if head.is_none_or(|head| since > EventId::end_of(head.last_seq)) {
        return Ok(0);
    }
    Ok(feed_start(store, thread, EventId::seq_of(since)).await?.saturating_sub(1))
}

/// Returns the render context of a thread and the name of its graph.
fn shown(server: &AgentServer, record: &ThreadRecord) -> (ThreadInfo, String) {
    let graph = graphs::graph_id(server.engine().catalog(), &record.app, &record.graph);
    (view::thread_info(server, record), graph)
}
