//! The Agent Server over one engine: what its handlers work with.

use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};
use wattle_api::ApiState;
use wattle_run::engine::Engine;
use wattle_run::ports::Ports;

use crate::crons::Crons;
use crate::queue::Queue;
use crate::webhooks::{Hooks, Webhooks};

/// What handlers work with. A handle: cheap to clone.
#[derive(Clone)]
pub struct Agents(Arc<Inner>);

struct Inner {
    api: ApiState,
    queue: Queue,
    /// Held while an assistant is changed: its versions are counted.
    assistants: Mutex<()>,
    crons: Crons,
    webhooks: Webhooks,
    hooks: Hooks,
}

impl Agents {
    /// A server over the engine of an API, with its guards and limits.
    pub fn new(api: &ApiState) -> Self {
        Self::with_webhooks(api, Webhooks::default())
    }

    /// The same with settings for webhooks.
    pub fn with_webhooks(api: &ApiState, webhooks: Webhooks) -> Self {
        Self(Arc::new(Inner {
            api: api.clone(),
            queue: Queue::default(),
            assistants: Mutex::default(),
            crons: Crons::default(),
            webhooks,
            hooks: Hooks::default(),
        }))
    }

    /// Does from now on what has its own time: begins the runs of crons and tells webhooks of the
    /// ends of runs, also of those that ended before. Ends with the host.
    pub async fn start(&self) {
        self.take_up_hooks().await;
        self.keep_taking_up_hooks();
        self.keep_running_crons();
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

    /// The right to change assistants, for as long as it is held.
    pub(crate) async fn assistants_changing(&self) -> MutexGuard<'_, ()> {
        self.0.assistants.lock().await
    }

    pub(crate) fn crons(&self) -> &Crons {
        &self.0.crons
    }

    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.0.webhooks
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.0.hooks
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.ports().clock.now_ms()
    }
}
