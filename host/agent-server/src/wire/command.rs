//! Commands of the streaming protocol, and their replies.
//!
//! A command that fails is not an HTTP error: its reply contains the error and the id of the
//! command.

mod params;

use serde_json::{Value, json};
use wattle_api::body::struct_from_map::StructFromMap;
use wattle_run::json::bounded::{JsonBudget, JsonError, JsonLimit};
use wattle_run::json::lenient;

pub use self::params::{
    GetState, GetTree, InputRespond, ListCheckpoints, Reconnect, RunStart, StateFork, Subscribe,
    Unsubscribe,
};

/// A command of the streaming protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Number of the command, which the reply repeats.
    pub id: u64,
    /// Name of the command, such as `run.start`.
    pub method: String,
    /// Parameters of the command; an empty object by default.
    pub params: Value,
}

/// The error code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A parameter is invalid, or the state of the thread does not permit it.
    InvalidArgument,
    /// The name of the command is unknown.
    UnknownCommand,
    /// The command failed.
    UnknownError,
    /// The thread has not run yet, or has no such run.
    NoSuchRun,
    /// The connection has no subscription with the id.
    NoSuchSubscription,
    /// The thread has no graph with the namespace.
    NoSuchNamespace,
    /// The interrupt is not pending.
    NoSuchInterrupt,
    /// The thread has no such checkpoint.
    NoSuchCheckpoint,
    /// The command is not available over this transport.
    NotSupported,
}

impl ErrorCode {
    fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::UnknownCommand => "unknown_command",
            Self::UnknownError => "unknown_error",
            Self::NoSuchRun => "no_such_run",
            Self::NoSuchSubscription => "no_such_subscription",
            Self::NoSuchNamespace => "no_such_namespace",
            Self::NoSuchInterrupt => "no_such_interrupt",
            Self::NoSuchCheckpoint => "no_such_checkpoint",
            Self::NotSupported => "not_supported",
        }
    }
}

/// The error of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// The error code.
    pub code: ErrorCode,
    /// Human-readable message.
    pub message: String,
}

impl CommandError {
    /// Creates an error with a code and a message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns the reply that reports the error. `id` is the id of the command, or `None` if the
    /// message was not a command.
    pub fn reply(&self, id: Option<u64>) -> Value {
        json!({ "type": "error", "id": id, "error": self.code.as_str(), "message": self.message })
    }
}

impl From<JsonLimit> for CommandError {
    fn from(exceeded: JsonLimit) -> Self {
        Self::new(ErrorCode::InvalidArgument, format!("the command cannot be read: {exceeded}"))
    }
}

impl Command {
    /// Parses a command. Unpaired surrogates in it are accepted, see [`lenient::parse_request`].
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidArgument`] if the message is not a command, or exceeds the budget.
    pub fn parse(bytes: &[u8], budget: &JsonBudget) -> Result<Self, CommandError> {
        let invalid = |why: String| CommandError::new(ErrorCode::InvalidArgument, why);
        let mut document: Value = lenient::parse_request(bytes, budget, |bytes| {
            budget.parse_slice(bytes).map_err(|error| match error {
                JsonError::Syntax(error) => {
                    invalid(format!("a command must be valid JSON: {error}"))
                }
                JsonError::Limit(exceeded) => exceeded.into(),
            })
        })?;
        let id = document.get("id").and_then(Value::as_u64);
        let method = document.get("method").and_then(Value::as_str).map(str::to_owned);
        let (Some(id), Some(method)) = (id, method) else {
            let why = "a command must have an `id`, a whole number of at least 0, and a `method`";
            return Err(invalid(why.to_owned()));
        };
        let params = document.get_mut("params").map(Value::take).filter(|it| !it.is_null());
        Ok(Self { id, method, params: params.unwrap_or_else(|| json!({})) })
    }

    /// Parses the parameters.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidArgument`] with the path of the invalid parameter.
    pub fn params<T: serde::de::DeserializeOwned>(&self) -> Result<T, CommandError> {
        let read = serde_path_to_error::deserialize(StructFromMap(&self.params));
        read.map_err(|error| {
            let (method, path) = (&self.method, error.path().to_string());
            let message = format!("`{path}` of `{method}` cannot be read: {}", error.inner());
            CommandError::new(ErrorCode::InvalidArgument, message)
        })
    }
}

/// Returns the reply to a command that succeeded. `through` is the number of the last event that
/// the result includes. Events that the command causes have higher numbers.
pub fn success_reply(id: u64, result: &Value, through: u64) -> Value {
    let meta = json!({ "applied_through_seq": through });
    json!({ "type": "success", "id": id, "result": result, "meta": meta })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Command, CommandError> {
        Command::parse(bytes, &JsonBudget::default())
    }

    #[test]
    fn reply_has_the_id_of_its_command() {
        let command = parse(br#"{"id": 3, "method": "state.get"}"#).unwrap();
        assert_eq!((command.id, command.params), (3, json!({})));
        let answer = success_reply(3, &json!({ "run_id": "r" }), 1_999);
        let expected = json!({
            "type": "success", "id": 3, "result": { "run_id": "r" },
            "meta": { "applied_through_seq": 1_999 },
        });
        assert_eq!(answer, expected);
        let refused = CommandError::new(ErrorCode::NoSuchRun, "no").reply(Some(3));
        let expected = json!({ "type": "error", "id": 3, "error": "no_such_run", "message": "no" });
        assert_eq!(refused, expected);
        assert_eq!(CommandError::new(ErrorCode::NoSuchRun, "no").reply(None)["id"], Value::Null);
    }

    #[test]
    fn unpaired_surrogate_is_replaced() {
        let text = br#"{"id": 1, "method": "run.start", "params": {"a": "caf\ud83d"}}"#;
        let command = parse(text).unwrap();
        assert_eq!(command.params, json!({ "a": "caf\u{fffd}" }));
    }

    #[test]
    fn invalid_command_is_rejected() {
        for text in ["", "{", "[]", "{\"id\": 1}", r#"{"id": -1, "method": "m"}"#, r#"{"id":1.5}"#]
        {
            let refused = parse(text.as_bytes()).unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidArgument, "{text}");
        }
        let command = parse(br#"{"id": 1, "method": "run.start", "params": [1]}"#).unwrap();
        assert_eq!(command.params::<RunStart>().unwrap_err().code, ErrorCode::InvalidArgument);
    }
}
