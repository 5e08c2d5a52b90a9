//! Parts of a message, as far as they mean something here.

use wattle_plugin::prelude::Value;

/// What the type of a tool's part begins with; the name of the tool follows.
const TOOL: &str = "tool-";

/// One part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Part<'a> {
    /// Text.
    Text(&'a str),
    /// What the model thought.
    Reasoning(&'a str),
    /// A model call begins.
    StepStart,
    /// A file, by its name.
    File(&'a str),
    /// A tool was called.
    Tool(ToolPart<'a>),
    /// Nothing that is known here.
    Other,
}

/// A call of a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ToolPart<'a> {
    /// The tool.
    pub(super) name: &'a str,
    /// The model's id of the call.
    pub(super) call_id: &'a str,
    /// What it was called with; null if it is not known.
    pub(super) input: &'a Value,
    /// What it answered.
    pub(super) answer: Answer<'a>,
}

/// What a tool answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Answer<'a> {
    /// Nothing yet, or never.
    None,
    /// This.
    Output(&'a Value),
    /// That it did not work.
    Error(&'a str),
}

impl<'a> Part<'a> {
    /// Reads a part.
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
    fn parts_of_both_kinds_of_tools_are_read() {
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
    fn what_is_not_known_is_nothing() {
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
