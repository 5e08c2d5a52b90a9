//! The parts of a message that are used here.

use wattle_plugin::prelude::Value;

/// Prefix of the type of a tool's part, before the name of the tool.
const TOOL: &str = "tool-";

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Part<'a> {
    /// Text.
    Text(&'a str),
    /// Reasoning of the model.
    Reasoning(&'a str),
    /// Start of a model call.
    StepStart,
    /// Name of a file.
    File(&'a str),
    /// A tool call.
    Tool(ToolPart<'a>),
    /// Any other part.
    Other,
}

/// A tool call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ToolPart<'a> {
    /// Name of the tool.
    pub(super) name: &'a str,
    /// Id that the model gave the call.
    pub(super) call_id: &'a str,
    /// Arguments; null if they are unknown.
    pub(super) input: &'a Value,
    /// Result of the call.
    pub(super) answer: Answer<'a>,
}

/// The result of a tool call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Answer<'a> {
    /// No result, yet or at all.
    None,
    /// The output.
    Output(&'a Value),
    /// The error.
    Error(&'a str),
}

impl<'a> Part<'a> {
    /// Parses a part.
    pub(super) fn of(part: &'a Value) -> Self {
        let text = || part["text"].as_str().unwrap_or_default();
        match part["type"].as_str().unwrap_or_default() {
            "text" => Self::Text(text()),
            "reasoning" => Self::Reasoning(text()),
            "step-start" => Self::StepStart,
            "file" => Self::File(part["filename"].as_str().unwrap_or("a file")),
            "dynamic-tool" => Self::tool(part["toolName"].as_str().unwrap_or_default(), part),
            kind => match kind.strip_prefix(TOOL) {
                Some(name) => Self::tool(name, part),
                None => Self::Other,
            },
        }
    }

    fn tool(name: &'a str, part: &'a Value) -> Self {
        let Some(call_id) = part["toolCallId"].as_str().filter(|id| !id.is_empty()) else {
            return Self::Other;
        };
        let is_preliminary = part["preliminary"].as_bool().unwrap_or_default();
        let answer = match part["state"].as_str().unwrap_or_default() {
            "output-available" if !is_preliminary => Answer::Output(&part["output"]),
            "output-error" => Answer::Error(part["errorText"].as_str().unwrap_or_default()),
            _ => Answer::None,
        };
        Self::Tool(ToolPart { name, call_id, input: &part["input"], answer })
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{Answer, Part, ToolPart};

    #[test]
    fn both_kinds_of_tool_parts_are_parsed() {
        let input = json!({"count": 2});
        for kind in [json!("tool-search_image"), json!("dynamic-tool")] {
            let part = json!({"type": kind, "toolName": "search_image", "toolCallId": "c1",
                "state": "output-error", "input": input, "errorText": "no"});
            let read = ToolPart {
                name: "search_image",
                call_id: "c1",
                input: &input,
                answer: Answer::Error("no"),
            };
            assert_eq!(Part::of(&part), Part::Tool(read));
        }
    }

    #[test]
    fn unknown_parts_are_ignored() {
        for part in [
            json!({"type": "data-step", "data": {}}),
            json!({"type": "tool-search_image", "state": "output-available"}),
            json!(7),
            json!({}),
        ] {
            assert_eq!(Part::of(&part), Part::Other, "{part}");
        }
    }
}
