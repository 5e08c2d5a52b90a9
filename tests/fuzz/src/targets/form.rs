//! Forms of elicitations, as the parameters of a request of an MCP server. A form that a person
//! gets has only fields of primitive types and no control characters in its texts, and the person
//! can decline.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::elicitation::{Elicitation, ElicitedQuestion};
use wattle_graph::schema::Schema;
use wattle_mcp::parse;
use wattle_run::hostcall::elicit::round_interrupt;

use super::is_clean;

/// The types of fields.
const TYPES: [&str; 5] = ["string", "number", "integer", "boolean", "array"];

/// Parses an elicitation.
pub fn run(bytes: &[u8]) {
    let Ok(Some(question)) = parse::form("server", bytes) else { return };
    assert!(is_clean(&question.message), "{:?}", question.message);
    check_schema(&question.schema);
    match round_interrupt("server", "tool", 0, &elicitation(question)) {
        Ok(ask) => {
            let schema = ask.response_schema.expect("an answer has a schema");
            let schema = Schema::compile(&schema).expect("the host has compiled it");
            assert_eq!(schema.validate(&json!({ "action": "decline" })), Ok(()));
        }
        Err(failure) => assert!(!failure.message.is_empty()),
    }
}

fn elicitation(question: ElicitedQuestion) -> Elicitation {
    let questions = BTreeMap::from([("question".to_owned(), question)]);
    Elicitation { questions, state: None, held: None }
}

fn check_schema(schema: &Value) {
    assert_eq!(schema["type"], "object");
    let fields = schema["properties"].as_object().expect("a form has fields");
    for (name, field) in fields {
        let kind = field["type"].as_str().unwrap_or_default();
        assert!(TYPES.contains(&kind), "`{name}`: {field}");
    }
    check_texts(schema);
}

fn check_texts(value: &Value) {
    match value {
        Value::String(text) => assert!(is_clean(text), "{text:?}"),
        Value::Array(items) => items.iter().for_each(check_texts),
        Value::Object(fields) => fields.values().for_each(check_texts),
        _ => {}
    }
}
