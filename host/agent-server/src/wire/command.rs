//! Commands of the streaming protocol, and what they are answered.
//!
//! A command that cannot be done is no error of HTTP: its answer says so, under the number that the
//! client gave the command.

mod params;

use serde_json::{Value, json};
use wattle_api::body::objects::Objects;
use wattle_run::json::lenient;

pub use self::params::{
    GetState, GetTree, InputRespond, ListCheckpoints, Reconnect, RunStart, StateFork, Subscribe,
    Unsubscribe,
};

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The number that its answer names.
    pub id: u64,
    /// What is to be done.
    pub method: String,
    /// With what.
    pub params: Value,
}

/// Why a command was not done, in the words that clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// What it says makes no sense, or not now.
    InvalidArgument,
    /// There is no such command.
    UnknownCommand,
    /// It failed.
    UnknownError,
    /// Nothing has run yet.
    NoSuchRun,
    /// Nobody subscribed under that id.
    NoSuchSubscription,
    /// There is no such graph in the thread.
    NoSuchNamespace,
    /// The question is not open.
    NoSuchInterrupt,
    /// There is no such checkpoint.
    NoSuchCheckpoint,
    /// Not by this way.
    NotSupported,
}

impl Code {
    fn word(self) -> &'static str {
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

/// Why a command was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In a word.
    pub code: Code,
    /// For people.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The answer to a command; without a number to something that is none.
    pub fn answer(&self, id: Option<u64>) -> Value {
        json!({ "type": "error", "id": id, "error": self.code.word(), "message": self.message })
    }
}

impl Command {
    /// Reads a command. Half of a character in a text is no reason to refuse it, see [`lenient::request`].
    ///
    /// # Errors
    ///
    /// [`Code::InvalidArgument`] if it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let invalid = |why: String| Refusal::new(Code::InvalidArgument, why);
        let mut document: Value = lenient::request(bytes, |bytes| {
            serde_json::from_slice(bytes)
                .map_err(|error| invalid(format!("a command must be valid JSON: {error}")))
        })?;
        let id = document.get("id").and_then(Value::as_u64);
        let method = document.get("method").and_then(Value::as_str).map(str::to_owned);
        let (Some(id), Some(method)) = (id, method) else {
            let why = "a command needs an `id`, a number from 0 on, and a `method`";
            return Err(invalid(why.to_owned()));
        };
        let params = document.get_mut("params").map(Value::take).filter(|it| !it.is_null());
        Ok(Self { id, method, params: params.unwrap_or_else(|| json!({})) })
    }

    /// Reads its parameters.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidArgument`] with the place in them.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Refusal> {
        let read = serde_path_to_error::deserialize(Objects(&self.params));
        read.map_err(|error| {
            let (method, place) = (&self.method, error.path().to_string());
            let message = format!("`{place}` of `{method}` cannot be read: {}", error.inner());
            Refusal::new(Code::InvalidArgument, message)
        })
    }
}

/// The answer to a command that was done. Everything that led to it has no higher number than
/// `through`, and what it leads to has one.
pub fn done(id: u64, result: &Value, through: u64) -> Value {
    let meta = json!({ "applied_through_seq": through });
    json!({ "type": "success", "id": id, "result": result, "meta": meta })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_answered_by_their_number() {
        let command = Command::parse(br#"{"id": 3, "method": "state.get"}"#).unwrap();
        assert_eq!((command.id, command.params), (3, json!({})));
        let answer = done(3, &json!({ "run_id": "r" }), 1_999);
        let expected = json!({
            "type": "success", "id": 3, "result": { "run_id": "r" },
            "meta": { "applied_through_seq": 1_999 },
        });
        assert_eq!(answer, expected);
        let refused = Refusal::new(Code::NoSuchRun, "no").answer(Some(3));
        let expected = json!({ "type": "error", "id": 3, "error": "no_such_run", "message": "no" });
        assert_eq!(refused, expected);
        assert_eq!(Refusal::new(Code::NoSuchRun, "no").answer(None)["id"], Value::Null);
    }

    #[test]
    fn half_a_character_takes_no_command_away() {
        let text = br#"{"id": 1, "method": "run.start", "params": {"a": "caf\ud83d"}}"#;
        let command = Command::parse(text).unwrap();
        assert_eq!(command.params, json!({ "a": "caf\u{fffd}" }));
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for text in ["", "{", "[]", "{\"id\": 1}", r#"{"id": -1, "method": "m"}"#, r#"{"id":1.5}"#]
        {
            let refused = Command::parse(text.as_bytes()).unwrap_err();
            assert_eq!(refused.code, Code::InvalidArgument, "{text}");
        }
        let command =
            Command::parse(br#"{"id": 1, "method": "run.start", "params": [1]}"#).unwrap();
        assert_eq!(command.read::<RunStart>().unwrap_err().code, Code::InvalidArgument);
    }
}
