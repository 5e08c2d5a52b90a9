//! How host calls are performed: one file for each family of ports.
//!
//! [`crate::hostcall`] says what a call is; here is what it does. Only the gate performs calls, once it
//! has checked and recorded what has to be.

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
    /// Makes the call.
    ///
    /// # Errors
    ///
    /// [`Stop::Failure`] for the guest; [`Stop::Unwind`] if it must end, since a tool that it
    /// called waits for a person.
    fn perform(&self, site: &Site<'_>) -> impl Future<Output = Result<Self::Answer, Stop>> + Send;
}

/// Where a host call is made: the world, on whose behalf, and the place in the journal.
pub struct Site<'a> {
    /// The world.
    pub ports: &'a Ports,
    /// On whose behalf.
    pub caller: &'a Caller,
    /// What is allowed.
    pub grants: &'a Grants,
    pub(crate) setting: &'a Setting,
    pub(crate) entry: Option<&'a Entry>,
    /// How many tools the caller is inside of.
    pub(crate) depth: u32,
}

impl Site<'_> {
    /// The blobs of the host; what is put there is counted.
    pub(crate) fn blobs(&self) -> Charged<'_> {
        let thread = self.entry.as_ref().map(|entry| {
            let log = &entry.task.log;
            (log.thread(), log.blobs().clone())
        });
        Charged { quotas: &self.setting.quotas, ports: self.ports, caller: self.caller, thread }
    }

    /// A message for the operator, in the thread's log if there is one.
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

    /// Calls a model; its answer goes to the event log, and to `also`, in pieces as it arrives.
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
