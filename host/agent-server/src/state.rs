//! The state that the handlers of the Agent Server API share. Each handler extracts only the parts
//! that it needs.

use std::sync::Arc;

use axum::extract::FromRef;
use tokio::sync::watch;
use wattle_api::traffic::Traffic;
use wattle_api::{ApiConfig, ApiState, impl_from_ref};
use wattle_run::engine::Engine;
use wattle_run::ports::Ports;

use crate::create_run::RunCreator;
use crate::crons::signal::CronSignal;
use crate::hosts;
use crate::records::legacy;
use crate::subscriptions::EventDelays;
use crate::unknown_keys::UnknownKeys;
use crate::webhooks::{WebhookSettings, Webhooks};
use crate::websocket::ProtocolParts;

/// Settings of the Agent Server API.
#[derive(Clone, Debug, Default)]
pub struct AgentServerConfig {
    /// Settings of webhooks.
    pub webhooks: WebhookSettings,
    /// What happens to keys of inputs and updates that name no channel.
    pub unknown_keys: UnknownKeys,
}

/// The state that handlers share. Clones share the state.
#[derive(Clone)]
pub struct AgentServer {
    api: ApiState,
    cron_signal: Arc<CronSignal>,
    webhooks: Webhooks,
    run_creator: RunCreator,
    unknown_keys: UnknownKeys,
    event_delays: EventDelays,
}

impl AgentServer {
    /// Creates the state for the engine of a native API. The Agent Server API shares the guards and
    /// limits of the native API.
    pub fn new(api: &ApiState) -> Self {
        Self::with_config(api, AgentServerConfig::default())
    }

    /// Creates the state with the settings `config`, like [`Self::new`].
    pub fn with_config(api: &ApiState, config: AgentServerConfig) -> Self {
        let AgentServerConfig { webhooks, unknown_keys } = config;
        let webhooks = Webhooks::new(api.engine.clone(), webhooks, api.stopping.clone());
        Self {
            api: api.clone(),
            cron_signal: Arc::default(),
            run_creator: RunCreator::new(webhooks.clone(), unknown_keys),
            webhooks,
            unknown_keys,
            event_delays: EventDelays::default(),
        }
    }

    /// Starts the background tasks: the cron scheduler, the delivery of webhooks and the takeover
    /// of webhooks from other hosts. The delivery includes the webhooks of runs that ended before
    /// the start. Enqueues the runs that a host of an older version left in its queue. The tasks
    /// stop when the host shuts down.
    pub async fn start(&self) {
        legacy::enqueue_runs(&self.api.engine).await;
        hosts::spawn_reconciler(&self.webhooks);
        self.reconcile().await;
        self.spawn_cron_scheduler();
    }

    /// Takes over the webhooks of hosts that are not live, and starts the delivery of the webhooks
    /// of this host that no task delivers yet. If the host shares its store, a background task also
    /// does so whenever another host dies.
    pub async fn reconcile(&self) {
        hosts::reconcile(&self.webhooks).await;
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.api.engine
    }

    pub(crate) fn ports(&self) -> &Ports {
        self.api.engine.ports()
    }

    pub(crate) fn cron_signal(&self) -> &CronSignal {
        &self.cron_signal
    }

    pub(crate) fn run_creator(&self) -> &RunCreator {
        &self.run_creator
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.ports().clock.now_ms()
    }
}

impl_from_ref! {
    AgentServer {
        api.config: Arc<ApiConfig>,
        api.engine: Engine,
        api.stopping: watch::Receiver<bool>,
        api.traffic: Arc<Traffic>,
        cron_signal: Arc<CronSignal>,
        run_creator: RunCreator,
        unknown_keys: UnknownKeys,
    }
}

impl FromRef<AgentServer> for ProtocolParts {
    fn from_ref(server: &AgentServer) -> Self {
        Self {
            creator: server.run_creator.clone(),
            event_delays: server.event_delays.clone(),
            config: server.api.config.clone(),
            traffic: server.api.traffic.clone(),
        }
    }
}
