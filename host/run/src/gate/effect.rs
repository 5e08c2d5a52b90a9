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

use wattle_graph::llm::{Completion, CompletionRequest, Delta};

use crate::gate::Setting;
use crate::gate::entry::Entry;
use crate::gate::pieces::{Pieces, answer_in_pieces};
use crate::gate::unwind::Stop;
use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::ports::{Caller, Ports};
use crate::quota::Charged;

/// A host call that the gate can perform.
pub trait Effect: HostCall {
    /// Performs the call.
    ///
    /// # Errors
    ///
    /// [`Stop::Failure`] for the guest; [`Stop::Unwind`] if the guest must be unwound because a
    /// tool that it called raised an interrupt.
    fn perform(&self, site: &Site<'_>) -> impl Future<Output = Result<Self::Answer, Stop>> + Send;
}

/// Context of a host call that is performed.
pub struct Site<'a> {
    /// The ports.
    pub ports: &'a Ports,
    /// App, plugin and tenant of the caller.
    pub caller: &'a Caller,
    /// Grants of the plugin.
    pub grants: &'a Grants,
    pub(crate) setting: &'a Setting,
    pub(crate) entry: Option<&'a Entry>,
    /// Number of tool calls around the caller.
    pub(crate) depth: u32,
}

impl Site<'_> {
    /// Returns the blob store. Blobs that are stored through it count against the quotas.
    pub(crate) fn blobs(&self) -> Charged<'_> {
        let thread = self.entry.as_ref().map(|entry| {
            let log = &entry.task.log;
            (log.thread(), log.blobs().clone())
        });
        Charged { quotas: &self.setting.quotas, ports: self.ports, caller: self.caller, thread }
    }

    /// Writes a message to the operator's log and, for a task, to the event log.
    pub(crate) fn log(&self, level: &str, message: &str) {
        let Caller { app, plugin, .. } = self.caller;
        match level {
            "error" => tracing::error!(%app, %plugin, "{message}"),
            _ => tracing::warn!(%app, %plugin, "{message}"),
        }
        if let Some(entry) = &self.entry {
            entry.task.log(level, message.to_owned(), serde_json::Value::Null);
        }
    }

    /// Calls a model. Deltas of the completion go to the event log and to `also` as they arrive.
    pub(crate) async fn streaming(
        &self,
        request: &CompletionRequest,
        also: impl Fn(&[Delta]),
    ) -> Result<Completion, Stop> {
        let pieces = Pieces::default();
        let blobs = self.ports.blobs.as_ref();
        let work = self.ports.model.complete(self.caller, request, blobs, &pieces);
        let log = self.entry.as_ref().map(|entry| (&entry.task, entry.number));
        Ok(answer_in_pieces(work, &pieces, log, also).await?)
    }
}
