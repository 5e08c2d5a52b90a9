//! Encodes a run as events of AG-UI.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::{NodeName, RunId, ThreadId};
use wattle_project::ag_ui::{self, AgUiEvent, AgUiProjection};
use wattle_project::projection::{EventState, Projection as _};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::Store;

use crate::projection::StateAtEvent;
use crate::response::sse_response;
use crate::stream::client_tail::{ClientTail, HEARTBEAT_INTERVAL, TailRequest};
use crate::stream::parts::StreamParts;
use crate::stream::run_encoder::{RunEncoder, encode_event, encode_stream, find_unstarted};

/// Responds with the stream of one run from its first event.
pub fn respond(parts: &StreamParts, request: TailRequest, nodes: Vec<NodeName>) -> Response {
    let events = AgUiProjection::new(request.thread.clone(), nodes);
    respond_with(parts, request, events)
}

/// Responds with the stream of one run. `events` is the projection of the stream before its first
/// event.
pub fn respond_with(parts: &StreamParts, request: TailRequest, events: AgUiProjection) -> Response {
    let ports = parts.engine.ports();
    let encoder = AgUiEncoder {
        owner: request.owner,
        state_at_event: StateAtEvent::new(
            parts.engine.states().clone(),
            ports.clock.time_zone(),
            &request.thread,
        ),
        events,
        store: ports.store.clone(),
        thread: request.thread.clone(),
        run: request.run.clone(),
    };
    let tail = ClientTail::new(parts, request, HEARTBEAT_INTERVAL);
    sse_response(encode_stream(tail, encoder, VecDeque::new()))
}

struct AgUiEncoder {
    owner: CallerId,
    state_at_event: StateAtEvent,
    events: AgUiProjection,
    store: Arc<dyn Store>,
    thread: ThreadId,
    run: Option<RunId>,
}

impl RunEncoder for AgUiEncoder {
    async fn encode(&mut self, event: &Event) -> Vec<Bytes> {
        self.state_at_event.apply(event);
        let needs_state = self.events.needs(event).is_some();
        let checkpoint = if needs_state { self.state_at_event.current().await } else { None };
        let state = EventState { checkpoint, ..EventState::default() };
        encode_event(self.owner, &mut self.events, event, state).await
    }

    fn is_over(&self) -> bool {
        self.events.is_over()
    }

    async fn log_ended(&mut self) -> Vec<Bytes> {
        let Some(run) = self.run.clone() else { return Vec::new() };
        match find_unstarted(&*self.store, &run).await {
            Ok(Some(record)) => {
                let events = ag_ui::unstarted(self.thread.clone(), run, record.failure);
                events.iter().map(super::json_message).collect()
            }
            Ok(None) => Vec::new(),
            Err(failure) => failed(&failure),
        }
    }

    fn read_failed(&mut self, failure: &Failure) -> Option<Vec<Bytes>> {
        Some(failed(failure))
    }
}

/// Events that end a stream whose log cannot be read.
fn failed(failure: &Failure) -> Vec<Bytes> {
    let (message, code) = (failure.message.clone(), failure.code.clone());
    vec![super::json_message(&AgUiEvent::RunError { message, code })]
}
