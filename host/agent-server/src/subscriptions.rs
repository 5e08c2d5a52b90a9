//! Subscriptions to the typed events of a thread.
//!
//! # Cost of a subscription
//!
//! The server stores nothing for a subscription. Each subscription numbers its events as if it
//! encoded the log from the first event of the thread, and skips the events that its client has
//! already received. An event therefore has the same number in all subscriptions.
//!
//! A completed run leaves no task, message or tool call open. If a client has received events up to
//! some event, the encoding therefore begins at the first event of the run of that event. If that
//! run continues earlier runs, the encoding begins at the first of these runs.
//!
//! A subscription reads the log once, with one page in memory at a time. If the subscription
//! encodes states, it also reads each checkpoint that is new to the client once. The memory of a
//! subscription grows only with incomplete messages and tool calls, the ids of messages, and the
//! state of each graph.
//!
//! The subscriptions of one connection share one reader of the log. A new subscription first
//! catches up with the other subscriptions, so that the event numbers on a connection increase for
//! each subscription.

mod delay;
mod start;
mod thread_tail;

use std::collections::BTreeMap;

use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;
use wattle_project::agent_server::thread_info::ThreadInfo;
use wattle_project::agent_server::v2::{StreamEvent, Subscription, V2};
use wattle_project::projection::{EventState, Projection as _};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{Store, StoreError, ThreadHead, ThreadRecord};

use crate::event_states::EventStates;
use crate::graphs;
use crate::view;

pub(crate) use self::delay::EventDelays;
use self::delay::{Connection, ReceivedChannels};
use self::start::replay_start;
pub(crate) use self::start::run_start;
pub(crate) use self::thread_tail::{ThreadTail, ThreadTailItem};

/// The subscriptions of one connection.
pub(crate) struct Subscriptions {
    engine: Engine,
    stopping: watch::Receiver<bool>,
    tail: ThreadTail,
    states: EventStates,
    active: Vec<ActiveSubscription>,
    connection: Connection,
}

/// A subscription of a client.
struct ActiveSubscription {
    id: String,
    subscription: Subscription,
    /// Number of the last event that the client has received.
    since: u64,
    /// The sequence number of the last event that was encoded for the subscription; `None` until
    /// [`Subscriptions::start_new`] has determined where the subscription begins.
    last_seq: Option<u64>,
    /// The encoder, and the record of the thread from which its render context was created.
    encoder: Option<(V2, ThreadRecord)>,
}

impl Subscriptions {
    /// Creates an empty set of subscriptions to a thread. The thread need not exist yet.
    pub(crate) fn new(
        engine: &Engine,
        stopping: &watch::Receiver<bool>,
        event_delays: &EventDelays,
        tenant: Option<String>,
        thread: &ThreadId,
    ) -> Self {
        Self {
            engine: engine.clone(),
            stopping: stopping.clone(),
            tail: ThreadTail::new(engine, stopping, tenant, thread, 0),
            states: EventStates::new(engine, thread, false),
            active: Vec::new(),
            connection: event_delays.connect(thread),
        }
    }

    /// Adds a subscription to the events of the thread with numbers above `since`.
    pub(crate) fn subscribe(&mut self, id: String, subscription: Subscription, since: u64) {
        self.active.push(ActiveSubscription {
            id,
            subscription,
            since,
            last_seq: None,
            encoder: None,
        });
        self.connection.set_channels(self.received_channels(), 0, true);
    }

    /// Restarts a subscription with the events above `since`. Returns whether the subscription
    /// exists.
    pub(crate) fn replay(&mut self, id: &str, since: u64) -> bool {
        let found = self.active.iter().position(|active| active.id == id);
        let Some(index) = found else { return false };
        let ActiveSubscription { id, subscription, .. } = self.active.remove(index);
        self.subscribe(id, subscription, since);
        true
    }

    /// Removes a subscription. Returns whether it existed.
    pub(crate) fn unsubscribe(&mut self, id: &str) -> bool {
        let before = self.active.len();
        self.active.retain(|active| active.id != id);
        self.connection.set_channels(self.received_channels(), self.tail.position(), false);
        self.active.len() < before
    }

