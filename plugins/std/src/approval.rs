//! Approvals: interrupts before tool calls.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use wattle_plugin::Failure;
use wattle_plugin::interrupt::Question;

use crate::conversation::{Content, Stored, StoredCall};
use crate::granted::Tool;
use crate::rules::Decision;

/// The decision about a call.
pub(crate) enum Verdict {
    /// The call is made, possibly with arguments that a person has changed.
    Call {
        /// Unambiguous name of the tool.
        tool: String,
        /// Arguments that a person has changed.
        changed: Option<Value>,
    },
    /// The call is not made. Contains the result for the model.
    Answered(Box<Stored>),
}

impl Verdict {
    /// Permits the call, possibly with changed arguments.
    pub(crate) fn made(tool: &Tool, changed: Option<Value>) -> Self {
        Self::Call { tool: tool.exact().to_owned(), changed }
    }

    /// Rejects the call with a reason for the model.
    pub(crate) fn refused(call: &StoredCall, why: impl Into<String>) -> Self {
        Self::Answered(Box::new(Stored::refusal(call, why)))
    }
}

/// The answer of a person.
#[derive(Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum Answer {
    Approve,
    Edit { arguments: Value },
    Reject { message: Option<String> },
    Respond { content: String },
}

/// Raises an interrupt and returns the decision of the person. The interrupt suspends the task
/// until the answer arrives.
pub(crate) fn ask(
    call: &StoredCall,
    tool: &Tool,
    allowed: &BTreeSet<Decision>,
) -> Result<Verdict, Failure> {
    let question = Question {
        payload: json!({
            "kind": "tool_approval",
            "tool": call.name,
            "reference": tool.reference,
            "description": tool.description,
            "arguments": call.arguments,
            "call_id": call.id,
            "allowed": allowed,
        }),
        response_schema: Some(response_schema(tool, allowed)),
        ..Question::default()
    };
    Ok(match serde_json::from_value(question.ask()?)? {
        Answer::Approve => Verdict::made(tool, None),
        Answer::Edit { arguments } => Verdict::made(tool, Some(arguments)),
        Answer::Reject { message } => Verdict::refused(call, rejected(message)),
        Answer::Respond { content } => {
            Verdict::Answered(Box::new(Stored::answer(call, Content::Text(content), false)))
        }
    })
}

fn rejected(message: Option<String>) -> String {
    match message.filter(|message| !message.is_empty()) {
        Some(message) => format!("a person rejected the call: {message}"),
        None => "a person rejected the call".to_owned(),
    }
}

/// Returns the schema for the answer, with one alternative per decision. Changed arguments must
/// match the schema of the tool.
fn response_schema(tool: &Tool, allowed: &BTreeSet<Decision>) -> Value {
    let words = json!({"type": "string"});
    // References in a schema are relative to its root, so they are invalid in the nested schema.
    // The host checks the arguments again when it calls the tool.
    let has_references = tool.arguments_schema.to_string().contains("\"$ref\"");
    let arguments =
        if has_references { json!({"type": "object"}) } else { tool.arguments_schema.clone() };
    let alternative = |decision: &Decision| {
        let name = json!(decision);
        let (more, required) = match decision {
            Decision::Approve => (json!({}), json!(["decision"])),
            Decision::Edit => (json!({"arguments": arguments}), json!(["decision", "arguments"])),
            Decision::Reject => (json!({"message": words}), json!(["decision"])),
            Decision::Respond => (json!({"content": words}), json!(["decision", "content"])),
        };
        let mut properties = more;
        properties["decision"] = json!({"const": name});
        json!({"type": "object", "properties": properties, "required": required})
    };
    json!({"oneOf": allowed.iter().map(alternative).collect::<Vec<_>>()})
}
