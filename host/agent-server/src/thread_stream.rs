//! All runs of a thread as one stream of server-sent events, which stays open.
//!
//! The stream begins after the event number that the client names, or with the next event. The
//! stream contains the same server-sent events as the streams of the runs. The encoder therefore
//! reads the first run from the run's first log event.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use wattle_api::response::{join_large, sse_response};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, Namespace, RunId};
use wattle_project::agent_server::id::EventId;
use wattle_project::agent_server::mode::Mode;
use wattle_project::agent_server::v1::{Frame, HEARTBEAT};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{StoreError, ThreadHead, ThreadRecord};

use crate::error::ApiError;
use crate::resolve::run::RequestedRun;
use crate::run::StoredRun;
use crate::run_stream::{RunRenderer, error_event};
use crate::subscriptions::{ThreadTail, ThreadTailItem, run_start};
use crate::view;
use crate::wire::request::Modes;

/// Name of the server-sent events at the start and the end of a run.
const METADATA: &str = "metadata";

/// Name of the server-sent events with a state that a client changed.
const STATE_UPDATE: &str = "state_update";

/// The stream modes of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadStreamModes {
    /// The server-sent events of each run's stream.
    pub(crate) run_modes: bool,
    /// The starts and ends of runs.
    pub(crate) lifecycle: bool,
    /// Changes of the state by clients.
    pub(crate) state_updates: bool,
}

impl ThreadStreamModes {
    /// Parses the names of modes; `run_modes` by default.
    ///
    /// # Errors
    ///
    /// 422 for an unknown name.
    pub(crate) fn parse(names: &[String]) -> Result<Self, ApiError> {
        let mut modes = Self { run_modes: names.is_empty(), ..Self::default() };
        for name in names {
            match name.as_str() {
                "run_modes" => modes.run_modes = true,
                "lifecycle" => modes.lifecycle = true,
                STATE_UPDATE => modes.state_updates = true,
                other => {
                    let text = format!(
                        "`{other}` is not a stream mode of a thread; use one of run_modes, \
                         lifecycle, state_update"
                    );
                    return Err(ApiError::unprocessable(text));
                }
            }
        }
        Ok(modes)
    }

    fn includes(self, frame: &Frame) -> bool {
        match frame.event.as_str() {
            METADATA => self.run_modes || self.lifecycle,
            STATE_UPDATE => self.state_updates,
            _ => self.run_modes,
        }
    }
}

/// Returns a response with the stream of a thread after the event number `after`, or after the last
/// stored event if `after` is `None`.
///
/// # Errors
///
/// The errors of the store.
pub(crate) async fn response(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    thread: &ThreadRecord,
    modes: ThreadStreamModes,
    after: Option<u64>,
) -> Result<Response, ApiError> {
    let thread_stream = ThreadStream::new(engine, stopping, thread, modes, after).await?;
    let body = stream::unfold(thread_stream, |mut thread_stream| async move {
        let bytes = thread_stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), thread_stream))
    });
    Ok(sse_response(Body::from_stream(body)))
}

struct ThreadStream {
    engine: Engine,
    modes: ThreadStreamModes,
    tail: ThreadTail,
    after: u64,
    /// Whether the tail is at the event at which the stream begins.
    is_positioned: bool,
    /// The run of the last event, and the encoder for the events of this run. The encoder is
    /// `None` if the event comes from an edit of the state, which belongs to no run.
    run: Option<(RunId, Option<RunRenderer>)>,
    pending: VecDeque<Bytes>,
    is_over: bool,
}

