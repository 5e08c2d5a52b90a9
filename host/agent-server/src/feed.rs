//! The typed events of a thread for those who subscribe to them.
//!
//! # What a subscription costs
//!
//! Nothing is kept for subscribers. Each begins with the thread's first event, and what it knows
//! already is folded once more and left out, so the events of all have the same numbers. That is
//! one reading of the log, in pages of which one is in memory at a time, and for subscribers that
//! see states one reading of each checkpoint that is new to them. Work and bytes read grow with the
//! length of the thread; memory grows only with what is open in it: messages and tools that have
//! not ended, ids of messages, and the state of each graph that has not ended. A thread whose past
//! was pruned is shorter. Subscribers of one connection share one reading. A later subscriber
//! is brought to where the others are before anything new is sent, so that the numbers that a
//! connection sends grow for each of them.

mod hold;
mod log;

use std::collections::BTreeMap;

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;
use wattle_project::agent_server::lens::Lens;
use wattle_project::agent_server::v2::{Sent, Subscription, V2};
use wattle_run::ports::store::{ThreadHead, ThreadRecord};

use crate::agents::Agents;
use crate::graphs;
use crate::past::Past;
use crate::view;

pub(crate) use self::hold::Holds;
use self::hold::{Connection, Scope};
pub(crate) use self::log::{Ready, ThreadLog};

/// The subscribers of one connection.
pub(crate) struct Feed {
    agents: Agents,
    log: ThreadLog,
    past: Past,
    subscribers: Vec<Subscriber>,
    connection: Connection,
}

/// Somebody who wants some of the events.
struct Subscriber {
    id: String,
    subscription: Subscription,
    /// What it knows has no higher number.
    since: u64,
    /// The last event of the log from which it got what it wants.
    at: u64,
    /// What was folded so far, and by the code of which version it is shown.
    fold: Option<(V2, ThreadRecord)>,
}

impl Feed {
    /// Of a thread that is there or may come.
    pub(crate) fn new(agents: &Agents, tenant: Option<String>, thread: &ThreadId) -> Self {
        Self {
            agents: agents.clone(),
            log: ThreadLog::new(agents, tenant, thread, 0),
            past: Past::new(agents, thread, false),
            subscribers: Vec::new(),
            connection: agents.holds().connect(thread),
        }
    }

    /// Adds a subscriber. It gets everything from the thread's beginning on except what it knows.
    pub(crate) fn subscribe(&mut self, id: String, subscription: Subscription, since: u64) {
        self.subscribers.push(Subscriber { id, subscription, since, at: 0, fold: None });
        self.begin_anew();
        self.connection.see(self.scope(), 0, true);
    }

    /// Tells a subscriber everything again from its beginning on but what it knows. Answers whether
    /// there is such a one.
    pub(crate) fn repeat(&mut self, id: &str, since: u64) -> bool {
        let found = self.subscribers.iter().position(|subscriber| subscriber.id == id);
        let Some(place) = found else { return false };
        let Subscriber { id, subscription, .. } = self.subscribers.remove(place);
        self.subscribe(id, subscription, since);
        true
    }

    /// Takes a subscriber away. Answers whether there was such a one.
    pub(crate) fn unsubscribe(&mut self, id: &str) -> bool {
        let before = self.subscribers.len();
        self.subscribers.retain(|subscriber| subscriber.id != id);
        self.connection.see(self.scope(), self.log.position(), false);
        self.subscribers.len() < before
    }

    /// The ids of all.
    pub(crate) fn subscribers(&self) -> Vec<String> {
        self.subscribers.iter().map(|subscriber| subscriber.id.clone()).collect()
    }

    /// Waits for something to tell, once the client was handed everything that was taken before.
    /// Nothing is lost if that is given up.
    pub(crate) async fn ready(&mut self) -> Ready {
        if self.subscribers.is_empty() {
            // There is no subscriber to send to; the thread may still end.
            return self.log.idle().await;
        }
        self.connection.handed(self.log.position());
        let ready = self.log.ready().await;
        match ready {
            Ready::Event => return self.hold().await,
            Ready::Anew => {
                for subscriber in &mut self.subscribers {
                    (subscriber.at, subscriber.since, subscriber.fold) = (0, 0, None);
                }
                self.begin_anew();
            }
            _ => {}
        }
        ready
    }

    /// Waits until the client may be handed the next event.
    async fn hold(&mut self) -> Ready {
        let Some(event) = self.log.next() else { return Ready::Event };
        let now_ms = self.agents.now_ms();
        let mut stopping = self.agents.api().stopping.clone();
        tokio::select! {
            biased;
            () = self.connection.may_have(&event, now_ms) => Ready::Event,
            _ = stopping.wait_for(|stopping| *stopping) => Ready::Stopping,
        }
    }

    /// What the client sees of the thread.
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

    /// What subscribers get of the next event, each thing once.
    pub(crate) async fn take(&mut self) -> Vec<Sent> {
        let Some(event) = self.log.pop() else { return Vec::new() };
        let Some(ThreadHead { record, last_seq, .. }) = self.log.head() else { return Vec::new() };
        let mut need = None;
        for subscriber in self.subscribers.iter_mut().filter(|it| it.at < event.seq) {
            let fold = subscriber.fold(&self.agents, record, *last_seq);
            need = need.or(fold.needs(&event));
        }
        if self.subscribers.iter().any(Subscriber::shows_state) {
            self.past.ask();
        }
        let shown = self.past.show(&event, need.as_ref()).await;
        let mut told = BTreeMap::new();
        for subscriber in &mut self.subscribers {
            let sent = subscriber.take(&event, shown.checkpoint.as_ref());
            told.extend(sent.into_iter().map(|sent| (sent.seq, sent)));
        }
        told.into_values().collect()
    }

    /// Reads from the beginning on, for the subscribers that have got the least.
    fn begin_anew(&mut self) {
        self.log.rewind();
        self.past = Past::new(&self.agents, self.log.id(), false);
    }
}

impl Subscriber {
    fn shows_state(&self) -> bool {
        self.fold.as_ref().is_some_and(|(fold, _)| fold.shows_state())
    }

    /// What was folded so far; made as soon as it is known what the thread is.
    fn fold(&mut self, agents: &Agents, record: &ThreadRecord, last_seq: u64) -> &V2 {
        let is_new = |(_, seen): &(V2, ThreadRecord)| seen.version != record.version;
        if self.fold.as_ref().is_none_or(is_new) {
            let (lens, graph) = shown(agents, record);
            let fold = match self.fold.take() {
                Some((mut fold, _)) => {
                    fold.look(lens);
                    fold
                }
                None => {
                    // Beyond the end is what a thread had that was deleted since.
                    let is_of_it = self.since <= EventId::end_of(last_seq);
                    let since = if is_of_it { self.since } else { 0 };
                    V2::new(self.subscription.clone(), lens, graph).after(since)
                }
            };
            self.fold = Some((fold, record.clone()));
        }
        let (fold, _) = self.fold.as_ref().expect("it was made if there was none");
        fold
    }

    fn take(&mut self, event: &Event, checkpoint: Option<&Checkpoint>) -> Vec<Sent> {
        if event.seq <= self.at {
            return Vec::new();
        }
        self.at = event.seq;
        let Some((fold, _)) = &mut self.fold else { return Vec::new() };
        fold.take(event, checkpoint)
    }
}

/// How a thread is shown, and the name of its graph.
fn shown(agents: &Agents, record: &ThreadRecord) -> (Lens, String) {
    let graph = graphs::id_of(agents.engine().catalog(), &record.app, &record.graph);
    (view::lens(agents, record), graph)
}
