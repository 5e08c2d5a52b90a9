//! The parameters of commands, and the runs that they request.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_project::agent_server::v2::Subscription;

use super::{CommandError, ErrorCode};
use crate::wire::request::{self, Config, IfNotExists, Modes, Multitask, RunCreate};

/// Stream modes of a run that a command creates. The modes apply to run streams of this run.
const STREAM_MODES: &[&str] = &["values", "updates", "messages-tuple", "custom", "tasks"];

/// The parameters of `run.start`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RunStart {
    /// The id of an assistant, or the name of a graph.
    pub assistant_id: Option<String>,
    /// Channel values, or the answer to a pending interrupt.
    pub input: Option<Value>,
    /// Settings of the run.
    pub config: Option<Config>,
    /// The run context.
    pub context: Option<Value>,
    /// Arbitrary metadata.
    pub metadata: Option<Map<String, Value>>,
    /// Behavior if the thread has an active run. An unknown value selects the default.
    pub multitask_strategy: Option<Value>,
    /// Alias of `multitask_strategy` in older clients.
    #[serde(rename = "multitaskStrategy")]
    pub multitask_strategy_older: Option<Value>,
}

impl RunStart {
    /// Returns the requested run. With `answers`, the input is the answer to the pending interrupt.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidArgument`] if `assistant_id` is missing or empty.
    pub fn request(self, answers: bool) -> Result<RunCreate, CommandError> {
        let Some(assistant_id) = self.assistant_id.filter(|id| !id.is_empty()) else {
            let why = "`run.start` needs an `assistant_id`";
            return Err(CommandError::new(ErrorCode::InvalidArgument, why));
        };
        let strategy = self.multitask_strategy.or(self.multitask_strategy_older);
        let resume = |value| request::RunCommand { resume: Some(value), ..Default::default() };
        let (input, command) = match self.input {
            Some(answer) if answers => (None, Some(resume(answer))),
            input => (input, None),
        };
        Ok(RunCreate {
            input,
            command,
            context: self.context,
            config: self.config,
            metadata: self.metadata,
            multitask_strategy: strategy.and_then(|word| serde_json::from_value(word).ok()),
            ..run_request(assistant_id)
        })
    }

    /// Returns whether the run starts from an earlier checkpoint.
    pub fn is_fork(&self) -> bool {
        let configurable = self.config.as_ref().and_then(|config| config.configurable.as_ref());
        let checkpoint = configurable.and_then(|places| places.get("checkpoint_id"));
        checkpoint.is_some_and(|id| !id.is_null())
    }
}

/// Returns a run of an assistant with the settings that all commands share.
fn run_request(assistant_id: String) -> RunCreate {
    let modes = STREAM_MODES.iter().map(|mode| (*mode).to_owned()).collect();
    RunCreate {
        assistant_id,
        stream_mode: Some(Modes::Many(modes)),
        stream_subgraphs: Some(true),
        stream_resumable: Some(true),
        if_not_exists: Some(IfNotExists::Create),
        multitask_strategy: Some(Multitask::default()),
        ..RunCreate::default()
    }
}

/// The parameters of `input.respond`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct InputRespond {
    /// The id of the interrupt.
    pub interrupt_id: Option<String>,
    /// Answer to the interrupt.
    pub response: Value,
    /// Answers to several interrupts, instead of `interrupt_id` and `response`.
    pub responses: Option<Vec<Response>>,
    /// Channel values to write.
    pub update: Option<Value>,
    /// Nodes to run next.
    pub goto: Option<Value>,
    /// `true` rejects answers to interrupts that are no longer pending when the run starts. By
    /// default, such answers are ignored.
    pub strict_resume: Option<bool>,
    /// Settings of the run.
    pub config: Option<Config>,
    /// Arbitrary metadata.
    pub metadata: Option<Map<String, Value>>,
}

/// The answer to one interrupt.
#[derive(Clone, Debug, Deserialize)]
pub struct Response {
    /// Id of the interrupt.
    pub interrupt_id: String,
    /// Answer to the interrupt.
    #[serde(default)]
    pub response: Value,
}

impl InputRespond {
    /// Returns the answers by interrupt id.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidArgument`] if the parameters contain no interrupt id.
    pub fn answers(&self) -> Result<Map<String, Value>, CommandError> {
        let one = self.interrupt_id.iter().map(|id| (id.clone(), self.response.clone()));
        let answers: Map<String, Value> = match &self.responses {
            Some(many) => {
                many.iter().map(|it| (it.interrupt_id.clone(), it.response.clone())).collect()
            }
            None => one.collect(),
        };
        if answers.is_empty() {
            let why = "`input.respond` needs an `interrupt_id`, or one in each of `responses`";
            return Err(CommandError::new(ErrorCode::InvalidArgument, why));
        }
        Ok(answers)
    }

    /// Returns the requested run.
    pub fn request(self, assistant: String, answers: Map<String, Value>) -> RunCreate {
        let command = request::RunCommand {
            resume: Some(Value::Object(answers)),
            update: self.update.filter(|it| !it.is_null()),
            goto: self.goto.filter(|it| !it.is_null()),
        };
        RunCreate {
            command: Some(command),
            strict_resume: self.strict_resume,
            config: self.config,
            metadata: self.metadata,
            ..run_request(assistant)
        }
    }
}

