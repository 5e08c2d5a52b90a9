//! Asking a person before a tool is called.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use wattle_plugin::Failure;
use wattle_plugin::interrupt::Question;

use crate::config::Decision;
use crate::conversation::{Content, Stored, StoredCall};
use crate::granted::Tool;

/// What becomes of a call.
pub(crate) enum Verdict {
    /// It is made, perhaps with arguments that a person changed.
    Call {
        /// The tool, by the name that means no other.
        tool: String,
        /// The changed arguments.
        changed: Option<Value>,
    },
    /// It is not made; this is its answer.
    Answered(Box<Stored>),
}

impl Verdict {
    /// Made, perhaps with changed arguments.
    pub(crate) fn made(tool: &Tool, changed: Option<Value>) -> Self {
        Self::Call { tool: tool.exact().to_owned(), changed }
    }

    /// Not made, for a reason that the model reads.
    pub(crate) fn refused(call: &StoredCall, why: impl Into<String>) -> Self {
        Self::Answered(Box::new(Stored::refusal(call, why)))
    }
}

/// What a person answers.
#[derive(Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum Answer {
    Approve,
    Edit { arguments: Value },
    Reject { message: Option<String> },
    Respond { content: String },
}

/// Asks. Until there is an answer, the task stands still.
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

/// One alternative for each decision; changed arguments must fit the tool.
fn response_schema(tool: &Tool, allowed: &BTreeSet<Decision>) -> Value {
    let words = json!({"type": "string"});
    // References of a schema lead from its own root, which it would lose here; the host checks
    // the arguments when the tool is called in any case.
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
