//! Where a host call is made: the world, on whose behalf, and the place in the journal.

use std::sync::Arc;

use wattle_graph::event::Delta;

use crate::call::llm::{Completion, CompletionRequest};
use crate::gate::pieces::{Pieces, answer_in_pieces};
use crate::gate::task::TaskSide;
use crate::gate::unwind::Stop;
use crate::gate::{Gate, Setting};
use crate::grant::Grants;
use crate::ports::{Caller, Ports};

/// Where a host call is made.
pub struct Site<'a> {
    /// The world.
    pub ports: &'a Ports,
    /// On whose behalf.
    pub caller: &'a Caller,
    /// What is allowed.
    pub grants: &'a Grants,
    pub(crate) setting: &'a Setting,
    pub(crate) entry: Option<Entry<'a>>,
    /// How many tools the caller is inside of.
    pub(crate) depth: u32,
}

/// The place of a call in the journal of its task.
pub(crate) struct Entry<'a> {
    pub task: &'a Arc<TaskSide>,
    pub number: u32,
    /// Where the log says that it was begun before, if nobody knows how it ended.
    pub begun: Option<u64>,
}

impl<'a> Site<'a> {
    pub(crate) fn new(gate: &'a Gate, entry: Option<Entry<'a>>) -> Self {
        let Setting { ports, caller, grants, .. } = &gate.setting;
        Self { ports, caller, grants, setting: &gate.setting, entry, depth: gate.depth }
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
        let log = self.entry.as_ref().map(|entry| (entry.task, entry.number));
        Ok(answer_in_pieces(work, &pieces, log, also).await?)
    }
}
