//! The gate: the one path of every host call, with grant check, journal, budget, event and effect.
//!
//! Each guest call has its own gate. The gate of a task returns the results that the journal of the
//! task has. The gate of a web handler, or of a tool or a node that a client calls, has no journal.
//! Each gate has a budget.
//!
//! # Layout
//!
//! * `pipeline`: the steps of a call; `entry`: the journal entry of a call in these steps.
//! * `journal`: the recorded calls of a task; `divergence`: a call that differs from them;
//!   `task_gate`: the task of a gate; `task_input`: its input; `budget`: the number of calls, bytes
//!   and log messages of a guest call; [`client_call`]: what a client sees of a guest that it
//!   calls, with its host calls in [`call_list`].
//! * [`effect`]: how calls are performed on the ports, one file for each family.
//! * `clock`, `emit`, `log`, `model`, `interrupt`, `runs`, [`stream`], `tools`, [`transaction`]:
//!   the functions that guests call. `deltas`: the pieces of a streamed completion;
//!   `unread_deltas`: those that the guest has not read.
//! * `ticket`: calls whose numbers are taken before they are made.
//! * `in_doubt`: in-doubt calls; `elicit`: elicitations of MCP servers.
//! * `tool_check`: arguments and outputs of tools; `tool_timeout`: the timeout of their calls.
//! * [`HostedApp`] and `task_subgraphs`: traits through which the gate uses the engine, so that the
//!   gate imports no module that imports the gate.

mod budget;
pub mod call_list;
pub mod client_call;
mod clock;
mod deltas;
pub(crate) mod divergence;
pub mod effect;
mod elicit;
mod emit;
pub(crate) mod entry;
mod in_doubt;
mod interrupt;
mod journal;
mod log;
mod model;
mod pipeline;
mod runs;
pub mod stream;
mod task_gate;
pub(crate) mod task_input;
mod task_subgraphs;
mod ticket;
pub(crate) mod tool_check;
pub(crate) mod tool_timeout;
mod tools;
pub mod transaction;
mod unread_deltas;
pub mod unwind;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::PluginName;
use wattle_graph::tool::ToolOutput;

use crate::caller_id::CallerId;
use crate::fair_share::Lease;
use crate::gate::budget::CallBudget;
use crate::gate::call_list::CallListEntry;
use crate::gate::client_call::{ClientCall, ClientNode};
use crate::gate::tool_timeout::ToolTimeout;
use crate::gate::unwind::{CallError, GuestError, Unwind};
use crate::grant::Grants;
use crate::hostcall::blob;
use crate::hostcall::runs::RunService;
use crate::hostcall::tools::{PluginToolCall, ToolInfo};
use crate::limit::Limits;
use crate::meter::plugin_use::{Denial, PluginUse};
use crate::ports::blob::BlobRef;
use crate::ports::{Caller, Ports};
use crate::quota::Quotas;
use crate::run_memory::MemoryCharge;
use crate::schemas::SchemaCache;
use crate::stop_flag::StopFlag;

pub(crate) use self::budget::handlers_full;
pub use self::effect::{Effect, EffectContext};
pub(crate) use self::in_doubt::check_decision;
pub use self::pipeline::check_batch_size;
pub(crate) use self::task_gate::log_lost;
pub(crate) use self::task_subgraphs::TaskSubgraphs;
pub use journal::Journal;
pub(crate) use journal::{CallsByScope, LoggedCalls, is_in_doubt};
pub use task_gate::TaskGate;
pub use ticket::CallTicket;

/// Environment of a guest call: ports, caller, grants and app.
#[derive(Clone)]
pub struct GuestEnv {
    /// Ports to the outside: store, models, network, databases and so on. All guests of a run share
    /// them.
    pub ports: Arc<Ports>,
    /// App, plugin and tenant of the guest.
    pub caller: Caller,
    /// Grants of the plugin.
    pub grants: Arc<Grants>,
    /// The app of the plugin.
    pub app: Arc<dyn HostedApp>,
    /// Signal that cancels the call.
    pub cancel: StopFlag,
    /// Storage quotas of threads, apps and tenants.
    pub quotas: Arc<Quotas>,
    /// Compiled schemas of interrupts and tools.
    pub schemas: Arc<SchemaCache>,
}

/// The app of a guest: its settings, and the tools and grants of its plugins.
#[async_trait]
pub trait HostedApp: Send + Sync {
    /// Returns all settings as a JSON object.
    fn settings(&self) -> &Value;

    /// Returns the grants of a plugin.
    fn grants_of(&self, plugin: &PluginName) -> Arc<Grants>;

    /// Returns the counters of what a plugin has used.
    fn use_of(&self, plugin: &PluginName) -> Arc<PluginUse>;

    /// Returns the tools of a plugin.
    ///
    /// # Errors
    ///
    /// `not-found` if the app has no such plugin.
    fn tools(&self, plugin: &PluginName) -> Result<&[ToolInfo], Failure>;

