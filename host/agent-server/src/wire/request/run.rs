//! A run that a client asks for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_project::agent_server::document::Checkpoint;
use wattle_project::agent_server::message;
use wattle_run::hostcall::runs;

use super::{Command, Invalid, Modes};

/// What happens if the thread is at work already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Multitask {
    /// The request is refused.
    Reject,
    /// The run that is at work is cancelled; what it did stays.
    Interrupt,
    /// The run that is at work is cancelled and taken away.
    Rollback,
    /// The run waits for its turn.
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

/// What happens if there is no such thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfMissing {
    /// It is made.
    Create,
    /// The request is refused.
    #[default]
    Reject,
}

/// What happens to the run when its client leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disconnect {
    /// It is cancelled.
    Cancel,
    /// It goes on.
    #[default]
    Continue,
}

/// What happens at its end to the thread that a run without one was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// It is deleted.
    #[default]
    Delete,
    /// It stays.
    Keep,
}

/// How a run is cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelAction {
    /// What it did stays.
    #[default]
    Interrupt,
    /// The run and what it did are taken away.
    Rollback,
}

/// Some nodes, or all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Nodes {
    /// `*`, or the name of one.
    One(String),
    /// By name.
    Some(Vec<String>),
}

impl Nodes {
    /// The names; `None` stands for all.
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
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Supersteps it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursion_limit: Option<u32>,
    /// Values for the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurable: Option<Map<String, Value>>,
    /// Free facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Tasks of a superstep that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
}

/// Answers to open questions.
#[derive(Clone, Debug, PartialEq)]
pub enum Resume {
    /// To the only one that is open.
    Only(Value),
    /// By id.
    ById(BTreeMap<String, Value>),
}

/// A run that a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunCreate {
    /// What runs: the id of an assistant, or the name of a graph.
    #[schema(required = true, min_length = 1)]
    pub assistant_id: String,
    /// Channel values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What to begin with in place of an input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// Settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// What nodes are handed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// Free facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The checkpoint to go on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// The same by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// Whom to tell of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri", max_length = 2048)]
    pub webhook: Option<String>,
    /// Nodes before which it stands still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_before: Option<Nodes>,
    /// Nodes after which it stands still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_after: Option<Nodes>,
    /// What the client wants to see of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_mode: Option<Modes>,
    /// Whether it wants to see subgraphs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_subgraphs: Option<bool>,
    /// Whether it may come back to the stream; here it always may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_resumable: Option<bool>,
    /// Keys of a feedback service, of which this server has none: nothing is sent for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback_keys: Option<Vec<String>>,
    /// What happens if the thread is at work already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multitask_strategy: Option<Multitask>,
    /// What happens if there is no such thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_not_exists: Option<IfMissing>,
    /// What happens when the client leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<Disconnect>,
    /// What happens at its end to a thread of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_completion: Option<Completion>,
    /// Seconds until it may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub after_seconds: Option<f64>,
    /// What waits for the disk: `sync`, `async` or `exit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(sync|async|exit)$")]
    pub durability: Option<String>,
    /// The same as older clients write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_during: Option<bool>,
}

