//! A run as server-sent events.
//!
//! Each stream encodes the log from the first event of the run. For a client that reconnects, the
//! stream omits the server-sent events that the client has already received.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_project::agent_server::failure::error_of;
use wattle_project::agent_server::mode::Mode;
use wattle_project::agent_server::v1::{Context, Frame, HEARTBEAT, V1};
use wattle_project::projection::Projection as _;
use wattle_run::hostcall::runs::RunRef;
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::follow::{HEARTBEAT as SILENCE, Log, Next};
use crate::past::Past;
use crate::presence::Presence;
use crate::resolve::run::RequestedRun;
use crate::run::{StartOutcome, StoredRun, wait_for_start};
use crate::state::AgentServer;
use crate::view;

/// Options of the stream of a run.
pub(crate) struct Wish {
    /// Kinds of server-sent events to send.
    pub(crate) modes: BTreeSet<Mode>,
    /// Whether to include server-sent events of subgraphs.
    pub(crate) subgraphs: bool,
    /// Only server-sent events whose ids have a higher event number.
    pub(crate) after: u64,
}

/// Returns a response with the stream of a run.
pub(crate) fn answer(
    server: &AgentServer,
    thread: &ThreadRecord,
    run: StoredRun,
    wish: Wish,
    presence: Option<Presence>,
) -> Response {
    let frames = Frames::new(server, thread, run, wish, presence);
    let body = stream::unfold(frames, |mut frames| async move {
        let bytes = frames.next().await?;
        Some((Ok::<_, Infallible>(bytes), frames))
    });
    of_events(Body::from_stream(body))
}

/// Returns an empty stream.
pub(crate) fn nothing() -> Response {
    of_events(Body::empty())
}

/// Returns a response of server-sent events.
pub(crate) fn of_events(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // nginx buffers responses otherwise.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

/// Encodes the log events of one run as server-sent events.
pub(crate) struct Shower {
    v1: V1,
    past: Past,
}

impl Shower {
    pub(crate) fn new(
        server: &AgentServer,
        thread: &ThreadRecord,
        requested: &RequestedRun,
        modes: BTreeSet<Mode>,
        subgraphs: bool,
    ) -> Self {
        let context = Context {
            thread_info: view::run_thread_info(server, thread, requested),
            run: requested.run.clone(),
            graph_id: requested.client.graph_id.clone(),
            assistant_id: requested.client.assistant.clone(),
            metadata: requested.client.metadata.clone(),
        };
        let v1 = V1::new(modes, subgraphs, context);
        let past = Past::new(server, &thread.id, v1.needs_states());
        Self { v1, past }
    }

    /// Passes the record of the run, which has started.
    pub(crate) fn know(&mut self, run: RunRecord) {
        self.past.know(run);
    }

    /// Returns the server-sent events of a log event. The log events must be passed in order, from
    /// the first event of the run.
    pub(crate) async fn take(&mut self, event: &Event) -> Vec<Frame> {
        let need = self.v1.needs(event);
        let state = self.past.show(event, need.as_ref()).await;
        self.v1.apply(event, &state)
    }
}

struct Frames {
    server: AgentServer,
    run: RunRef,
    shower: Shower,
    after: u64,
    presence: Option<Presence>,
    ready: VecDeque<Bytes>,
    phase: Phase,
}

enum Phase {
    /// The run is pending.
    Waiting,
    /// The run has started, and its log is being read.
    Reading(Box<Log>),
    /// No server-sent event follows.
    Over,
}

impl Frames {
    fn new(
        server: &AgentServer,
        thread: &ThreadRecord,
        run: StoredRun,
        wish: Wish,
        presence: Option<Presence>,
    ) -> Self {
        let StoredRun { requested, record } = run;
        let mut frames = Self {
            server: server.clone(),
            run: requested.run_ref(),
            shower: Shower::new(server, thread, &requested, wish.modes, wish.subgraphs),
            after: wish.after,
            presence,
            ready: VecDeque::new(),
            phase: Phase::Waiting,
        };
        if record.has_started() {
            frames.read(record);
        }
        frames
    }

    /// Reads the log of the run, which has started.
    fn read(&mut self, record: RunRecord) {
        self.phase = Phase::Reading(Box::new(Log::new(&self.server, &record)));
        self.shower.know(record);
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            match &mut self.phase {
                Phase::Over => return self.end(),
                Phase::Waiting => {
                    let waited =
                        tokio::time::timeout(SILENCE, wait_for_start(&self.server, &self.run))
                            .await;
                    let Ok(outcome) = waited else { return Some(HEARTBEAT.into()) };
                    match outcome {
                        Ok(StartOutcome::Started(record)) => self.read(*record),
                        Ok(StartOutcome::Removed) => self.phase = Phase::Over,
                        // The run has not ended, so the client reconnects.
                        Ok(StartOutcome::ShuttingDown) => return self.end(),
                        Err(_) if *self.server.api().stopping.borrow() => return self.end(),
                        Ok(StartOutcome::Failed(failure)) | Err(failure) => {
                            self.ready.push_back(error(&failure));
                            self.phase = Phase::Over;
                        }
                    }
                }
                Phase::Reading(log) => match log.next().await {
                    Next::Event(event) => {
                        let frames = self.shower.take(&event).await;
                        let new = frames.iter().filter(|frame| frame.id.number > self.after);
                        self.ready.extend(new.map(Frame::to_bytes));
                    }
                    Next::Silence => return Some(HEARTBEAT.into()),
                    Next::Over => self.phase = Phase::Over,
                    // The run has not ended, so the client reconnects.
                    Next::Stopping => return self.end(),
                    Next::Unreadable(failure) => {
                        self.ready.push_back(error(&failure));
                        self.phase = Phase::Over;
                    }
                },
            }
        }
    }

    /// Ends the stream without a disconnect of its client.
    fn end(&mut self) -> Option<Bytes> {
        if let Some(presence) = &mut self.presence {
            presence.end();
        }
        None
    }
}

/// Returns the last server-sent event of a run that could not start, or of a log that cannot be
/// read. It has no id, because it belongs to no log event: a client that reconnects resumes after
/// the last server-sent event with an id.
pub(crate) fn error(failure: &Failure) -> Bytes {
    let data: Value = error_of(failure);
    format!("event: error\r\ndata: {data}\r\n\r\n").into()
}
