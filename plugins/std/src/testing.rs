//! What tests share: a host with two tools, and a model that wants both.

use wattle_plugin::llm::Completion;
use wattle_plugin::prelude::{Failure, ToolOutput, json};
use wattle_plugin::testing::FakeHost;
use wattle_plugin::tool::ToolInfo;

/// `parse` answers with its arguments, `save` refuses.
pub(crate) fn host() -> FakeHost {
    let info = |name: &str, description: &str| ToolInfo {
        name: name.to_owned(),
        description: description.to_owned(),
        arguments_schema: json!({"type": "object"}),
        ..ToolInfo::default()
    };
    FakeHost::new()
        .described_tool(info("parse", "Parses."), |arguments| ToolOutput::json(arguments))
        .described_tool(info("save", "Saves."), |_| {
            Err(Failure::unavailable("the book is closed").with_details(json!({"until": 8})))
        })
}

/// A model's wish for both.
pub(crate) fn two_calls() -> Completion {
    let mut completion = Completion::of_tool_call("c1", "parse", json!({"a": 1}));
    completion.parts.extend(Completion::of_tool_call("c2", "save", json!({"a": 2})).parts);
    completion
}
