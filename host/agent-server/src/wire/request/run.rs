//! A run request.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_project::agent_server::document::Checkpoint;
use wattle_project::agent_server::message::ReadContext;
use wattle_run::hostcall::runs;

use super::messages::convert_messages;
use super::{Modes, RequestError, RunCommand};

/// Multitask strategy: the behavior if the thread has an active run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Multitask {
    /// The request is rejected.
    Reject,
    /// The active run is cancelled. Its writes are kept.
    Interrupt,
    /// The active run is cancelled and deleted together with its writes.
    Rollback,
    /// The new run waits in the queue of the thread.
    #[default]
    Enqueue,
}

impl From<Multitask> for runs::Multitask {
    fn from(strategy: Multitask) -> Self {
        match strategy {
            Multitask::Reject => Self::Reject,
            Multitask::Interrupt => Self::Interrupt,
            Multitask::Rollback => Self::Rollback,
            Multitask::Enqueue => Self::Enqueue,
        }
    }
}

impl From<runs::Multitask> for Multitask {
    fn from(strategy: runs::Multitask) -> Self {
        match strategy {
            runs::Multitask::Reject => Self::Reject,
            runs::Multitask::Interrupt => Self::Interrupt,
            runs::Multitask::Rollback => Self::Rollback,
            runs::Multitask::Enqueue => Self::Enqueue,
        }
    }
}

/// Behavior if the thread does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = IfMissing)]
pub enum IfNotExists {
    /// The thread is created.
    Create,
    /// The request is rejected.
    #[default]
    Reject,
}

/// Behavior when the client of the run disconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Disconnect)]
pub enum OnDisconnect {
    /// The run is cancelled.
    Cancel,
    /// The run continues.
    #[default]
    Continue,
}

/// What happens to the thread of a stateless run after the run has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Completion)]
pub enum OnCompletion {
    /// The thread is deleted.
    #[default]
    Delete,
    /// The thread is kept.
    Keep,
}

/// Effect of a cancellation on the writes of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelAction {
    /// The writes of the run are kept.
    #[default]
    Interrupt,
    /// The run is deleted together with its writes.
    Rollback,
}

/// A selection of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Nodes)]
pub enum NodeSelection {
    /// `*` for all nodes, or the name of one node.
    One(String),
    /// Names of nodes.
    Some(Vec<String>),
}

impl NodeSelection {
    /// Returns the names of the nodes; `None` for all nodes.
    pub fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::One(all) if all == "*" => None,
            Self::One(name) => Some(vec![name.clone()]),
            Self::Some(names) if names.iter().any(|name| name == "*") => None,
            Self::Some(names) => Some(names.clone()),
        }
    }
}

/// Settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Config {
    /// Tags of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Maximum number of supersteps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursion_limit: Option<u32>,
    /// Run context. Clients that send `context` leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurable: Option<Map<String, Value>>,
    /// Arbitrary metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Maximum number of tasks of a superstep that run in parallel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
}

/// A run request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunCreate {
    /// Id of an assistant, or name of a graph.
    #[schema(required = true, min_length = 1)]
    pub assistant_id: String,
    /// Channel values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Command with which the run starts instead of an input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<RunCommand>,
    /// `true` rejects answers to interrupts that are not pending. By default, such answers are
    /// ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_resume: Option<bool>,
    /// Settings of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// The run context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// Arbitrary metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Checkpoint from which the run starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// Id of the checkpoint from which the run starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// URL that is notified when the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri", max_length = 2048)]
    pub webhook: Option<String>,
    /// Nodes before which the run stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_before: Option<NodeSelection>,
    /// Nodes after which the run stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_after: Option<NodeSelection>,
    /// Stream modes of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_mode: Option<Modes>,
    /// Whether the stream includes subgraphs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_subgraphs: Option<bool>,
    /// Whether the stream can be resumed. Has no effect: every stream of this server can be
    /// resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_resumable: Option<bool>,
    /// Keys for a feedback service. Has no effect: this server has no feedback service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback_keys: Option<Vec<String>>,
    /// Behavior if the thread has an active run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multitask_strategy: Option<Multitask>,
    /// Behavior if the thread does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_not_exists: Option<IfNotExists>,
    /// Behavior when the client disconnects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// What happens to the thread of a stateless run after the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_completion: Option<OnCompletion>,
    /// Delay before the run starts, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub after_seconds: Option<f64>,
    /// Durability of the run: `sync`, `async` or `exit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(sync|async|exit)$")]
    pub durability: Option<String>,
    /// Durability in requests of older clients: `false` selects `exit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_during: Option<bool>,
}

