//! A run as server-sent events.
//!
//! Each stream encodes the log from the first event of the run. For a client that reconnects, the
//! stream omits the server-sent events that the client has already received.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use tokio::sync::watch;
use wattle_api::response::{join_large, sse_response};
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_project::agent_server::failure::error_of;
use wattle_project::agent_server::mode::Mode;
use wattle_project::agent_server::v1::{Context, Frame, HEARTBEAT, V1};
use wattle_project::projection::Projection as _;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunRef;
use wattle_run::ports::store::{RunRecord, ThreadRecord};
use wattle_run::tail::{Tail, TailItem, TailQuery, Until};

use crate::disconnect::DisconnectGuard;
use crate::event_states::EventStates;
use crate::resolve::run::RequestedRun;
use crate::run::{StartOutcome, StoredRun, wait_for_start};
use crate::view;
use crate::wait_response::HEARTBEAT_INTERVAL;

/// Options of the stream of a run.
pub(crate) struct RunStreamOptions {
    /// Kinds of server-sent events to send.
    pub(crate) modes: BTreeSet<Mode>,
    /// Whether to include server-sent events of subgraphs.
    pub(crate) subgraphs: bool,
    /// The stream contains only server-sent events with event numbers above this number.
    pub(crate) after: u64,
}

/// Returns a response with the stream of a run.
pub(crate) fn response(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    thread: &ThreadRecord,
    run: StoredRun,
    options: RunStreamOptions,
    disconnect_guard: Option<DisconnectGuard>,
) -> Response {
    let run_stream = RunStream::new(engine, stopping, thread, run, options, disconnect_guard);
    let body = stream::unfold(run_stream, |mut run_stream| async move {
        let bytes = run_stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), run_stream))
    });
    sse_response(Body::from_stream(body))
}

/// Encodes the log events of one run as server-sent events.
pub(crate) struct RunRenderer {
    encoder: V1,
    states: EventStates,
}

impl RunRenderer {
    pub(crate) fn new(
        engine: &Engine,
        thread: &ThreadRecord,
        requested: &RequestedRun,
        modes: BTreeSet<Mode>,
        subgraphs: bool,
    ) -> Self {
        let context = Context {
            thread_info: view::run_thread_info(engine, thread, requested),
            run: requested.run.clone(),
            graph_id: requested.client.graph_id.clone(),
            assistant_id: requested.client.assistant.clone(),
            metadata: requested.client.metadata.clone(),
        };
        let encoder = V1::new(modes, subgraphs, context);
        let states = EventStates::new(engine, &thread.id, encoder.needs_states());
        Self { encoder, states }
    }

    /// Sets the record of the run after the run has started, so that the record is not read again.
    pub(crate) fn set_run(&mut self, run: RunRecord) {
        self.states.set_run(run);
    }

    /// Returns the server-sent events of a log event. The log events must be passed in order, from
    /// the first event of the run.
    pub(crate) async fn encode(&mut self, event: &Event) -> Vec<Frame> {
        let need = self.encoder.needs(event);
        let state = self.states.state_for(event, need.as_ref()).await;
        self.encoder.apply(event, &state)
    }
}

struct RunStream {
    engine: Engine,
    stopping: watch::Receiver<bool>,
    run: RunRef,
    renderer: RunRenderer,
    after: u64,
    disconnect_guard: Option<DisconnectGuard>,
    pending: VecDeque<Bytes>,
    phase: StreamPhase,
}

enum StreamPhase {
    /// The run is pending.
    Pending,
    /// The run has started, and its log is being read.
    Streaming(Box<RunTail>),
    /// No server-sent event follows.
    Done,
}

impl RunStream {
    fn new(
        engine: &Engine,
        stopping: &watch::Receiver<bool>,
        thread: &ThreadRecord,
        run: StoredRun,
        options: RunStreamOptions,
        disconnect_guard: Option<DisconnectGuard>,
    ) -> Self {
        let StoredRun { requested, record } = run;
        let mut run_stream = Self {
            engine: engine.clone(),
            stopping: stopping.clone(),
            run: requested.run_ref(),
            renderer: RunRenderer::new(
                engine,
                thread,
                &requested,
                options.modes,
                options.subgraphs,
            ),
            after: options.after,
            disconnect_guard,
            pending: VecDeque::new(),
            phase: StreamPhase::Pending,
        };
        if record.has_started() {
            run_stream.start_reading(record);
        }
        run_stream
    }