    /// Returns the ids of all subscriptions.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.active.iter().map(|active| active.id.clone()).collect()
    }

    /// Waits for an event to send. Before the call, the caller must send all results of earlier
    /// calls of [`Self::next_events`] to the client. This method is cancel safe.
    pub(crate) async fn next(&mut self) -> ThreadTailItem {
        if self.active.is_empty() {
            // Without a subscription no event is sent, but a deletion of the thread is reported.
            return self.tail.wait_without_events().await;
        }
        if let Err(error) = self.start_new().await {
            return self.tail.read_failed(error.into());
        }
        self.connection.mark_sent(self.tail.position());
        let item = self.tail.next().await;
        match item {
            ThreadTailItem::Event => return self.wait_until_due().await,
            ThreadTailItem::Replaced => {
                for active in &mut self.active {
                    (active.last_seq, active.since, active.encoder) = (Some(0), 0, None);
                }
                self.seek(0);
            }
            _ => {}
        }
        item
    }

    /// Waits until the connection may send the next event to the client.
    async fn wait_until_due(&mut self) -> ThreadTailItem {
        let Some(event) = self.tail.peek() else { return ThreadTailItem::Event };
        let now_ms = self.engine.ports().clock.now_ms();
        let mut stopping = self.stopping.clone();
        tokio::select! {
            biased;
            () = self.connection.wait_until_due(&event, now_ms) => ThreadTailItem::Event,
            _ = stopping.wait_for(|stopping| *stopping) => ThreadTailItem::ShuttingDown,
        }
    }

    /// Returns the part of the thread's events that the client receives.
    fn received_channels(&self) -> ReceivedChannels {
        let any = |wanted: fn(&Subscription) -> bool| {
            self.active.iter().any(|active| wanted(&active.subscription))
        };
        if any(Subscription::is_whole) {
            ReceivedChannels::All
        } else if any(Subscription::has_content) {
            ReceivedChannels::Content
        } else {
            ReceivedChannels::Lifecycle
        }
    }

    /// Takes the next event. Returns its typed events for all subscriptions, without duplicates.
    pub(crate) async fn next_events(&mut self) -> Vec<StreamEvent> {
        let Some(event) = self.tail.pop() else { return Vec::new() };
        let Some(ThreadHead { record, last_seq, .. }) = self.tail.head() else { return Vec::new() };
        let mut need = None;
        for active in self.active.iter_mut().filter(|it| it.is_behind(&event)) {
            let encoder = active.encoder(&self.engine, record, *last_seq);
            need = need.or(encoder.needs(&event));
        }
        if self.active.iter().any(ActiveSubscription::needs_states) {
            self.states.require();
        }
        let state = self.states.state_for(&event, need.as_ref()).await;
        let mut events = BTreeMap::new();
        for active in &mut self.active {
            let encoded = active.encode(&event, &state);
            events.extend(encoded.into_iter().map(|event| (event.seq, event)));
        }
        events.into_values().collect()
    }

    /// Determines where new subscriptions begin, and moves the reader back if necessary. This
    /// method is cancel safe.
    async fn start_new(&mut self) -> Result<(), StoreError> {
        while let Some(index) = self.active.iter().position(|it| it.last_seq.is_none()) {
            let (store, thread) = (self.engine.ports().store.clone(), self.tail.id().clone());
            let since = self.active[index].since;
            let before = start_after(store.as_ref(), &thread, since).await?;
            let is_first = self.active.iter().all(|it| it.last_seq.is_none());
            self.active[index].last_seq = Some(before);
            if is_first || before < self.tail.position() {
                self.seek(before);
            }
        }
        Ok(())
    }

    /// Continues with the event after the sequence number `after`, which must be the first event of
    /// a run or an edit.
    fn seek(&mut self, after: u64) {
        self.tail.seek(after);
        self.states = EventStates::new(&self.engine, self.tail.id(), false);
    }
}

impl ActiveSubscription {
    fn needs_states(&self) -> bool {
        self.encoder.as_ref().is_some_and(|(encoder, _)| encoder.shows_state())
    }

    /// Returns the encoder. The first event creates the encoder, because the encoder depends on the
    /// record of the thread. A changed record updates the encoder.
    fn encoder(&mut self, engine: &Engine, record: &ThreadRecord, last_seq: u64) -> &V2 {
        let is_new = |(_, seen): &(V2, ThreadRecord)| seen.version != record.version;
        if self.encoder.as_ref().is_none_or(is_new) {
            let (thread_info, graph) = render_context(engine, record);
            let encoder = match self.encoder.take() {
                Some((mut encoder, _)) => {
                    encoder.set_thread(thread_info);
                    encoder
                }
                None => {
                    // A number above the number of the last event is from a deleted thread with the
                    // same id.
                    let is_current = self.since <= EventId::end_of(last_seq);
                    let since = if is_current { self.since } else { 0 };
                    V2::new(self.subscription.clone(), thread_info, graph).after(since)
                }
            };
            self.encoder = Some((encoder, record.clone()));
        }
        let (encoder, _) = self.encoder.as_ref().expect("the encoder was created above");
        encoder
    }

    /// Returns whether an event was not yet encoded for the subscription.
    fn is_behind(&self, event: &Event) -> bool {
        self.last_seq.is_some_and(|at| at < event.seq)
    }

    fn encode(&mut self, event: &Event, state: &EventState) -> Vec<StreamEvent> {
        if !self.is_behind(event) {
            return Vec::new();
        }
        self.last_seq = Some(event.seq);
        let Some((encoder, _)) = &mut self.encoder else { return Vec::new() };
        encoder.apply(event, state)
    }
}

/// Returns the sequence number after which the log is encoded for a client that has received the
/// events up to the number `since`.
async fn start_after(store: &dyn Store, thread: &ThreadId, since: u64) -> Result<u64, StoreError> {
    if since == 0 {
        return Ok(0);
    }
    let head = store.thread(thread).await?;
    // A number above the number of the last event is from a deleted thread with the same id.
    if head.is_none_or(|head| since > EventId::end_of(head.last_seq)) {
        return Ok(0);
    }
    Ok(replay_start(store, thread, EventId::seq_of(since)).await?.saturating_sub(1))
}

/// Returns the render context of a thread and the name of its graph.
fn render_context(engine: &Engine, record: &ThreadRecord) -> (ThreadInfo, String) {
    let graph = graphs::graph_id(engine.catalog(), &record.app, &record.graph);
    (view::thread_info(engine, record), graph)
}
