//! A run as server-sent events.
//!
//! The frames are made from the log, each time anew from the first event of the run; a client that
//! comes back is not sent those that it names as known.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::agents::Agents;
use crate::doc::run::RunDoc;
use crate::follow::{HEARTBEAT as SILENCE, Log, Next};
use crate::presence::Presence;
use crate::run::{Turn, turn};
use crate::view;
use crate::wire::request::Mode;
use crate::wire::shape::error_of;
use crate::wire::v1::{Context, Frame, HEARTBEAT, Need, V1};

mod past;

/// What a client wants to see.
pub(crate) struct Wish {
    /// Which kinds of frames.
    pub(crate) modes: BTreeSet<Mode>,
    /// Whether of nested graphs too.
    pub(crate) subgraphs: bool,
    /// Only frames whose ids have a higher number.
    pub(crate) after: u64,
}

/// Answers with the stream of a run.
pub(crate) fn answer(
    agents: &Agents,
    thread: &ThreadRecord,
    doc: RunDoc,
    wish: Wish,
    presence: Option<Presence>,
) -> Response {
    let frames = Frames::new(agents, thread, doc, wish, presence);
    let body = stream::unfold(frames, |mut frames| async move {
        let bytes = frames.next().await?;
        Some((Ok::<_, Infallible>(bytes), frames))
    });
    of_events(Body::from_stream(body))
}

/// A stream in which nothing comes.
pub(crate) fn nothing() -> Response {
    of_events(Body::empty())
}

fn of_events(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // nginx collects answers otherwise.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

struct Frames {
    agents: Agents,
    doc: RunDoc,
    v1: V1,
    after: u64,
    presence: Option<Presence>,
    ready: VecDeque<Bytes>,
    phase: Phase,
}

enum Phase {
    /// For its turn.
    Waiting,
    /// The log is read.
    Reading(Box<(RunRecord, Log)>),
    /// Nothing more comes.
    Over,
}

impl Frames {
    fn new(
        agents: &Agents,
        thread: &ThreadRecord,
        doc: RunDoc,
        wish: Wish,
        presence: Option<Presence>,
    ) -> Self {
        let context = Context {
            lens: view::run_lens(agents, thread, &doc),
            run: doc.run.clone(),
            graph_id: doc.graph_id.clone(),
            assistant_id: doc.assistant.clone(),
            metadata: doc.metadata.clone(),
        };
        Self {
            agents: agents.clone(),
            doc,
            v1: V1::new(wish.modes, wish.subgraphs, context),
            after: wish.after,
            presence,
            ready: VecDeque::new(),
            phase: Phase::Waiting,
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            match &mut self.phase {
                Phase::Over => {
                    if let Some(presence) = &mut self.presence {
                        presence.end();
                    }
                    return None;
                }
                Phase::Waiting => {
                    let waited = tokio::time::timeout(SILENCE, turn(&self.agents, &self.doc)).await;
                    let Ok(turn) = waited else { return Some(HEARTBEAT.into()) };
                    self.phase = match turn {
                        Ok(Turn::Begun(record)) => {
                            let log = Log::new(&self.agents, &record);
                            Phase::Reading(Box::new((*record, log)))
                        }
                        Ok(Turn::Failed(failure)) => {
                            self.ready.push_back(error(&failure));
                            Phase::Over
                        }
                        Ok(Turn::Gone) => Phase::Over,
                        // The client comes back: the run is not over.
                        Ok(Turn::Stopping) | Err(_) => return None,
                    };
                }
                Phase::Reading(reading) => match reading.1.next().await {
                    Next::Event(event) => self.take(&event).await,
                    Next::Silence => return Some(HEARTBEAT.into()),
                    Next::Over => self.phase = Phase::Over,
                    Next::Broken => return None,
                },
            }
        }
    }

    async fn take(&mut self, event: &Event) {
        let checkpoint = match self.v1.needs(event) {
            Some(need) => self.read(event, &need).await,
            None => None,
        };
        let frames = self.v1.take(event, checkpoint.as_ref());
        let new = frames.iter().filter(|frame| frame.id.number > self.after);
        self.ready.extend(new.map(Frame::to_bytes));
    }

    async fn read(&self, event: &Event, need: &Need) -> Option<Checkpoint> {
        let Phase::Reading(reading) = &self.phase else { return None };
        let found = match need {
            Need::Start => past::start(&self.agents, &reading.0, event).await,
            Need::Checkpoint(namespace, id) => {
                let store = &self.agents.ports().store;
                let found = store.checkpoint(&self.doc.thread, namespace, Some(*id)).await;
                found.map(|tuple| tuple.map(|tuple| tuple.checkpoint))
            }
        };
        found.unwrap_or_else(|error| {
            tracing::warn!(thread = %self.doc.thread, %error, "a stream goes without a state");
            None
        })
    }
}

/// A run that could not begin has no events, so this frame has no id.
fn error(failure: &Failure) -> Bytes {
    let data: Value = error_of(failure);
    format!("event: error\r\ndata: {data}\r\n\r\n").into()
}
