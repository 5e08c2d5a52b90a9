//! Shared test data: a fake host with two tools, a completion that calls both, and tools by name.

use wattle_plugin::llm::Completion;
use wattle_plugin::prelude::{Failure, ToolOutput, json};
use wattle_plugin::testing::FakeHost;
use wattle_plugin::tool::ToolInfo;

use crate::granted::Tool;

/// Returns a fake host with the tool `parse`, which returns its arguments, and the tool `save`,
/// which always fails.
pub(crate) fn host() -> FakeHost {
    let info = |name: &str, place: &str, description: &str| {
        let info = ToolInfo {
            name: name.to_owned(),
            description: description.to_owned(),
            arguments_schema: json!({"type": "object"}),
            ..ToolInfo::default()
        };
        info.with_reference(format!("{place}/{name}"))
    };
    FakeHost::new()
        .described_tool(info("parse", "date", "Parses."), ToolOutput::json)
        .described_tool(info("save", "book", "Saves."), |_| {
            Err(Failure::unavailable("the book is closed").with_details(json!({"until": 8})))
        })
}

/// Returns a completion that calls both tools.
pub(crate) fn two_calls() -> Completion {
    let mut completion = Completion::of_tool_call("c1", "parse", json!({"a": 1}));
    completion.parts.extend(Completion::of_tool_call("c2", "save", json!({"a": 2})).parts);
    completion
}

/// Returns a granted tool with a name and a reference.
pub(crate) fn tool(name: &str, reference: &str) -> Tool {
    Tool { name: name.to_owned(), reference: Some(reference.to_owned()), ..Tool::default() }
}
