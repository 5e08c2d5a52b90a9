//! Encodes a run as events of AG-UI.

use std::collections::VecDeque;

use axum::response::Response;
use bytes::Bytes;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;
use wattle_project::ag_ui::{AgUiEvent, AgUiProjection};

use crate::projection::Past;
use crate::state::ApiState;
use crate::stream::follow::{Follow, Follower, HEARTBEAT, response};
use crate::stream::whole::{Form, messages};

/// Responds with the stream of one run from its first event.
pub fn answer(state: &ApiState, follow: Follow, nodes: Vec<NodeName>) -> Response {
    let ports = state.engine.ports();
    let form = Own {
        past: Past::new(ports.store.clone(), ports.clock.time_zone(), &follow.thread),
        events: AgUiProjection::new(follow.thread.clone(), nodes),
    };
    let follower = Follower::new(state, follow, HEARTBEAT);
    response(messages(follower, form, VecDeque::new()))
}

struct Own {
    past: Past,
    events: AgUiProjection,
}

impl Form for Own {
    async fn take(&mut self, event: &Event) -> Vec<Bytes> {
        self.past.see(event);
        let wants_state = self.events.needs_state(event);
        let state = if wants_state { Some(self.past.state().await) } else { None };
        // Omit a state that cannot be read. The client would otherwise show `null` as the state.
        let state = state.filter(|state| !state.is_null());
        self.events.apply(event, state).iter().map(super::json_message).collect()
    }

    fn is_over(&self) -> bool {
        self.events.is_finished()
    }

    fn unreadable(&mut self, failure: &Failure) -> Option<Vec<Bytes>> {
        let (message, code) = (failure.message.clone(), failure.code.clone());
        Some(vec![super::json_message(&AgUiEvent::RunError { message, code })])
    }
}
