//! Failures as clients of LangGraph servers know them.
//!
//! These show the text of an error to people and compare its name in programs. The engine writes in
//! front of an author's text which node of which plugin failed; on this wire that place has fields of
//! its own.

use std::borrow::Cow;

use serde_json::{Map, Value};
use wattle_graph::failure::{Failure, code};

/// The name of the error of a run that reached its limit of supersteps.
const RECURSION: &str = "GraphRecursionError";

/// A failure as streams and answers show it: `error` (its name), `message`, and `node` and `plugin` if
/// a node failed.
pub fn error_of(failure: &Failure) -> Value {
    let mut shown = Map::new();
    shown.insert("error".to_owned(), name_of(failure).into());
    shown.insert("message".to_owned(), message_of(failure).into());
    shown.extend(place_of(failure));
    Value::Object(shown)
}

/// A failure in one line: its name and its message.
pub fn line_of(failure: &Failure) -> String {
    format!("{}: {}", name_of(failure), message_of(failure))
}

/// The node that failed and its plugin, as fields; none if no node failed.
pub fn place_of(failure: &Failure) -> Map<String, Value> {
    let of = |name: &str| Some((name.to_owned(), fact(failure, name)?.into()));
    ["node", "plugin"].into_iter().filter_map(of).collect()
}

/// What the author of a node said, or the host.
pub fn message_of(failure: &Failure) -> Cow<'_, str> {
    if let Some(allowed) = recursion(failure) {
        let why = &failure.message;
        return format!("Recursion limit of {allowed} reached: {why}").into();
    }
    let (Some(node), Some(plugin)) = (fact(failure, "node"), fact(failure, "plugin")) else {
        return failure.message.as_str().into();
    };
    // Graphs around the node stand in front of its place.
    let place = format!("node `{node}` of plugin `{plugin}`: ");
    failure.message.split_once(&place).map_or(failure.message.as_str(), |(_, text)| text).into()
}

fn name_of(failure: &Failure) -> &str {
    if recursion(failure).is_some() { RECURSION } else { &failure.code }
}

/// The limit of supersteps, of a run that reached it.
fn recursion(failure: &Failure) -> Option<&Value> {
    let is_recursion = failure.code == code::LIMIT && fact(failure, "limit") == Some("recursion");
    failure.details.as_ref().filter(|_| is_recursion)?.get("allowed")
}

fn fact<'f>(failure: &'f Failure, name: &str) -> Option<&'f str> {
    failure.details.as_ref()?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_authors_text_stands_alone_and_its_place_in_fields() {
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
            assert_eq!(line_of(&failure), format!("invalid: {expected}"));
        }
        let of_the_host = Failure::new("busy", "later").with_details(json!(["anything"]));
        assert_eq!(error_of(&of_the_host), json!({ "error": "busy", "message": "later" }));
    }

    #[test]
    fn a_run_without_an_end_has_the_name_that_clients_look_for() {
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
