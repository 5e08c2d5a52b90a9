//! All runs of a thread as one stream of server-sent events, which stays open.
//!
//! The stream begins after the event number that the client names, or with the next event. It has
//! the server-sent events of the streams of the runs. The encoder therefore reads the run of the
//! first one from the run's first log event.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, Namespace, RunId};
use wattle_project::agent_server::id::EventId;
use wattle_project::agent_server::mode::Mode;
use wattle_project::agent_server::v1::{Frame, HEARTBEAT};
use wattle_run::ports::store::{StoreError, ThreadHead, ThreadRecord};

use crate::error::ApiError;
use crate::feed::{Ready, ThreadLog, run_start};
use crate::resolve::run::RequestedRun;
use crate::run::StoredRun;
use crate::state::AgentServer;
use crate::stream::{Shower, error, of_events};
use crate::view;
use crate::wire::request::Modes;

/// Name of the server-sent events at the start and the end of a run.
const METADATA: &str = "metadata";

/// Name of the server-sent events with a state that a client changed.
const STATE_UPDATE: &str = "state_update";

/// The stream modes of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    /// The server-sent events of each run's stream.
    pub(crate) runs: bool,
    /// The starts and ends of runs.
    pub(crate) lifecycle: bool,
    /// Changes of the state by clients.
    pub(crate) updates: bool,
}

impl Parts {
    /// Parses the names of modes; `run_modes` by default.
    ///
    /// # Errors
    ///
    /// 422 for an unknown name.
    pub(crate) fn read(names: &[String]) -> Result<Self, ApiError> {
        let mut parts = Self { runs: names.is_empty(), ..Self::default() };
        for name in names {
            match name.as_str() {
                "run_modes" => parts.runs = true,
                "lifecycle" => parts.lifecycle = true,
                STATE_UPDATE => parts.updates = true,
                other => {
                    let text = format!(
                        "`{other}` is not a stream mode of a thread; use one of run_modes, \
                         lifecycle, state_update"
                    );
                    return Err(ApiError::unprocessable(text));
                }
            }
        }
        Ok(parts)
    }

    fn wants(self, frame: &Frame) -> bool {
        match frame.event.as_str() {
            METADATA => self.runs || self.lifecycle,
            STATE_UPDATE => self.updates,
            _ => self.runs,
        }
    }
}

/// Returns a response with the stream of a thread, after an event number or from now on.
///
/// # Errors
///
/// Those of the store.
pub(crate) async fn answer(
    server: &AgentServer,
    thread: &ThreadRecord,
    parts: Parts,
    after: Option<u64>,
) -> Result<Response, ApiError> {
    let joined = Joined::new(server, thread, parts, after).await?;
    let body = stream::unfold(joined, |mut joined| async move {
        let bytes = joined.next().await?;
        Some((Ok::<_, Infallible>(bytes), joined))
    });
    Ok(of_events(Body::from_stream(body)))
}

struct Joined {
    server: AgentServer,
    parts: Parts,
    log: ThreadLog,
    after: u64,
    /// Whether the log is read from where the stream begins.
    has_begun: bool,
    /// The run of the current event with its encoder. The encoder is `None` for an event of an
    /// edit, which belongs to no run.
    run: Option<(RunId, Option<Shower>)>,
    ready: VecDeque<Bytes>,
    is_over: bool,
}

