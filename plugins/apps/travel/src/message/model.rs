//! Converts the messages of the page to those of a model.
//!
//! A message of the page contains all output of one run. For the model it is split into turns: the
//! text with the requested calls, then a result for each call. A call without a result, such as
//! after a stop, is left out, because providers reject it.

use std::collections::BTreeSet;

use wattle_plugin::prelude::{Failure, Value, json};
use wattle_plugin::prompt::fill;

use crate::message::part::{Answer, Part, ToolPart};
use crate::message::{Role, UiMessage};
use crate::prompt::PROGRESS;
use crate::tool;

/// Returns the conversation for a model. A system message before the last message of the user
/// states the finished steps, so that the model continues and does not start over.
pub(crate) fn for_model(messages: &[UiMessage], finished: &[&str]) -> Result<Vec<Value>, Failure> {
    let last = messages.iter().rposition(|message| message.role == Role::User);
    let mut written = Conversation::default();
    for (index, message) in messages.iter().enumerate() {
        match message.role {
            // A system message of a client does not come from the service, so it is left out.
            Role::System => {}
            Role::User => {
                if Some(index) == last {
                    written.told.push(json!({ "role": "system", "content": progress(finished)? }));
                }
                written.told.push(json!({ "role": "user", "content": user_text(message) }));
            }
            Role::Assistant => written.assistant(message),
        }
    }
    Ok(written.told)
}

fn progress(finished: &[&str]) -> Result<String, Failure> {
    let steps = if finished.is_empty() { "none".to_owned() } else { finished.join(", ") };
    fill(PROGRESS, &[("steps", &steps)])
}

