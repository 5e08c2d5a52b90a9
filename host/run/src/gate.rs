//! The one place that every host call passes: grant, journal, budget, effect, event.
//!
//! There is one gate for each guest call. A gate with a task behind it answers from the journal
//! what the task was answered before; a gate of a web handler has no journal.
//!
//! # Layout
//!
//! * `path`: the one path of a call; `entry`: the journal entry that a call has on it.
//! * `journal`: what a task was answered; `task`: what a gate needs of its task.
//! * [`effect`]: how calls are performed on the ports, one file for each family.
//! * `clock`, `emit`, `model`, `question`, `runs`, [`stream`], `tools`, [`transaction`]: what guests
//!   ask for, in terms of that path.
//! * `doubt`: calls of which nobody knows how they ended; `elicit`: what the server of a tool asks.
//! * [`HostedApp`] and `started`: what the gate needs of the engine around it, as traits, so that
//!   the gate imports nothing that imports it.

mod clock;
mod doubt;
pub mod effect;
mod elicit;
mod emit;
pub(crate) mod entry;
mod journal;
mod model;
mod path;
mod pieces;
mod question;
mod runs;
mod started;
pub mod stream;
mod task;
mod tools;
pub mod transaction;
pub mod unwind;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::PluginName;
use wattle_graph::tool::ToolOutput;

use crate::cancel::Cancel;
use crate::gate::unwind::{Ended, Stop};
use crate::grant::Grants;
use crate::hostcall::blob;
use crate::hostcall::runs::Runs;
use crate::hostcall::tools::{ToolCall, ToolInfo};
use crate::limit::{self, Limits};
use crate::ports::blob::BlobRef;
use crate::ports::{Caller, Ports};
use crate::quota::Quotas;

pub use self::effect::{Effect, Site};
pub(crate) use self::started::{CallPlace, StartedGraphs};
pub(crate) use self::task::log_lost;
pub use journal::Journal;
pub(crate) use journal::{PastCalls, Scopes, is_in_doubt};
pub use task::TaskSide;

/// What every guest call of a plugin has, whatever it is for.
#[derive(Clone)]
pub struct Setting {
    /// The world.
    pub ports: Ports,
    /// On whose behalf.
    pub caller: Caller,
    /// What is allowed.
    pub grants: Arc<Grants>,
    /// The app of the plugin.
    pub app: Arc<dyn HostedApp>,
    /// Ends the call.
    pub cancel: Cancel,
    /// What threads, apps and tenants may take.
    pub quotas: Arc<Quotas>,
}

/// The app of a guest, as far as guests of it see one another: settings, and the tools of plugins.
#[async_trait]
pub trait HostedApp: Send + Sync {
    /// All settings, an object.
    fn settings(&self) -> &Value;

    /// What a plugin may do.
    fn grants_of(&self, plugin: &PluginName) -> Arc<Grants>;

    /// The tools of a plugin.
    ///
    /// # Errors
    ///
    /// `not-found` if the app has no such plugin.
    fn tools(&self, plugin: &PluginName) -> Result<&[ToolInfo], Failure>;

    /// Calls a tool of a plugin. The gate is that of the tool.
    ///
    /// # Errors
    ///
    /// [`Ended`] if there is no answer.
    async fn call_tool(
        &self,
        plugin: &PluginName,
        call: ToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, Ended>;
}

/// The gate of one guest call.
pub struct Gate {
    setting: Setting,
    task: Option<Arc<TaskSide>>,
    runs: Option<Arc<dyn Runs>>,
    /// How many tools the guest is inside of.
    depth: u32,
}

impl Gate {
    /// The gate of one attempt of a task.
    pub fn for_task(setting: Setting, task: TaskSide) -> Self {
        Self { setting, task: Some(Arc::new(task)), runs: None, depth: 0 }
    }

    /// The gate of a web handler, which may use threads and runs.
    pub fn for_web(setting: Setting, runs: Arc<dyn Runs>) -> Self {
        Self { setting, task: None, runs: Some(runs), depth: 0 }
    }

