//! The Agent Server over one engine: what its handlers work with.

use std::sync::Arc;

use wattle_api::ApiState;
use wattle_run::engine::Engine;
use wattle_run::ports::Ports;

use crate::crons::Crons;
use crate::feed::Holds;
use crate::webhooks::{Hooks, Webhooks};

/// What handlers work with. A handle: cheap to clone.
#[derive(Clone)]
pub struct Agents(Arc<Inner>);

struct Inner {
    api: ApiState,
    crons: Crons,
    webhooks: Webhooks,
    hooks: Hooks,
    holds: Holds,
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
            crons: Crons::default(),
            webhooks,
            hooks: Hooks::default(),
            holds: Holds::default(),
        }))
    }

    /// Does from now on what has its own time: begins the runs of crons, tells webhooks of the ends
    /// of runs, also of those that ended before, and looks after what other hosts leave. Ends with the
    /// host.
    pub async fn start(&self) {
        self.enqueue_old_runs().await;
        self.keep_reconciling();
        self.reconcile().await;
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

    /// The name of this host among those that share its store.
    pub(crate) fn host(&self) -> &str {
        &self.engine().holder().0
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

    /// What delays the pauses and ends of runs on connections.
    pub(crate) fn holds(&self) -> &Holds {
        &self.0.holds
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.ports().clock.now_ms()
    }
}
