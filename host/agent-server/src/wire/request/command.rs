//! The `command` of a run request, which replaces the input.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use wattle_project::agent_server::message::ReadContext;

use super::RequestError;
use super::messages::convert_messages;

/// What a run starts with instead of an input: updates of channels, answers to interrupts, or the
/// nodes to run next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Command)]
pub struct RunCommand {
    /// Channel values to write: an object, or an array of `[channel, value]` pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Value>,
    /// Answers to pending interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Value>,
    /// Nodes to run next: a name, an object with `node` and `input`, or an array of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goto: Option<Value>,
}

/// A node that runs next.
#[derive(Clone, Debug, PartialEq)]
pub enum Goto {
    /// A node whose input is the state.
    Node(String),
    /// A node with an input of its own.
    Send {
        /// Name of the node.
        node: String,
        /// Input of the node.
        input: Value,
    },
}

impl RunCommand {
    pub(super) fn is_empty(&self) -> bool {
        self.update.is_none() && self.resume.is_none() && self.goto.is_none()
    }

    /// Returns the channel values to write, in order. Messages are converted to the format of the
    /// host.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unprocessable`] for an update that does not consist of channel values, and
    /// for the first invalid message.
    pub fn read_update(
        &self,
        channels: &BTreeSet<String>,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<(String, Value)>, RequestError> {
        let pairs = match &self.update {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(fields)) => fields.clone().into_iter().collect(),
            Some(Value::Array(pairs)) => pairs.iter().map(pair).collect::<Result<_, _>>()?,
            Some(_) => return Err(invalid_update()),
        };
        let mut read = Vec::with_capacity(pairs.len());
        for (channel, value) in pairs {
            let one = convert_messages(&json!({ &channel: value }), channels, context)?;
            read.push((channel.clone(), one[&channel].clone()));
        }
        Ok(read)
    }

    /// Returns the nodes to run next. Messages in their inputs are converted to the format of the
    /// host.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unprocessable`] for a value without the name of a node.
    pub fn read_goto(
        &self,
        channels: &BTreeSet<String>,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<Goto>, RequestError> {
        let targets = match &self.goto {
            None | Some(Value::Null) => &[],
            Some(Value::Array(targets)) => targets.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        targets.iter().map(|one| goto(one, channels, context)).collect()
    }
}

fn pair(pair: &Value) -> Result<(String, Value), RequestError> {
    match pair.as_array().map(Vec::as_slice) {
        Some([Value::String(channel), value]) => Ok((channel.clone(), value.clone())),
        _ => Err(invalid_update()),
    }
}

fn invalid_update() -> RequestError {
    let why = "`command.update` must be an object of channel values, or an array of pairs";
    RequestError::Unprocessable(why.to_owned())
}

fn goto(
    one: &Value,
    channels: &BTreeSet<String>,
    context: &mut ReadContext<'_>,
) -> Result<Goto, RequestError> {
    let refuse = || {
        let why = "`command.goto` must be the name of a node, an object with `node` and `input`, \
                   or a list of these";
        RequestError::Unprocessable(why.to_owned())
    };
    match one {
        Value::String(node) => Ok(Goto::Node(node.clone())),
        Value::Object(send) => {
            let node = send.get("node").and_then(Value::as_str).ok_or_else(refuse)?.to_owned();
            let input = send.get("input").cloned().unwrap_or_default();
            Ok(Goto::Send { node, input: convert_messages(&input, channels, context)? })
        }
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(body: Value) -> RunCommand {
        serde_json::from_value(body).unwrap()
    }

    fn channels() -> BTreeSet<String> {
        BTreeSet::from(["messages".to_owned()])
    }

    #[test]
    fn command_update_is_an_object_or_a_list_of_pairs() {
        let read = |update: Value| {
            let command = command(json!({ "update": update }));
            let mut context = ReadContext { new_id: &mut || "m".to_owned(), parse: &|_| None };
            command.read_update(&channels(), &mut context)
        };
        let hi = json!([{ "id": "m", "role": "user", "content": "hi" }]);
        let expected = vec![("items".to_owned(), json!(["a"])), ("messages".to_owned(), hi)];
        assert_eq!(read(json!([["items", ["a"]], ["messages", "hi"]])), Ok(expected.clone()));
        assert_eq!(read(json!({ "items": ["a"], "messages": "hi" })), Ok(expected));
        let twice = json!([["items", 1], ["items", 2]]);
        assert_eq!(read(twice).map(|writes| writes.len()), Ok(2));
        assert_eq!(read(Value::Null), Ok(Vec::new()));
        assert!(read(json!("hi")).is_err() && read(json!([["items"]])).is_err());
    }

    #[test]
    fn goto_target_is_a_name_or_an_object_with_an_input() {
        let read = |goto: Value| {
            let command = command(json!({ "goto": goto }));
            let mut context = ReadContext { new_id: &mut || "m".to_owned(), parse: &|_| None };
            command.read_goto(&channels(), &mut context)
        };
        let node = || Goto::Node("a".to_owned());
        assert_eq!(read(json!("a")), Ok(vec![node()]));
        let hi = json!({ "messages": [{ "id": "m", "role": "user", "content": "hi" }] });
        let send = Goto::Send { node: "b".to_owned(), input: hi };
        let both = json!(["a", { "node": "b", "input": { "messages": ["hi"] } }]);
        assert_eq!(read(both), Ok(vec![node(), send]));
        assert!(read(json!(7)).is_err() && read(json!({ "input": 1 })).is_err());
    }
}
