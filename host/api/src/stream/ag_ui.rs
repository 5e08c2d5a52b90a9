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
use wattle_run::ports::Store;

use crate::projection::Past;
use crate::state::ApiState;
use crate::stream::follow::{Follow, Follower, HEARTBEAT, response};
use crate::stream::whole::{Form, messages};

/// Responds with the stream of one run from its first event.
pub fn answer(state: &ApiState, follow: Follow, nodes: Vec<NodeName>) -> Response {
    let events = AgUiProjection::new(follow.thread.clone(), nodes);
    answer_with(state, follow, events)
}

/// Responds with the stream of one run in a given projection, to which no event was applied.
pub fn answer_with(state: &ApiState, follow: Follow, events: AgUiProjection) -> Response {
    let ports = state.engine.ports();
    let form = Own {
        past: Past::new(state.engine.states().clone(), ports.clock.time_zone(), &follow.thread),
        events,
        store: ports.store.clone(),
        thread: follow.thread.clone(),
        run: follow.run.clone(),
    };
    let follower = Follower::new(state, follow, HEARTBEAT);
    response(messages(follower, form, VecDeque::new()))
}

struct Own {
    past: Past,
    events: AgUiProjection,
    store: Arc<dyn Store>,
    thread: ThreadId,
    run: Option<RunId>,
}

impl Form for Own {
    async fn take(&mut self, event: &Event) -> Vec<Bytes> {
        self.past.see(event);
        let needs_state = self.events.needs(event).is_some();
        let checkpoint = if needs_state { self.past.current().await } else { None };
        let state = EventState { checkpoint, ..EventState::default() };
        self.events.apply(event, &state).iter().map(super::json_message).collect()
    }

    fn is_over(&self) -> bool {
        self.events.is_over()
    }

    async fn log_ended(&mut self) -> Vec<Bytes> {
        let Some(run) = self.run.clone() else { return Vec::new() };
        let record = match self.store.run(&run).await {
            Ok(record) => record.filter(|it| !it.has_started() && it.ended_ms.is_some()),
            Err(error) => return failed(&Failure::from(error)),
        };
        let Some(record) = record else { return Vec::new() };
        let events = ag_ui::unstarted(self.thread.clone(), run, record.failure);
        events.iter().map(super::json_message).collect()
    }

    fn unreadable(&mut self, failure: &Failure) -> Option<Vec<Bytes>> {
        Some(failed(failure))
    }
}

/// Events that end a stream whose log cannot be read.
fn failed(failure: &Failure) -> Vec<Bytes> {
    let (message, code) = (failure.message.clone(), failure.code.clone());
    vec![super::json_message(&AgUiEvent::RunError { message, code })]
}