impl RunCreate {
    /// Whether its values make sense by themselves and together.
    ///
    /// # Errors
    ///
    /// [`Invalid`], the first that does not.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.assistant_id.is_empty() {
            return Err(Invalid::Schema("`assistant_id` of the request is missing".to_owned()));
        }
        Modes::read(self.stream_mode.as_ref())?;
        self.check_durability()?;
        if self.has_configurable() && self.context.as_ref().is_some_and(|it| !is_nothing(it)) {
            return Err(Invalid::Value(
                "`config.configurable` and `context` cannot both be given; use `context`"
                    .to_owned(),
            ));
        }
        if self.input().is_some_and(|it| !is_nothing(it)) && self.command().is_some() {
            let why = "`input` and `command` cannot both be given".to_owned();
            return Err(Invalid::Value(why));
        }
        if self.after_seconds.is_some_and(|after| !after.is_finite() || after < 0.0) {
            return Err(Invalid::Schema("`after_seconds` must not be negative".to_owned()));
        }
        Ok(())
    }

    fn check_durability(&self) -> Result<(), Invalid> {
        match self.durability.as_deref() {
            None | Some("sync" | "async" | "exit") => Ok(()),
            Some(other) => {
                Err(Invalid::Schema(format!("`{other}` is no durability; use sync, async or exit")))
            }
        }
    }

    fn has_configurable(&self) -> bool {
        let given = self.config.as_ref().and_then(|config| config.configurable.as_ref());
        given.is_some_and(|given| !given.is_empty())
    }

    /// The input, if there is one.
    pub fn input(&self) -> Option<&Value> {
        self.input.as_ref().filter(|input| !input.is_null())
    }

    /// The command, if it says anything.
    pub fn command(&self) -> Option<&Command> {
        self.command.as_ref().filter(|command| !command.is_empty())
    }

    /// What nodes are handed: the context, or the values of the configuration.
    pub fn run_context(&self) -> Value {
        let context = self.context.clone().filter(|context| !is_nothing(context));
        let configured = || {
            let config = self.config.as_ref()?;
            config.configurable.clone().filter(|it| !it.is_empty()).map(Value::Object)
        };
        context.or_else(configured).unwrap_or_default()
    }

    /// The input with its messages in our form.
    ///
    /// # Errors
    ///
    /// [`Invalid::Schema`] with the first message that is none.
    pub fn read_input(
        &self,
        channels: &BTreeSet<String>,
        fresh: message::Fresh<'_>,
    ) -> Result<Option<Value>, Invalid> {
        self.input().map(|input| read_values(input, channels, fresh)).transpose()
    }

    /// The checkpoint that it goes on from.
    pub fn checkpoint_id(&self) -> Option<&str> {
        let of_address = || self.checkpoint.as_ref()?.id();
        self.checkpoint_id.as_deref().or_else(of_address)
    }

    /// Which graph's checkpoint it goes on from; the thread's own if empty.
    pub fn checkpoint_ns(&self) -> &str {
        self.checkpoint.as_ref().map_or("", |checkpoint| &checkpoint.checkpoint_ns)
    }
}

impl Command {
    /// The answers: by id if every key of an object is the id of a question.
    pub fn resume(&self, open: &[String]) -> Option<Resume> {
        let answer = self.resume.as_ref()?;
        let by_id = answer.as_object().filter(|answers| {
            !answers.is_empty() && answers.keys().all(|id| open.contains(id) || is_id(id))
        });
        Some(match by_id {
            Some(answers) => Resume::ById(answers.clone().into_iter().collect()),
            None => Resume::Only(answer.clone()),
        })
    }
}

/// Whether it looks like the id of a question.
fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// Reads the messages of an input or an update; other channels stay as they are.
///
/// # Errors
///
/// [`Invalid::Schema`] with the first message that is none.
pub(super) fn read_values(
    values: &Value,
    channels: &BTreeSet<String>,
    fresh: message::Fresh<'_>,
) -> Result<Value, Invalid> {
    let Value::Object(values) = values else { return Ok(values.clone()) };
    let read = |(name, value): (&String, &Value)| {
        if !channels.contains(name) || value.is_null() {
            return Ok((name.clone(), value.clone()));
        }
        let messages = message::from_wire_all(value, fresh);
        let messages = messages.map_err(|why| Invalid::Schema(format!("`{name}`: {why}")))?;
        Ok((name.clone(), messages))
    };
    values.iter().map(read).collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

/// Runs that are to be cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CancelRuns {
    /// The thread of `run_ids`.
    pub thread_id: Option<String>,
    /// These runs.
    pub run_ids: Option<Vec<String>>,
    /// All runs in this status: `pending`, `running` or `all`.
    #[schema(pattern = "^(pending|running|all)$")]
    pub status: Option<String>,
}

impl CancelRuns {
    /// Whether it names runs in one way.
    ///
    /// # Errors
    ///
    /// [`Invalid::Schema`] if it names none, or in two ways.
    pub fn check(&self) -> Result<(), Invalid> {
        let refuse = |why: &str| Err(Invalid::Schema(why.to_owned()));
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