    /// Returns the plugins of the app that provide a tool with a bare name, sorted by name.
    fn providers_of(&self, tool: &str) -> Vec<PluginName>;

    /// Calls a tool of a plugin, and counts the call and its failure. `gate` is the gate of the
    /// tool.
    ///
    /// # Errors
    ///
    /// [`GuestError`] if the tool returns no output within the timeout.
    async fn call_tool(
        &self,
        plugin: &PluginName,
        call: PluginToolCall,
        gate: Arc<Gate>,
        timeout: ToolTimeout<'_>,
    ) -> Result<ToolOutput, GuestError>;
}

/// What waits for a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedBy {
    /// A superstep: the guest is a node.
    Superstep,
    /// A client: the guest is a web handler.
    Client,
    /// A guest: the awaited guest is a tool, or a node of a subgraph that a guest started.
    Guest,
}

/// The gate of one guest call.
pub struct Gate {
    env: GuestEnv,
    task: Option<Arc<TaskGate>>,
    runs: Option<Arc<dyn RunService>>,
    /// Budget of the guest call. The journal of a task shares the budget.
    budget: Arc<CallBudget>,
    /// Number of tool calls around the guest: 0 for a node or a web handler.
    depth: u32,
    /// The call of a client, if a client called the guest or the guest around it.
    client: Option<ClientCall>,
}

impl Gate {
    /// Creates the gate for one attempt of a task.
    pub fn for_task(env: GuestEnv, task: TaskGate) -> Self {
        let budget = task.journal.budget();
        Self { env, task: Some(Arc::new(task)), runs: None, budget, depth: 0, client: None }
    }

    /// Creates the gate of a web handler, which may use threads and runs.
    pub fn for_web(env: GuestEnv, runs: Arc<dyn RunService>) -> Self {
        let budget = Arc::new(CallBudget::for_handler(None));
        Self { env, task: None, runs: Some(runs), budget, depth: 0, client: None }
    }

    /// Sets the guest instance that a web handler holds. Each tool that the handler calls takes
    /// another instance for the same caller.
    #[must_use]
    pub fn with_instance(mut self, instance: Lease<CallerId>) -> Self {
        self.budget = Arc::new(CallBudget::for_handler(Some(instance)));
        self
    }

    /// Creates the gate of a tool that a node or a web handler calls.
    pub(crate) fn for_tool(
        env: GuestEnv,
        task: Option<Arc<TaskGate>>,
        budget: Arc<CallBudget>,
        depth: u32,
        client: Option<ClientCall>,
    ) -> Self {
        Self { env, task, runs: None, budget, depth, client }
    }

    /// Creates the gate of a tool or a node that a client calls. The guest holds an instance, and
    /// each tool that it calls takes another one. The requests of its model calls count as `memory`.
    /// `client` keeps what the client sees of the guest.
    pub(crate) fn for_client(
        env: GuestEnv,
        instance: Lease<CallerId>,
        memory: MemoryCharge,
        client: ClientCall,
    ) -> Self {
        let budget = Arc::new(CallBudget::for_client(client.guest(), instance, memory));
        Self { env, task: None, runs: None, budget, depth: 0, client: Some(client) }
    }

    /// Returns the app, plugin and tenant of the guest.
    pub fn caller(&self) -> &Caller {
        &self.env.caller
    }

    /// Returns the grants of the guest.
    pub fn grants(&self) -> &Grants {
        &self.env.grants
    }

    /// Returns what waits for the guest.
    pub fn awaited_by(&self) -> AwaitedBy {
        match &self.task {
            _ if self.depth > 0 => AwaitedBy::Guest,
            Some(task) if task.is_awaited_by_guest => AwaitedBy::Guest,
            Some(_) => AwaitedBy::Superstep,
            None => AwaitedBy::Client,
        }
    }

    /// Returns true for a web handler, for a tool or a node that a client calls, and for the tools
    /// that these call.
    pub fn is_of_handler(&self) -> bool {
        self.task.is_none()
    }

    /// Returns the limits of the guest call. The sandbox enforces them.
    pub fn limits(&self) -> &Limits {
        &self.env.grants.limits
    }

    /// Returns the counters of what the plugin of the guest has used.
    pub fn plugin_use(&self) -> Arc<PluginUse> {
        self.env.app.use_of(&self.env.caller.plugin)
    }

    /// Counts a call of a function for the plugin of the guest if its grants deny the call.
    fn count_denial(&self, function: &'static str, failure: &Failure) {
        if failure.code != code::DENIED {
            return;
        }
        let GuestEnv { ports, caller, .. } = &self.env;
        let run =
            self.task.as_ref().map(|task| (task.log.thread().clone(), task.log.run().clone()));
        self.plugin_use().add_denial(Denial {
            at_ms: ports.clock.now_ms(),
            function,
            message: failure.message.clone(),
            tenant: caller.tenant.clone(),
            run,
        });
    }