    /// The gate of a tool that a node or a web handler called.
    pub(crate) fn for_tool(setting: Setting, task: Option<Arc<TaskSide>>, depth: u32) -> Self {
        Self { setting, task, runs: None, depth }
    }

    /// On whose behalf the guest runs.
    pub fn caller(&self) -> &Caller {
        &self.setting.caller
    }

    /// Limits of the guest call, for the sandbox.
    pub fn limits(&self) -> &Limits {
        &self.setting.grants.limits
    }

    /// Reads part of a blob. Not journaled: a reference always names the same bytes.
    ///
    /// # Errors
    ///
    /// `invalid` if it is no reference, and those of the blob store.
    pub async fn blob_get(
        &self,
        blob: &str,
        offset: u64,
        length: Option<u64>,
    ) -> Result<Bytes, Stop> {
        let blob = self.blob_ref(blob)?;
        if let Some(task) = &self.task {
            task.count_bytes(length.unwrap_or(0), self.limits())?;
        }
        Ok(self.setting.ports.blobs.get(blob, offset, length).await?)
    }

    /// The path under which the host serves a blob to the caller's tenant. Not journaled: the
    /// same blob always has the same path. The blob must exist.
    ///
    /// # Errors
    ///
    /// As [`Gate::blob_stat`].
    pub async fn blob_link(&self, blob: &str) -> Result<String, Stop> {
        let info = self.blob_stat(blob).await?;
        Ok(self.setting.ports.links.path(self.caller().tenant.as_deref(), info.blob))
    }

    /// What is known of a blob.
    ///
    /// # Errors
    ///
    /// `invalid` if it is no reference, and those of the blob store.
    pub async fn blob_stat(&self, blob: &str) -> Result<crate::ports::blob::BlobInfo, Stop> {
        let blob = self.blob_ref(blob)?;
        self.call(blob::Stat { blob }).await
    }

    #[expect(clippy::unused_self, reason = "reads as a question to the gate")]
    fn blob_ref(&self, text: &str) -> Result<BlobRef, Failure> {
        BlobRef::parse(text).ok_or_else(|| {
            Failure::new(
                code::INVALID,
                format!("`{text}` is not a blob reference; one is `blob:` and 64 hex digits"),
            )
        })
    }

    /// Writes a message for the operator. Levels: `trace` to `error`, `stdout`, `stderr`.
    pub fn log(&self, level: &str, message: &str, fields: Value) {
        let message: String = message.chars().take(limit::EVENT_BYTES / 4).collect();
        let Caller { app, plugin, .. } = self.caller();
        match level {
            "error" => tracing::error!(%app, %plugin, %fields, "{message}"),
            "warn" => tracing::warn!(%app, %plugin, %fields, "{message}"),
            "trace" | "debug" => tracing::debug!(%app, %plugin, %fields, "{message}"),
            _ => tracing::info!(%app, %plugin, %fields, level, "{message}"),
        }
        if let Some(task) = &self.task {
            task.log(level, message, fields);
        }
    }

    /// All settings of the app, an object.
    pub fn settings(&self) -> &Value {
        self.setting.app.settings()
    }

    /// Threads and runs of the app.
    ///
    /// # Errors
    ///
    /// `unsupported` inside a node.
    pub fn runs(&self) -> Result<&dyn Runs, Failure> {
        self.runs.as_deref().ok_or_else(|| {
            Failure::new(
                code::UNSUPPORTED,
                "a node works on its own thread alone, so that what it does can be repeated after \
                 a crash; it can start a graph of its app and wait for it, a web handler can do \
                 the rest",
            )
            .with_details(json!({ "feature": "runs inside a node" }))
        })
    }

    /// A part of the contract that is not there yet.
    pub fn unsupported(&self, feature: &str) -> Failure {
        tracing::debug!(plugin = %self.caller().plugin, feature, "unsupported host call");
        Failure::unsupported(feature)
    }
}
