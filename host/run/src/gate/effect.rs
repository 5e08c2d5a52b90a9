//! Performs host calls on the ports, with one file for each family of ports.
//!
//! [`crate::hostcall`] defines the calls as data. Only the gate performs calls, after it has
//! checked and logged them.

mod blob;
mod http;
mod llm;
mod memory;
mod sql;
mod tools;

use std::future::Future;
use std::sync::LazyLock;

use wattle_graph::llm::{Completion, CompletionRequest, Delta, History};
use wattle_graph::weight::call_weight;

use crate::blocking::{block_in_place_in_turn, is_long_history};
use crate::gate::GuestEnv;
use crate::gate::budget::CallBudget;
use crate::gate::client_call::ClientCall;
use crate::gate::deltas::{DeltaBuffer, forward_deltas};
use crate::gate::entry::CallEntry;
use crate::gate::unwind::CallError;
use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::ports::{Caller, Ports};
use crate::quota::ChargedBlobStore;
use crate::text::Escaped;

/// A host call that the gate can perform.
pub trait Effect: HostCall {
    /// Performs the call.
    ///
    /// # Errors
    ///
    /// [`CallError::Failure`] for the guest; [`CallError::Unwind`] if the guest must be unwound
    /// because a tool that it called raised an interrupt.
    fn perform(
        &self,
        context: &EffectContext<'_>,
    ) -> impl Future<Output = Result<Self::Output, CallError>> + Send;
}

/// Context of a host call that the gate performs. A call whose result the gate takes from the
/// journal has no context.
pub struct EffectContext<'a> {
    /// The ports.
    pub ports: &'a Ports,
    /// App, plugin and tenant of the caller.
    pub caller: &'a Caller,
    /// Grants of the plugin.
    pub grants: &'a Grants,
    pub(crate) env: &'a GuestEnv,
    pub(crate) entry: Option<&'a CallEntry>,
    /// Budget of the caller.
    pub(crate) budget: &'a CallBudget,
    /// Number of tool calls around the caller.
    pub(crate) depth: u32,
    /// The call of a client, if a client called the caller or the guest around it.
    pub(crate) client: Option<&'a ClientCall>,
}

impl EffectContext<'_> {
    /// Returns the blob store. Blobs that are stored through it count against the quotas.
    pub(crate) fn blobs(&self) -> ChargedBlobStore<'_> {
        let thread = self.entry.as_ref().map(|entry| {
            let log = &entry.task.log;
            (log.thread(), log.blobs().clone())
        });
        ChargedBlobStore {
            quotas: &self.env.quotas,
            ports: self.ports,
            caller: self.caller,
            thread,
        }
    }

    /// Writes a message of the host to the operator's log and, for a task, to the event log. The
    /// message does not count for the guest's budget: a guest must not be able to suppress what the
    /// host reports about it.
    pub(crate) fn log(&self, level: &str, message: &str) {
        let Caller { app, plugin, .. } = self.caller;
        let text = Escaped(message);
        match level {
            "error" => tracing::error!(%app, %plugin, "{text}"),
            _ => tracing::warn!(%app, %plugin, "{text}"),
        }
        if let Some(entry) = &self.entry {
            entry.task.log(level, message.to_owned(), serde_json::Value::Null);
        }
    }

    /// Calls a model. Adds the messages of the history to the request, which is long work for a
    /// long conversation; a request from [`HostCall::resolved`] has no history. The request counts
    /// as memory of the run, or of the node that a client calls, until the call ends, since a
    /// service may take as long as it wants. Writes the deltas of the completion to the event log as
    /// they arrive, and passes them to `on_deltas`. Logs the tools that the model calls although the
    /// caller lacks the grant to call them.
    pub(crate) async fn complete_streaming(
        &self,
        request: &CompletionRequest,
        on_deltas: impl Fn(&[Delta]),
    ) -> Result<Completion, CallError> {
        let history = request.history.as_deref();
        let repeated_bytes = LazyLock::new(|| history.map_or(0, History::repeated_bytes));
        let is_long = history.is_some_and(|it| is_long_history(it, || *repeated_bytes));
        let held = self.budget.call_memory();
        let expand = || {
            if held.is_of_run() {
                held.raise_to(call_weight(request, *repeated_bytes))?;
            }
            request.expanded()
        };
        let request = block_in_place_in_turn(self.caller.owner, is_long, expand).await?;
        let pieces = DeltaBuffer::default();
        let blobs = self.ports.blobs.as_ref();
        let work = self.ports.model.complete(self.caller, &request, blobs, &pieces);
        let log = self.entry.as_ref().map(|entry| (&entry.task, entry.number));
        let completion = forward_deltas(work, &pieces, log, on_deltas).await?;
        tools::log_not_granted(self, &request, &completion);
        Ok(completion)
    }
}