impl Joined {
    async fn new(
        server: &AgentServer,
        thread: &ThreadRecord,
        parts: Parts,
        after: Option<u64>,
    ) -> Result<Self, ApiError> {
        let store = &server.ports().store;
        let head = store.thread(&thread.id).await?;
        let last_seq = head.map_or(0, |head| head.last_seq);
        let end = EventId::end_of(last_seq);
        // A number above the last event comes from a deleted thread with the same id.
        let after = after.map_or(end, |after| if after <= end { after } else { 0 });
        Ok(Self {
            server: server.clone(),
            parts,
            log: ThreadLog::new(server, thread.tenant.clone(), &thread.id, 0),
            after,
            has_begun: after == 0,
            run: None,
            ready: VecDeque::new(),
            is_over: false,
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.is_over {
                return None;
            }
            if !self.has_begun
                && let Err(error) = self.begin().await
            {
                self.break_off(&error.into());
                continue;
            }
            match self.log.ready().await {
                Ready::Event => {
                    if let Err(error) = self.take().await {
                        // The server-sent events of this log event are omitted. A client that
                        // reconnects receives them.
                        let thread = self.log.id();
                        tracing::warn!(%thread, error = error.detail(), "thread stream aborted");
                        self.break_off(&Failure::internal(error.detail()));
                    }
                }
                Ready::Anew => (self.after, self.run) = (0, None),
                Ready::Silence => return Some(HEARTBEAT.into()),
                Ready::Gone | Ready::Stopping => return None,
                Ready::Unreadable(failure) => self.break_off(&failure),
            }
        }
    }

    /// Finds the first event of the run that the client was reading.
    async fn begin(&mut self) -> Result<(), StoreError> {
        let (store, thread) = (self.server.ports().store.clone(), self.log.id().clone());
        let first = run_start(store.as_ref(), &thread, EventId::seq_of(self.after)).await?;
        self.log.seek(first.saturating_sub(1));
        self.has_begun = true;
        Ok(())
    }

    /// Sends the event `error` and ends the stream.
    fn break_off(&mut self, failure: &Failure) {
        self.ready.push_back(error(failure));
        self.is_over = true;
    }

    async fn take(&mut self) -> Result<(), ApiError> {
        let Some(event) = self.log.pop() else { return Ok(()) };
        let Some(ThreadHead { record, .. }) = self.log.head() else { return Ok(()) };
        if self.run.as_ref().is_none_or(|(run, _)| *run != event.run) {
            let shower = shower(&self.server, record, &event.run, self.parts).await?;
            self.run = Some((event.run.clone(), shower));
        }
        let mut frames = match &mut self.run {
            Some((_, Some(shower))) => shower.take(&event).await,
            _ => Vec::new(),
        };
        let id = EventId::new(&event, frames.len());
        let own = own(&self.server, record, &event, self.parts).await;
        frames.extend(own.map(|(name, data)| Frame { event: name.to_owned(), data, id }));
        let is_new = |frame: &&Frame| frame.id.number > self.after && self.parts.wants(frame);
        self.ready.extend(frames.iter().filter(is_new).map(Frame::to_bytes));
        Ok(())
    }
}

/// Creates the encoder of a run; `None` for events of no run.
///
/// # Errors
///
/// Those of the store. They end the stream, because skipping the run would lose its server-sent
/// events.
async fn shower(
    server: &AgentServer,
    thread: &ThreadRecord,
    run: &RunId,
    parts: Parts,
) -> Result<Option<Shower>, ApiError> {
    let StoredRun { requested, record } = match StoredRun::find(server, thread, run.as_str()).await
    {
        Ok(known) => known,
        // No run has this id; the id may not even be a UUID.
        Err(error) if error.status().is_client_error() => return Ok(None),
        Err(error) => return Err(error),
    };
    let modes = if parts.runs { modes(&requested) } else { BTreeSet::new() };
    let subgraphs =
        requested.client.kwargs.get("subgraphs").and_then(Value::as_bool).unwrap_or(false);
    let mut shower = Shower::new(server, thread, &requested, modes, subgraphs);
    shower.know(record);
    Ok(Some(shower))
}

/// Returns the stream modes that were requested with the run.
fn modes(requested: &RequestedRun) -> BTreeSet<Mode> {
    let modes = requested.client.kwargs.get("stream_mode").cloned();
    let modes = modes.and_then(|modes| serde_json::from_value::<Modes>(modes).ok());
    Modes::read(modes.as_ref()).unwrap_or_default()
}

/// Returns the server-sent event of a log event that the stream of a single run does not contain.
async fn own(
    server: &AgentServer,
    thread: &ThreadRecord,
    event: &Event,
    parts: Parts,
) -> Option<(&'static str, Value)> {
    if !event.namespace.is_root() {
        return None;
    }
    match &event.kind {
        EventKind::RunEnded(_) => {
            Some((METADATA, json!({ "status": "run_done", "run_id": event.run })))
        }
        EventKind::Checkpointed(made)
            if parts.updates && made.source == CheckpointSource::Update =>
        {
            let state = changed(server, thread, made.checkpoint).await?;
            Some((STATE_UPDATE, json!({ "state": state, "thread_id": thread.id })))
        }
        _ => None,
    }
}

async fn changed(server: &AgentServer, thread: &ThreadRecord, id: CheckpointId) -> Option<Value> {
    let found = view::load_state(server, thread, &Namespace::root(), Some(id)).await.ok()??;
    let state = view::state(server, thread, &found, false).await.ok()?;
    Some(json!(state))
}