    /// Begins to read the log of the run, which has started.
    fn start_reading(&mut self, record: RunRecord) {
        self.phase =
            StreamPhase::Streaming(Box::new(RunTail::new(&self.engine, &self.stopping, &record)));
        self.renderer.set_run(record);
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.pending.pop_front() {
                return Some(bytes);
            }
            match &mut self.phase {
                StreamPhase::Done => return self.finish(),
                StreamPhase::Pending => {
                    let waited = tokio::time::timeout(
                        HEARTBEAT_INTERVAL,
                        wait_for_start(&self.engine, &self.stopping, &self.run),
                    )
                    .await;
                    let Ok(outcome) = waited else { return Some(HEARTBEAT.into()) };
                    match outcome {
                        Ok(StartOutcome::Started(record)) => self.start_reading(*record),
                        Ok(StartOutcome::Removed) => self.phase = StreamPhase::Done,
                        // The run has not ended, so the client reconnects.
                        Ok(StartOutcome::ShuttingDown) => return self.finish(),
                        Err(_) if *self.stopping.borrow() => return self.finish(),
                        Ok(StartOutcome::Failed(failure)) | Err(failure) => {
                            self.pending.push_back(error_event(&failure));
                            self.phase = StreamPhase::Done;
                        }
                    }
                }
                StreamPhase::Streaming(tail) => match tail.next().await {
                    RunTailItem::Event(event) => {
                        let frames = self.renderer.encode(&event).await;
                        let new = frames.iter().filter(|frame| frame.id.number > self.after);
                        self.pending.extend(join_large(new.map(Frame::to_bytes)));
                    }
                    RunTailItem::Heartbeat => return Some(HEARTBEAT.into()),
                    RunTailItem::Ended => self.phase = StreamPhase::Done,
                    // The run has not ended, so the client reconnects.
                    RunTailItem::ShuttingDown => return self.finish(),
                    RunTailItem::ReadFailed(failure) => {
                        self.pending.push_back(error_event(&failure));
                        self.phase = StreamPhase::Done;
                    }
                },
            }
        }
    }

    /// Ends the stream. The end does not count as a disconnect of the client.
    fn finish(&mut self) -> Option<Bytes> {
        if let Some(disconnect_guard) = &mut self.disconnect_guard {
            disconnect_guard.disarm();
        }
        None
    }
}

/// The next item of a tail.
enum RunTailItem {
    /// An event of the run.
    Event(Arc<Event>),
    /// No event has arrived for the heartbeat interval.
    Heartbeat,
    /// The run has ended and its thread is free, or the run was deleted. No event follows.
    Ended,
    /// The host is shutting down. No event follows, but the run has not ended.
    ShuttingDown,
    /// The log cannot be read. No event follows, and it is unknown whether the run continues.
    ReadFailed(Failure),
}

/// The tail of the events of one run.
struct RunTail {
    engine: Engine,
    run: RunRef,
    tail: Tail,
    stopping: watch::Receiver<bool>,
    /// Whether the last event of the run was read. Later events of the log belong to later runs.
    has_ended: bool,
}

impl RunTail {
    /// Creates a tail that begins with the first event of a run.
    fn new(engine: &Engine, stopping: &watch::Receiver<bool>, record: &RunRecord) -> Self {
        let run = RunRef { thread: record.thread.clone(), run: record.id.clone() };
        let tail = engine.tail(TailQuery {
            thread: run.thread.clone(),
            run: Some(run.run.clone()),
            after: record.first_seq.saturating_sub(1),
            until: Until::Deleted,
        });
        let (engine, stopping) = (engine.clone(), stopping.clone());
        Self { engine, run, tail, stopping, has_ended: false }
    }

    /// Waits for the next item.
    async fn next(&mut self) -> RunTailItem {
        loop {
            if self.has_ended {
                return self.wait_for_end().await;
            }
            match self.tail.next().await {
                Ok(TailItem::Event(event)) => {
                    let is_root = event.namespace.is_root();
                    self.has_ended = is_root && matches!(event.kind, EventKind::RunEnded(_));
                    return RunTailItem::Event(event);
                }
                // The run of a thread that is set aside counts as running: the stream waits until
                // the run continues.
                Ok(TailItem::CaughtUp) if self.tail.is_run_active() => {}
                Ok(TailItem::CaughtUp | TailItem::Idle) => {
                    return self.wait_for_end().await;
                }
                Ok(TailItem::Gone | TailItem::Replaced) => return RunTailItem::Ended,
                Err(failure) => {
                    let thread = &self.run.thread;
                    tracing::warn!(%thread, error = %failure, "run stream aborted");
                    return RunTailItem::ReadFailed(failure);
                }
            }
            tokio::select! {
                has_changed = self.tail.wait(HEARTBEAT_INTERVAL) => if !has_changed {
                    return RunTailItem::Heartbeat;
                },
                _ = self.stopping.wait_for(|stopping| *stopping) => {
                    return RunTailItem::ShuttingDown;
                }
            }
        }
    }

    /// Waits until the run no longer occupies its thread. A client that reads the end of the stream
    /// can then start the next run.
    async fn wait_for_end(&self) -> RunTailItem {
        let _ = self.engine.wait_ended(&self.run).await;
        RunTailItem::Ended
    }
}

/// Returns the last server-sent event of a run that could not start, or of a log that cannot be
/// read. The event has no id, because it belongs to no log event. A client that reconnects resumes
/// after the last server-sent event with an id.
pub(crate) fn error_event(failure: &Failure) -> Bytes {
    let data: Value = error_of(failure);
    format!("event: error\r\ndata: {data}\r\n\r\n").into()
}
