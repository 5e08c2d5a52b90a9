//! Failures in the form that clients of LangGraph servers expect.
//!
//! Clients show the message of an error to people and compare the name of an error in code. The
//! engine prepends the node and the plugin to the message that a node returned. Here, node and
//! plugin are separate fields.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use wattle_graph::failure::{Failure, code};

/// Name of the error of a run that reached its recursion limit, as in LangGraph.
const RECURSION: &str = "GraphRecursionError";

/// Returns a failure as streams and responses show it: `error` (its name), `message`, and `node`
/// and `plugin` if a node failed.
pub fn error_of(failure: &Failure) -> Value {
    let mut shown = Map::new();
    shown.insert("error".to_owned(), name_of(failure).into());
    shown.insert("message".to_owned(), message_of(failure).into());
    shown.extend(place_of(failure));
    Value::Object(shown)
}

/// Returns the error of a thread whose run was cancelled, with the name and message of LangGraph
/// servers.
pub fn cancelled() -> Value {
    json!({ "error": "UserInterrupt", "message": "User interrupted the run" })
}

/// Returns the failure of a task as tasks show it: its message. An empty message is replaced by the
/// name of the error, because clients take an empty error for none.
pub fn task_error(failure: &Failure) -> String {
    let message = message_of(failure);
    if message.is_empty() { name_of(failure).to_owned() } else { message.into_owned() }
}

/// Returns the node that failed and its plugin as fields; an empty map if no node failed.
pub fn place_of(failure: &Failure) -> Map<String, Value> {
    let of = |name: &str| Some((name.to_owned(), detail_text(failure, name)?.into()));
    ["node", "plugin"].into_iter().filter_map(of).collect()
}

/// Returns the message without the prefix that names node and plugin.
pub fn message_of(failure: &Failure) -> Cow<'_, str> {
    if let Some(allowed) = recursion(failure) {
        let why = &failure.message;
        return format!("Recursion limit of {allowed} reached: {why}").into();
    }
    let (Some(node), Some(plugin)) = (detail_text(failure, "node"), detail_text(failure, "plugin"))
    else {
        return failure.message.as_str().into();
    };
    // The message names the nodes of the parent graphs before the failed node.
    let place = format!("node `{node}` of plugin `{plugin}`: ");
    failure.message.split_once(&place).map_or(failure.message.as_str(), |(_, text)| text).into()
}

fn name_of(failure: &Failure) -> &str {
    if recursion(failure).is_some() { RECURSION } else { &failure.code }
}

/// Returns the recursion limit that the run reached; `None` for any other failure.
fn recursion(failure: &Failure) -> Option<&Value> {
    let is_recursion =
        failure.code == code::LIMIT && detail_text(failure, "limit") == Some("recursion");
    failure.details.as_ref().filter(|_| is_recursion)?.get("allowed")
}

/// Returns the string `name` of the details of a failure.
fn detail_text<'f>(failure: &'f Failure, name: &str) -> Option<&'f str> {
    failure.details.as_ref()?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_and_plugin_move_from_the_message_to_fields() {
        let place = json!({ "node": "fail", "plugin": "p" });
        for (message, details, expected) in [
            ("node `fail` of plugin `p`: Boo!", place.clone(), "Boo!"),
            (
                "node `outer`, which is graph `inner`: node `fail` of plugin `p`: Boo!",
                place.clone(),
                "Boo!",
            ),
            ("node `a` of plugin `p`: Boo!", place.clone(), "node `a` of plugin `p`: Boo!"),
            ("Boo!", place, "Boo!"),
        ] {
            let failure = Failure::new("invalid", message).with_details(details);
            let shown = json!({
                "error": "invalid", "message": expected, "node": "fail", "plugin": "p",
            });
            assert_eq!(error_of(&failure), shown);
            assert_eq!(task_error(&failure), expected);
        }
        let of_the_host = Failure::new("busy", "later").with_details(json!(["anything"]));
        assert_eq!(error_of(&of_the_host), json!({ "error": "busy", "message": "later" }));
    }

    #[test]
    fn error_of_a_task_is_never_empty() {
        let place = json!({ "node": "fail", "plugin": "p" });
        let silent = Failure::new("invalid", "node `fail` of plugin `p`: ").with_details(place);
        assert_eq!(task_error(&silent), "invalid");
    }

    #[test]
    fn recursion_limit_is_a_graph_recursion_error() {
        let details = |limit: &str| json!({ "limit": limit, "allowed": 3 });
        let endless = Failure::new(code::LIMIT, "no end").with_details(details("recursion"));
        let shown = json!({
            "error": "GraphRecursionError", "message": "Recursion limit of 3 reached: no end",
        });
        assert_eq!(error_of(&endless), shown);
        let other = Failure::new(code::LIMIT, "too large").with_details(details("memory"));
        assert_eq!(error_of(&other), json!({ "error": "limit", "message": "too large" }));
    }
}
