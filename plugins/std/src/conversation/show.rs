//! Conversion of a conversation to messages for a model. The result of each call directly follows
//! the call. Other tool messages are omitted.

use serde_json::{Value, json};
use wattle_plugin::Extra;
use wattle_plugin::message::{Message, Part, Role, ToolCall, ToolResult};

use crate::conversation::{Content, Conversation, SILENT, Stored, block};
use crate::offer::Offer;

/// Content for an error without a text.
const SILENT_ERROR: &str = "the tool failed and gave no reason";

impl Conversation {
    /// Returns the messages for a model.
    pub(crate) fn show(&self, offer: &Offer) -> Vec<Message> {
        let mut shown = Vec::new();
        for (index, message) in self.messages.iter().enumerate() {
            match message.role.as_str() {
                "system" | "developer" => push(&mut shown, Role::System, parts(message)),
                "user" => push(&mut shown, Role::User, parts(message)),
                "assistant" => self.show_assistant(index, offer, &mut shown),
                // A result is added together with its call. Providers reject a result without a
                // call.
                "tool" => {}
                other => push(&mut shown, Role::Other(other.to_owned()), parts(message)),
            }
        }
        shown
    }

    fn show_assistant(&self, index: usize, offer: &Offer, shown: &mut Vec<Message>) {
        let message = &self.messages[index];
        let state = message.provider_state.clone().map(Part::Other);
        let reasoning = message.reasoning.clone().map(Part::Reasoning);
        let mut said: Vec<Part> = state.into_iter().chain(reasoning).collect();
        said.extend(parts(message));
        let (mut results, mut pictures) = (Vec::new(), Vec::new());
        for call in &message.tool_calls {
            let answer = self.answer_to(index, call);
            // If a person changed the arguments, the tool was called with the changed arguments.
            let changed = answer.and_then(|answer| answer.arguments.clone());
            said.push(Part::ToolCall(ToolCall {
                id: call.id.clone(),
                name: offer.model_name(&call.name),
                arguments: changed.unwrap_or_else(|| call.arguments.clone()),
                extra: Extra::new(),
            }));
            if let Some(answer) = answer {
                let (result, seen) = result(&call.id, answer);
                results.push(result);
                pictures.extend(seen);
            }
        }
        push(shown, Role::Assistant, said);
        shown.extend(results);
        if !pictures.is_empty() {
            pictures.insert(0, Part::Text("The images that the tools returned:".to_owned()));
        }
        push(shown, Role::User, pictures);
    }
}

/// Adds a message unless it is empty. Providers reject empty messages.
fn push(shown: &mut Vec<Message>, role: Role, parts: Vec<Part>) {
    if !parts.is_empty() {
        shown.push(Message { role, parts, extra: Extra::new() });
    }
}

/// Returns the parts of a message. Omits empty texts, because providers reject them.
fn parts(message: &Stored) -> Vec<Part> {
    match &message.content {
        Some(Content::Text(text)) if !text.is_empty() => vec![Part::Text(text.clone())],
        Some(Content::Parts(parts)) => {
            let shown = parts.iter().filter_map(|part| shown(part, message));
            shown.filter(|part| !matches!(part, Part::Text(text) if text.is_empty())).collect()
        }
        _ => Vec::new(),
    }
}

/// Converts a part for the model. Only messages of users and tools can contain images, and only
/// messages of the model can contain opaque state and reasoning.
fn shown(part: &Part, message: &Stored) -> Option<Part> {
    let is_own = message.role == "assistant";
    let sees = matches!(message.role.as_str(), "user" | "tool");
    match part {
        Part::Reasoning(text) if !is_own => Some(Part::Text(text.clone())),
        Part::Text(_) | Part::Reasoning(_) => Some(part.clone()),
        Part::Image(image) => Some(block::picture(image, sees)),
        Part::ToolResult(result) => Some(Part::Text(result.content.clone())),
        Part::ToolCall(call) => {
            let call = json!({"type": "tool_call", "name": call.name, "args": call.arguments});
            Some(block::shown(&call, sees))
        }
        Part::Other(value) if block::is_opaque(value) => is_own.then(|| part.clone()),
        Part::Other(value) if is_own && (block::is_thought(value) || is_called(value, message)) => {
            None
        }
        Part::Other(value) => Some(block::shown(value, sees)),
    }
}

/// Returns true if a block is one of the message's tool calls in the format of a provider.
fn is_called(block: &Value, message: &Stored) -> bool {
    let id = ["call_id", "id"].iter().find_map(|name| block.get(name)?.as_str());
    message.tool_calls.iter().any(|call| Some(call.id.as_str()) == id)
}

/// Returns a tool result with its texts, and separately its images, which a tool result cannot
/// contain.
fn result(call_id: &str, answer: &Stored) -> (Message, Vec<Part>) {
    let (pictures, words): (Vec<Part>, Vec<Part>) =
        parts(answer).into_iter().partition(|part| matches!(part, Part::Image(_)));
    let texts: Vec<String> = words.into_iter().filter_map(text).collect();
    let content = match texts.join("\n") {
        text if !text.is_empty() => text,
        _ if answer.is_success() => SILENT.to_owned(),
        _ => SILENT_ERROR.to_owned(),
    };
    let result = ToolResult {
        call_id: call_id.to_owned(),
        content,
        is_error: !answer.is_success(),
        extra: Extra::new(),
    };
    (Message::new(Role::Tool, Part::ToolResult(result)), pictures)
}