impl RunCreate {
    /// Checks the values and their combinations.
    ///
    /// # Errors
    ///
    /// [`RequestError`] for the first invalid value.
    pub fn check(&self) -> Result<(), RequestError> {
        if self.assistant_id.is_empty() {
            return Err(RequestError::Unprocessable(
                "`assistant_id` of the request is missing".to_owned(),
            ));
        }
        Modes::parse(self.stream_mode.as_ref())?;
        self.check_durability()?;
        if self.has_configurable() && self.context.as_ref().is_some_and(|it| !is_empty_value(it)) {
            return Err(RequestError::BadRequest(
                "`config.configurable` and `context` cannot both be given; use `context`"
                    .to_owned(),
            ));
        }
        if self.input().is_some_and(|it| !is_empty_value(it)) && self.command().is_some() {
            let why = "`input` and `command` cannot both be given".to_owned();
            return Err(RequestError::BadRequest(why));
        }
        if self.after_seconds.is_some_and(|after| !after.is_finite() || after < 0.0) {
            return Err(RequestError::Unprocessable(
                "`after_seconds` must not be negative".to_owned(),
            ));
        }
        Ok(())
    }

    fn check_durability(&self) -> Result<(), RequestError> {
        match self.durability.as_deref() {
            None | Some("sync" | "async" | "exit") => Ok(()),
            Some(other) => {
                let why = format!("`{other}` is not a durability; use sync, async or exit");
                Err(RequestError::Unprocessable(why))
            }
        }
    }

    fn has_configurable(&self) -> bool {
        let given = self.config.as_ref().and_then(|config| config.configurable.as_ref());
        given.is_some_and(|given| !given.is_empty())
    }

    /// Returns the input. Returns `None` for a missing input and for `null`.
    pub fn input(&self) -> Option<&Value> {
        self.input.as_ref().filter(|input| !input.is_null())
    }

    /// Returns the command. Returns `None` for an empty command.
    pub fn command(&self) -> Option<&RunCommand> {
        self.command.as_ref().filter(|command| !command.is_empty())
    }

    /// Returns the run context: `context`, or else `config.configurable`.
    pub fn run_context(&self) -> Value {
        let context = self.context.clone().filter(|context| !is_empty_value(context));
        let configured = || {
            let config = self.config.as_ref()?;
            config.configurable.clone().filter(|it| !it.is_empty()).map(Value::Object)
        };
        context.or_else(configured).unwrap_or_default()
    }

    /// Returns the input. Messages are converted to the format of the host.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unprocessable`] for the first invalid message.
    pub fn read_input(
        &self,
        channels: &BTreeSet<String>,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<Value>, RequestError> {
        self.input().map(|input| convert_messages(input, channels, context)).transpose()
    }

    /// Returns the id of the checkpoint from which the run starts.
    pub fn checkpoint_id(&self) -> Option<&str> {
        let of_address = || self.checkpoint.as_ref()?.id();
        self.checkpoint_id.as_deref().or_else(of_address)
    }

    /// Returns the namespace of the checkpoint from which the run starts; empty for the root graph.
    pub fn checkpoint_ns(&self) -> &str {
        self.checkpoint.as_ref().map_or("", |checkpoint| &checkpoint.checkpoint_ns)
    }
}

fn is_empty_value(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// A request to cancel several runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CancelRuns {
    /// Thread of the runs in `run_ids`.
    pub thread_id: Option<String>,
    /// Ids of the runs to cancel.
    pub run_ids: Option<Vec<String>>,
    /// Cancels all runs with this status: `pending`, `running` or `all`.
    #[schema(pattern = "^(pending|running|all)$")]
    pub status: Option<String>,
}

impl CancelRuns {
    /// Checks that the request selects runs either by status or by ids.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unprocessable`] if the request selects no runs, or uses both ways.
    pub fn check(&self) -> Result<(), RequestError> {
        let refuse = |why: &str| Err(RequestError::Unprocessable(why.to_owned()));
        match (&self.status, &self.thread_id, &self.run_ids) {
            (Some(status), None, None) if matches!(&**status, "pending" | "running" | "all") => {
                Ok(())
            }
            (Some(_), None, None) => refuse("`status` must be pending, running or all"),
            (None, Some(_), Some(_)) => Ok(()),
            _ => refuse("name either `status`, or `thread_id` and `run_ids`"),
        }
    }
}
