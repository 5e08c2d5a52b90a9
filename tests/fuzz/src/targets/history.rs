//! Histories of model calls. The first line is the reference of a guest, each further line an item
//! of the conversation. The model gets the result of a call only directly after the message with
//! the call. Every message has content, and a tool has a name that a guest or the host chose.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use wattle_graph::checkpoint::SharedList;
use wattle_graph::failure::code;
use wattle_graph::llm::{CompletionRequest, History, HistoryReference, Message, Part, Role};

use super::lines;

/// Maximum length of the name that the host chooses for a tool, in bytes.
const NAME_BYTES: usize = 64;

/// Converts the messages of a history.
pub fn run(bytes: &[u8]) {
    let Some((reference, items)) = lines(bytes) else { return };
    let Ok(reference) = serde_json::from_str::<HistoryReference>(reference) else { return };
    let items = items.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let list: SharedList = items.collect();
    let length = list.len();
    let own = Message { role: Role::System, parts: vec![Part::Text("be brief".to_owned())] };
    let request = match CompletionRequest::new("chat", vec![own]).with_history(reference, list) {
        Ok(request) => request,
        Err(failure) => {
            let expected = [code::INVALID, code::NOT_FOUND];
            assert!(expected.contains(&failure.code.as_str()), "{failure}");
            return;
        }
    };
    let history = request.history.as_deref().expect("the request has a history");
    check_history(history, length);
    match request.expanded() {
        Ok(expanded) => check_messages(&expanded.messages, &history.names),
        Err(failure) => {
            let expected = [code::INVALID, code::LIMIT];
            assert!(expected.contains(&failure.code.as_str()), "{failure}");
        }
    }
}

/// Checks the positions of a history, and that it survives a round trip through the log.
fn check_history(history: &History, length: usize) {
    assert!(history.from <= history.to && history.to <= length);
    let document = serde_json::to_value(history).expect("a history can be written");
    let again: History = serde_json::from_value(document.clone()).expect("it can be read");
    assert_eq!(serde_json::to_value(again).expect("it can be written"), document);
    assert!(history.repeated_bytes() == 0 || length + history.append.len() > 0);
}

fn check_messages(messages: &[Message], names: &BTreeMap<String, String>) {
    let mut calls = HashSet::new();
    for message in messages {
        assert!(!message.parts.is_empty());
        if message.role != Role::Tool {
            calls.clear();
        }
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => {
                    assert_eq!(message.role, Role::Assistant);
                    let is_chosen = names.values().any(|name| *name == call.name);
                    assert!(is_chosen || is_accepted(&call.name), "{:?}", call.name);
                    calls.insert(call.id.as_str());
                }
                Part::ToolResult(result) => {
                    assert_eq!(message.role, Role::Tool);
                    assert!(calls.contains(result.call_id.as_str()), "{:?}", result.call_id);
                }
                _ => {}
            }
        }
    }
}

/// Returns true if every provider accepts the name of a tool.
fn is_accepted(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(is_fit)
}