fn text(part: Part) -> Option<String> {
    match part {
        Part::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_plugin::message::{Message, Part, Role};

    use crate::conversation::Conversation;
    use crate::offer::Offer;

    fn show(messages: Value) -> Vec<Message> {
        let state = json!({"messages": messages});
        Conversation::read("messages", &state).unwrap().show(&Offer::default())
    }

    fn roles(shown: &[Message]) -> Vec<&Role> {
        shown.iter().map(|message| &message.role).collect()
    }

    #[test]
    fn results_follow_their_calls() {
        let call = |id| json!({"id": id, "name": "date/parse", "arguments": {"a": 1}});
        let shown = show(json!([
            {"role": "tool", "tool_call_id": "nobody", "content": "?"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "reasoning": "hm", "tool_calls": [call("a"), call("b")]},
            {"role": "user", "content": "still there?"},
            {"role": "tool", "tool_call_id": "b", "content": "2", "arguments": {"a": 2}},
            {"role": "tool", "tool_call_id": "a", "content": "no", "status": "error"},
        ]));
        use Role::{Assistant, Tool, User};
        assert_eq!(roles(&shown), [&User, &Assistant, &Tool, &Tool, &User]);
        let [Part::Reasoning(_), Part::ToolCall(a), Part::ToolCall(b)] = &shown[1].parts[..] else {
            panic!("{:?}", shown[1]);
        };
        assert_eq!(
            (&*a.name, &a.arguments["a"], &b.arguments["a"]),
            ("date_parse", &json!(1), &json!(2))
        );
        let Part::ToolResult(first) = &shown[2].parts[0] else { panic!("{:?}", shown[2]) };
        assert_eq!((&*first.call_id, first.is_error), ("a", true));
    }

    #[test]
    fn unsupported_parts_do_not_affect_others() {
        let audio = json!({"type": "audio", "mime_type": "audio/wav", "data": "aGVsbG8="});
        let audio = json!({"other": audio});
        let told = Part::from("[audio audio/wav, 5 bytes, not shown]");
        let picture = json!({"image": {"source": {"url": "https://a/b"}, "media_type": "image/*"}});
        let said = |role: &str, content: Value| {
            let mut shown = show(json!([{"role": role, "content": content}]));
            shown.remove(0).parts
        };
        let parts = said("user", json!([{"text": "look"}, audio, {"text": ""}, picture]));
        assert_eq!(parts[..2], ["look".into(), told.clone()]);
        assert!(matches!(parts[2..], [Part::Image(_)]), "{parts:?}");
        let parts = said("system", json!([audio, picture, {"reasoning": "hm"}]));
        let seen = "[image image/*, https://a/b, not shown]";
        assert_eq!(parts, [told, seen.into(), "hm".into()]);
        let state = json!({"other": {"type": "provider_state", "provider": "google"}});
        assert_eq!(said("user", json!([{"text": "a"}, state])), [Part::from("a")]);
        let parts = said("assistant", json!([state, {"reasoning": "hm"}, {"text": "a"}]));
        assert!(matches!(parts[..], [Part::Other(_), Part::Reasoning(_), Part::Text(_)]));
    }

    #[test]
    fn calls_and_reasoning_in_blocks_are_not_repeated() {
        let block = |block: Value| json!({"other": block});
        let shown = show(json!([
            {"role": "assistant", "tool_calls": [{"id": "a", "name": "draw"}], "content": [
                block(json!({"type": "redacted_thinking", "data": "x"})),
                {"text": "I draw."},
                block(json!({"type": "tool_use", "id": "a", "name": "draw", "input": {}})),
                block(json!({"type": "tool_use", "id": "b", "name": "sing", "input": {}})),
            ]},
            {"role": "tool", "tool_call_id": "a", "content": [
                block(json!({"type": "audio", "mime_type": "audio/wav", "data": "aGVsbG8="})),
            ]},
        ]));
        let [Part::Text(said), Part::Text(sung), Part::ToolCall(_)] = &shown[0].parts[..] else {
            panic!("{:?}", shown[0]);
        };
        assert_eq!((&**said, &**sung), ("I draw.", "[tool_use, sing, 53 bytes, not shown]"));
        let Part::ToolResult(result) = &shown[1].parts[0] else { panic!("{:?}", shown[1]) };
        assert_eq!(result.content, "[audio audio/wav, 5 bytes, not shown]");
    }

    #[test]
    fn results_without_text_are_not_empty() {
        let picture =
            json!({"image": {"source": {"url": "https://a/b.png"}, "media_type": "image/png"}});
        for (content, status, told) in [
            (json!(""), "success", "done"),
            (json!([{"text": ""}]), "success", "done"),
            (json!([picture]), "success", "done"),
            (json!(""), "error", "the tool failed and gave no reason"),
        ] {
            let shown = show(json!([
                {"role": "assistant", "tool_calls": [{"id": "a", "name": "draw"}]},
                {"role": "tool", "tool_call_id": "a", "content": content, "status": status},
            ]));
            let Part::ToolResult(result) = &shown[1].parts[0] else { panic!("{:?}", shown[1]) };
            assert_eq!(result.content, told, "{content}");
        }
    }

    #[test]
    fn images_of_tools_follow_all_results() {
        let picture =
            json!({"image": {"source": {"url": "https://a/b.png"}, "media_type": "image/png"}});
        let shown = show(json!([
            {"role": "assistant", "tool_calls": [{"id": "a", "name": "draw"}]},
            {"role": "tool", "tool_call_id": "a", "content": [{"text": "here"}, picture]},
        ]));
        assert_eq!(roles(&shown), [&Role::Assistant, &Role::Tool, &Role::User]);
        assert_eq!(shown[2].parts.len(), 2);
    }
}