impl ThreadStream {
    async fn new(
        engine: &Engine,
        stopping: &watch::Receiver<bool>,
        thread: &ThreadRecord,
        modes: ThreadStreamModes,
        after: Option<u64>,
    ) -> Result<Self, ApiError> {
        let store = &engine.ports().store;
        let head = store.thread(&thread.id).await?;
        let last_seq = head.map_or(0, |head| head.last_seq);
        let end = EventId::end_of(last_seq);
        // A number above the number of the last event is from a deleted thread with the same id.
        let after = after.map_or(end, |after| if after <= end { after } else { 0 });
        Ok(Self {
            engine: engine.clone(),
            modes,
            tail: ThreadTail::new(engine, stopping, thread.tenant.clone(), &thread.id, 0),
            after,
            is_positioned: after == 0,
            run: None,
            pending: VecDeque::new(),
            is_over: false,
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.pending.pop_front() {
                return Some(bytes);
            }
            if self.is_over {
                return None;
            }
            if !self.is_positioned
                && let Err(error) = self.seek_start().await
            {
                self.fail(&error.into());
                continue;
            }
            match self.tail.next().await {
                ThreadTailItem::Event => {
                    if let Err(error) = self.encode_next().await {
                        // The server-sent events of this log event are omitted. A client that
                        // reconnects receives them.
                        let thread = self.tail.id();
                        tracing::warn!(%thread, error = error.detail(), "thread stream aborted");
                        self.fail(&Failure::internal(error.detail()));
                    }
                }
                ThreadTailItem::Replaced => (self.after, self.run) = (0, None),
                ThreadTailItem::Heartbeat => return Some(HEARTBEAT.into()),
                ThreadTailItem::Gone | ThreadTailItem::ShuttingDown => return None,
                ThreadTailItem::ReadFailed(failure) => self.fail(&failure),
            }
        }
    }

    /// Moves the tail to the first event of the run that has the event `after`.
    async fn seek_start(&mut self) -> Result<(), StoreError> {
        let (store, thread) = (self.engine.ports().store.clone(), self.tail.id().clone());
        let first = run_start(store.as_ref(), &thread, EventId::seq_of(self.after)).await?;
        self.tail.seek(first.saturating_sub(1));
        self.is_positioned = true;
        Ok(())
    }

    /// Sends the event `error` and ends the stream.
    fn fail(&mut self, failure: &Failure) {
        self.pending.push_back(error_event(failure));
        self.is_over = true;
    }

    async fn encode_next(&mut self) -> Result<(), ApiError> {
        let Some(event) = self.tail.pop() else { return Ok(()) };
        let Some(ThreadHead { record, .. }) = self.tail.head() else { return Ok(()) };
        if self.run.as_ref().is_none_or(|(run, _)| *run != event.run) {
            let renderer = run_renderer(&self.engine, record, &event.run, self.modes).await?;
            self.run = Some((event.run.clone(), renderer));
        }
        let mut frames = match &mut self.run {
            Some((_, Some(renderer))) => renderer.encode(&event).await,
            _ => Vec::new(),
        };
        let id = EventId::new(&event, frames.len());
        let frame = thread_frame(&self.engine, record, &event, self.modes).await;
        frames.extend(frame.map(|(name, data)| Frame { event: name.to_owned(), data, id }));
        let is_new = |frame: &&Frame| frame.id.number > self.after && self.modes.includes(frame);
        self.pending.extend(join_large(frames.iter().filter(is_new).map(Frame::to_bytes)));
        Ok(())
    }
}

/// Creates the encoder of a run; `None` if no run has the id.
///
/// # Errors
///
/// The errors of the store. An error ends the stream, because skipping the run would lose its
/// server-sent events.
async fn run_renderer(
    engine: &Engine,
    thread: &ThreadRecord,
    run: &RunId,
    modes: ThreadStreamModes,
) -> Result<Option<RunRenderer>, ApiError> {
    let StoredRun { requested, record } = match StoredRun::find(engine, thread, run.as_str()).await
    {
        Ok(known) => known,
        // No run has this id, or the id is not a UUID.
        Err(error) if error.status().is_client_error() => return Ok(None),
        Err(error) => return Err(error),
    };
    let run_modes = if modes.run_modes { run_stream_modes(&requested) } else { BTreeSet::new() };
    let subgraphs =
        requested.client.kwargs.get("subgraphs").and_then(Value::as_bool).unwrap_or(false);
    let mut renderer = RunRenderer::new(engine, thread, &requested, run_modes, subgraphs);
    renderer.set_run(record);
    Ok(Some(renderer))
}

/// Returns the stream modes that the run was created with.
fn run_stream_modes(requested: &RequestedRun) -> BTreeSet<Mode> {
    let modes = requested.client.kwargs.get("stream_mode").cloned();
    let modes = modes.and_then(|modes| serde_json::from_value::<Modes>(modes).ok());
    Modes::parse(modes.as_ref()).unwrap_or_default()
}

/// Returns the server-sent event of a log event that the stream of a single run does not contain.
async fn thread_frame(
    engine: &Engine,
    thread: &ThreadRecord,
    event: &Event,
    modes: ThreadStreamModes,
) -> Option<(&'static str, Value)> {
    if !event.namespace.is_root() {
        return None;
    }
    match &event.kind {
        EventKind::RunEnded(_) => {
            Some((METADATA, json!({ "status": "run_done", "run_id": event.run })))
        }
        EventKind::Checkpointed(made)
            if modes.state_updates && made.source == CheckpointSource::Update =>
        {
            let state = updated_state(engine, thread, made.checkpoint).await?;
            Some((STATE_UPDATE, json!({ "state": state, "thread_id": thread.id })))
        }
        _ => None,
    }
}

async fn updated_state(engine: &Engine, thread: &ThreadRecord, id: CheckpointId) -> Option<Value> {
    let found = view::load_state(engine, thread, &Namespace::root(), Some(id)).await.ok()??;
    let state = view::state(engine, thread, &found, false).await.ok()?;
    Some(json!(state))
}