/// The parameters of `state.get`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GetState {
    /// Path of the subgraph; empty for the root graph.
    pub namespace: Vec<String>,
    /// Channels to return. All channels by default.
    pub keys: Option<Vec<String>>,
}

/// The parameters of `state.listCheckpoints`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListCheckpoints {
    /// Path of the subgraph; empty for the root graph.
    pub namespace: Vec<String>,
    /// Maximum number of checkpoints.
    pub limit: Option<usize>,
    /// Only checkpoints older than this checkpoint.
    pub before: Option<String>,
}

/// The parameters of `state.fork`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StateFork {
    /// Id of the checkpoint from which the run starts.
    pub checkpoint_id: Option<String>,
    /// Channel values to write to the state of the checkpoint.
    pub input: Option<Value>,
    /// Settings of the run.
    pub config: Option<Config>,
}

impl StateFork {
    /// Returns the requested run.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidArgument`] if `checkpoint_id` is missing or empty.
    pub fn request(self, assistant: String) -> Result<RunCreate, CommandError> {
        let Some(checkpoint) = self.checkpoint_id.filter(|id| !id.is_empty()) else {
            let why = "`state.fork` needs a `checkpoint_id`";
            return Err(CommandError::new(ErrorCode::InvalidArgument, why));
        };
        Ok(RunCreate {
            checkpoint_id: Some(checkpoint),
            input: self.input,
            config: self.config,
            ..run_request(assistant)
        })
    }
}

/// The parameters of `agent.getTree`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GetTree {
    /// The id of the run; by default the newest run of the thread.
    pub run_id: Option<String>,
}

/// The parameters of `subscription.subscribe`, and the body of a request for an event stream.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct Subscribe {
    /// Channels to subscribe to.
    #[schema(required = true, min_items = 1)]
    pub channels: Vec<String>,
    /// Namespaces to subscribe to. Includes the namespaces below them. All namespaces by default.
    pub namespaces: Option<Vec<Vec<String>>>,
    /// Maximum depth of the namespaces below those of `namespaces`.
    pub depth: Option<usize>,
    /// Number of the last received event. Only later events are sent.
    pub since: Option<u64>,
}

impl Subscribe {
    /// Converts the parameters to a subscription.
    ///
    /// # Errors
    ///
    /// [`request::RequestError::BadRequest`] if `channels` is empty or contains an unknown channel.
    pub fn subscription(&self) -> Result<Subscription, request::RequestError> {
        let namespaces = self.namespaces.clone().unwrap_or_default();
        Ok(Subscription::new(&self.channels, namespaces, self.depth)?)
    }
}

/// The parameters of `subscription.unsubscribe`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Unsubscribe {
    /// Id of the subscription to end.
    pub subscription_id: String,
}

/// The parameters of `subscription.reconnect`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reconnect {
    /// Id of the last event that the client has received.
    pub last_event_id: Option<String>,
    /// Ids of the subscriptions to restore; all subscriptions of the connection by default.
    pub subscriptions: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<T: serde::de::DeserializeOwned>(params: Value) -> T {
        serde_json::from_value(params).unwrap()
    }

    #[test]
    fn run_start_enqueues_by_default() {
        for (params, strategy) in [
            (json!({}), Multitask::Enqueue),
            (json!({ "multitask_strategy": "rollback" }), Multitask::Rollback),
            (json!({ "multitaskStrategy": "interrupt" }), Multitask::Interrupt),
            (json!({ "multitask_strategy": "reject", "multitaskStrategy": 1 }), Multitask::Reject),
            (json!({ "multitask_strategy": "perhaps" }), Multitask::Enqueue),
        ] {
            let mut params = params;
            params["assistant_id"] = "agent".into();
            let start: RunStart = read(params.clone());
            let request = start.request(false).unwrap();
            assert_eq!(request.multitask_strategy.unwrap_or_default(), strategy, "{params}");
            assert_eq!(request.check(), Ok(()), "{params}");
        }
    }

    #[test]
    fn input_answers_the_pending_interrupt() {
        let start: RunStart = read(json!({ "assistant_id": "agent", "input": { "a": 1 } }));
        assert!(!start.is_fork());
        let request = start.clone().request(true).unwrap();
        assert_eq!(request.input, None);
        assert_eq!(request.command.unwrap().resume, Some(json!({ "a": 1 })));
        let request = start.request(false).unwrap();
        assert_eq!((request.input, request.command), (Some(json!({ "a": 1 })), None));
        let config = json!({ "configurable": { "checkpoint_id": "c" } });
        let start: RunStart = read(json!({ "config": config }));
        assert!(start.is_fork());
        assert_eq!(start.request(false).unwrap_err().code, ErrorCode::InvalidArgument);
    }

    #[test]
    fn respond_answers_one_or_several_interrupts() {
        let one = json!({ "namespace": [], "interrupt_id": "a", "response": "yes" });
        let many = json!({ "responses": [
            { "namespace": [], "interrupt_id": "a", "response": "yes" }, { "interrupt_id": "b" },
        ] });
        for (params, answers) in
            [(one, json!({ "a": "yes" })), (many, json!({ "a": "yes", "b": null }))]
        {
            let respond: InputRespond = read(params);
            assert_eq!(Value::Object(respond.answers().unwrap()), answers);
        }
        for params in [json!({}), json!({ "responses": [] }), json!({ "response": 1 })] {
            let refused = read::<InputRespond>(params).answers().unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidArgument);
        }
    }
}
