//! The Agent Server over one engine: what its handlers work with.

use std::sync::Arc;

use wattle_api::ApiState;
use wattle_run::engine::Engine;
use wattle_run::ports::Ports;

use crate::queue::Queue;

/// What handlers work with. A handle: cheap to clone.
#[derive(Clone)]
pub struct Agents(Arc<Inner>);

struct Inner {
    api: ApiState,
    queue: Queue,
}

impl Agents {
    /// A server over the engine of an API, with its guards and limits.
    pub fn new(api: &ApiState) -> Self {
        Self(Arc::new(Inner { api: api.clone(), queue: Queue::default() }))
    }

    pub(crate) fn api(&self) -> &ApiState {
        &self.0.api
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.api.engine
    }

    pub(crate) fn ports(&self) -> &Ports {
        self.engine().ports()
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.0.queue
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.ports().clock.now_ms()
    }
}