    /// Counts a call that is not journaled. Such a call takes no number, so that the numbers of
    /// other calls do not depend on it.
    fn count_call(&self) -> Result<(), Unwind> {
        self.count_calls(1)
    }

    /// Counts a call whose work is that of several calls.
    fn count_calls(&self, count: u32) -> Result<(), Unwind> {
        if let Some(task) = &self.task {
            task.heartbeat.on_call();
        }
        self.budget.charge_calls(count, self.grants(), self.caller())
    }

    /// Begins the entry of a call in the list of calls, if a client sees the calls.
    fn list_call(&self, function: &'static str, summary: impl FnOnce() -> String) -> CallListEntry {
        let calls = self.client.as_ref().map(|client| &client.calls);
        CallListEntry::begin(calls, self.depth, function, summary)
    }

    /// Returns the node that a client calls, for the node itself and for its tools.
    fn client_node(&self) -> Option<&ClientNode> {
        self.client.as_ref()?.node.as_deref()
    }

    /// Counts bytes of a request or of a result.
    fn count_bytes(&self, bytes: u64) -> Result<(), Unwind> {
        self.budget.charge_bytes(bytes, self.limits().host_call_bytes)
    }

    /// Counts the weight of what the journal of the task keeps, or what the task keeps besides. A
    /// guest without a task has no journal.
    fn count_journaled(&self, weight: u64) -> Result<(), Unwind> {
        let allowed = self.limits().task_journal_bytes;
        self.task.as_ref().map_or(Ok(()), |_| self.budget.charge_journal(weight, allowed))
    }

    /// Reads part of a blob. The call is not journaled: a reference always names the same bytes.
    /// The read counts as a call, with the bytes that it returns.
    ///
    /// # Errors
    ///
    /// `invalid` if `blob` is not a blob reference; `limit` for more than
    /// [`BLOB_READ_BYTES`](crate::limit::BLOB_READ_BYTES); errors of the blob store.
    pub async fn blob_get(
        &self,
        blob: &str,
        offset: u64,
        length: Option<u64>,
    ) -> Result<Bytes, CallError> {
        self.count_call()?;
        let blob = self.blob_ref(blob)?;
        let info = self.env.ports.blobs.stat(blob).await?;
        let bytes = blob::bytes_of_read(&info, offset, length)?;
        self.count_bytes(bytes)?;
        Ok(self.env.ports.blobs.get(blob, offset, length).await?)
    }

    /// Returns the path under which the host serves a blob to the caller's tenant. The blob must
    /// exist. The call is not journaled: the path of a blob never changes.
    ///
    /// # Errors
    ///
    /// See [`Gate::blob_stat`].
    pub async fn blob_link(&self, blob: &str) -> Result<String, CallError> {
        let info = self.blob_stat(blob).await?;
        Ok(self.env.ports.links.path(self.caller().tenant.as_deref(), info.blob))
    }

    /// Returns size and media type of a blob.
    ///
    /// # Errors
    ///
    /// `invalid` if `blob` is not a blob reference; errors of the blob store.
    pub async fn blob_stat(&self, blob: &str) -> Result<crate::ports::blob::BlobInfo, CallError> {
        let blob = self.blob_ref(blob).map_err(|failure| self.refuse(failure))?;
        self.call(blob::StatBlob { blob }).await
    }

    #[expect(clippy::unused_self, reason = "reads as a question to the gate")]
    fn blob_ref(&self, text: &str) -> Result<BlobRef, Failure> {
        BlobRef::parse(text).ok_or_else(|| {
            Failure::new(
                code::INVALID,
                format!("`{text}` is not a blob reference, which is `blob:` and 64 hex digits"),
            )
        })
    }

    /// Returns all settings of the app as a JSON object.
    pub fn settings(&self) -> &Value {
        self.env.app.settings()
    }

    /// Returns the service for threads and runs of the app.
    ///
    /// # Errors
    ///
    /// `unsupported` inside a node.
    pub fn runs(&self) -> Result<&dyn RunService, Failure> {
        self.runs.as_deref().ok_or_else(|| {
            let text = if self.client_node().is_some() {
                "a node that a client calls is part of no run, so it can start no graph; run the \
                 node in a graph"
            } else {
                "a node can access only its own thread, so that it can be re-executed after a \
                 crash; it can start a graph of its app and wait for it; use a web handler for \
                 anything else"
            };
            Failure::new(code::UNSUPPORTED, text)
                .with_details(json!({ "feature": "runs inside a node" }))
        })
    }

    /// Returns the failure for a part of the contract that this host does not implement.
    pub fn unsupported(&self, feature: &str) -> Failure {
        tracing::debug!(plugin = %self.caller().plugin, feature, "unsupported host call");
        Failure::unsupported(feature)
    }
}