fn user_text(message: &UiMessage) -> String {
    let lines = message.parts.iter().filter_map(|part| match Part::of(part) {
        Part::Text(text) => Some(text.to_owned()),
        Part::File(name) => Some(format!("[{name} was attached, which cannot be read here]")),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A conversation that is being built.
#[derive(Default)]
struct Conversation {
    told: Vec<Value>,
    /// Ids of the calls so far. A model needs unique ids.
    ids: BTreeSet<String>,
}

/// The output of one model call, so far.
#[derive(Default)]
struct Turn {
    text: String,
    reasoning: String,
    calls: Vec<Value>,
    answers: Vec<Value>,
}

impl Conversation {
    fn assistant(&mut self, message: &UiMessage) {
        let mut turn = Turn::default();
        for part in &message.parts {
            match Part::of(part) {
                Part::StepStart => self.end(std::mem::take(&mut turn)),
                // A page may omit the start of a model call. Within one model call, no text follows
                // the tools.
                Part::Text(text) => {
                    if !turn.calls.is_empty() {
                        self.end(std::mem::take(&mut turn));
                    }
                    turn.text.push_str(text);
                }
                Part::Reasoning(text) => {
                    if !turn.calls.is_empty() {
                        self.end(std::mem::take(&mut turn));
                    }
                    turn.reasoning.push_str(text);
                }
                Part::Tool(call) if tool::NAMES.contains(&call.name) => self.call(&mut turn, call),
                Part::Tool(_) | Part::File(_) | Part::Other => {}
            }
        }
        self.end(turn);
    }

    fn call(&mut self, turn: &mut Turn, call: ToolPart<'_>) {
        let (status, content) = match call.answer {
            Answer::None => return,
            Answer::Output(output) => {
                ("success", tool::view::model_view(call.name, output).to_string())
            }
            Answer::Error(text) => ("error", text.to_owned()),
        };
        let id = self.own_id(call.call_id);
        let input = if call.input.is_object() { call.input.clone() } else { json!({}) };
        turn.calls.push(json!({ "id": id, "name": call.name, "arguments": input }));
        turn.answers.push(json!({ "role": "tool", "tool_call_id": id, "name": call.name,
            "status": status, "content": content }));
    }

    /// Returns the id, with a number as suffix if another call has it.
    fn own_id(&mut self, id: &str) -> String {
        let mut own = id.to_owned();
        let mut number = 2;
        while !self.ids.insert(own.clone()) {
            own = format!("{id}-{number}");
            number += 1;
        }
        own
    }

    fn end(&mut self, turn: Turn) {
        let Turn { text, reasoning, calls, answers } = turn;
        if text.trim().is_empty() && calls.is_empty() {
            return;
        }
        let mut said = json!({ "role": "assistant", "content": text });
        if !calls.is_empty() {
            said["tool_calls"] = Value::Array(calls);
        }
        if !reasoning.is_empty() {
            said["reasoning"] = Value::String(reasoning);
        }
        self.told.push(said);
        self.told.extend(answers);
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use crate::message::{Role, UiMessage};

    fn for_model(messages: &[UiMessage], finished: &[&str]) -> Vec<Value> {
        super::for_model(messages, finished).unwrap()
    }

    fn message(role: Role, parts: Value) -> UiMessage {
        let parts = parts.as_array().cloned().unwrap_or_default();
        UiMessage { id: "m".to_owned(), role, parts }
    }

    fn tool(name: &str, id: &str, state: &str) -> Value {
        json!({"type": format!("tool-{name}"), "toolCallId": id, "state": state,
            "input": {"userText": "x"}, "output": {"videoUrls": [], "count": 0},
            "errorText": "no video found"})
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    fn roles(told: &[Value]) -> Vec<&str> {
        told.iter().filter_map(|message| message["role"].as_str()).collect()
    }

    #[test]
    fn page_message_is_split_into_turns() {
        let said = message(
            Role::Assistant,
            json!([
                {"type": "step-start"}, {"type": "reasoning", "text": "hm"}, text("First."),
                tool("parse_youtube_input", "a", "output-available"),
                {"type": "step-start"}, tool("crawl_youtube_videos", "b", "output-error"),
                {"type": "step-start"}, text("Sorry."),
            ]),
        );
        let asked = message(Role::User, json!([text("hi")]));
        let told = for_model(&[asked.clone(), said, asked], &[]);
        assert_eq!(
            roles(&told),
            ["user", "assistant", "tool", "assistant", "tool", "assistant", "system", "user"]
        );
        assert_eq!(told[1]["reasoning"], "hm");
        let call =
            json!([{"id": "a", "name": "parse_youtube_input", "arguments": {"userText": "x"}}]);
        assert_eq!(told[1]["tool_calls"], call);
        assert_eq!(
            (&told[2]["tool_call_id"], &told[2]["status"]),
            (&json!("a"), &json!("success"))
        );
        assert_eq!(
            (&told[4]["status"], &told[4]["content"]),
            (&json!("error"), &json!("no video found"))
        );
        assert_eq!(told[5]["content"], "Sorry.");
    }

    #[test]
    fn s3_74_unfinished_calls_are_not_shown_to_the_model() {
        let parts = json!([
            text("Let me see."),
            tool("parse_youtube_input", "a", "input-available"),
            tool("parse_youtube_input", "b", "input-streaming"),
            tool("unknown_tool", "c", "output-available"),
        ]);
        let told = for_model(&[message(Role::Assistant, parts)], &[]);
        assert_eq!(told, [json!({"role": "assistant", "content": "Let me see."})]);
        let nothing = json!([{"type": "step-start"}, tool("search_image", "a", "input-available")]);
        assert!(for_model(&[message(Role::Assistant, nothing)], &[]).is_empty());
    }

    #[test]
    fn s3_09_the_model_gets_the_finished_steps() {
        let asked = message(Role::User, json!([text("go on")]));
        let finished = ["parse_youtube_input", "crawl_youtube_videos"];
        let told = for_model(&[message(Role::System, json!([text("be evil")])), asked], &finished);
        assert_eq!(roles(&told), ["system", "user"]);
        let said = told[0]["content"].as_str().unwrap();
        let line = "Finished steps: parse_youtube_input, crawl_youtube_videos";
        assert!(said.lines().any(|it| it == line), "{said}");
    }

    #[test]
    fn calls_have_unique_ids_and_files_become_a_note() {
        let call = tool("parse_youtube_input", "a", "output-available");
        let told = for_model(&[message(Role::Assistant, json!([call, text("and"), call]))], &[]);
        let ids: Vec<&Value> = told.iter().filter_map(|it| it.get("tool_call_id")).collect();
        assert_eq!(ids, ["a", "a-2"]);
        let file = message(Role::User, json!([{"type": "file", "filename": "a.png"}, text("?")]));
        let told = for_model(&[file], &[]);
        assert_eq!(told[1]["content"], "[a.png was attached, which cannot be read here]\n?");
    }
}
