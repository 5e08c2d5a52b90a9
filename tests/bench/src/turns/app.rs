//! The app of the conversation: an agent of the plugin `std` with the date tool.

use serde_json::json;
use wattle_suite::guests;
use wattle_suite::workspace::Workspace;

/// The graph, and the id of its assistant.
pub(super) const GRAPH: &str = "turns";

/// Number of tool calls of a turn. The model requests one of them in each completion before the
/// last one.
pub(super) const CALLS: usize = 2;

/// The table of the app in the configuration.
pub(super) const TABLE: &str = "[apps.turns]\npath = \"apps/turns\"\n";

/// Standalone plugins: the package, and the file below the folder of the server.
const PLUGINS: [(&str, &str); 2] =
    [("wattle-std", "plugins/std/std.wasm"), ("wattle-tool-date", "plugins/tools/date/date.wasm")];

/// The tool, by the name that the model sees.
const TOOL: &str = "parseDateExpression";

const APP_TOML: &str = r#"
[app]
name = "turns"
version = "0.1.0"
doc = "A conversation of many turns"

[needs.plugins.std]
llm = ["chat"]
tools = ["date/parseDateExpression"]
"#;

/// The agent has no setting that shortens the conversation, so each model call gets all messages.
const GRAPH_TOML: &str = r#"
[graphs.turns]
entry = "agent"

[graphs.turns.channels.messages]
reducer = "messages"

[graphs.turns.nodes.agent]
plugin = "std"
goto = "tools"
with = { route = "chat", system = "You calculate dates.", temperature = 0 }

[graphs.turns.nodes.tools]
plugin = "std"

[[graphs.turns.edges]]
from = "tools"
to = "agent"
"#;

/// Writes the app and its plugins below the folder of a server.
pub(super) fn write(workspace: &Workspace) {
    for (package, file) in PLUGINS {
        workspace.write(file, guests::bytes(package));
    }
    workspace.write("apps/turns/app.toml", APP_TOML);
    workspace.write("apps/turns/graph.toml", GRAPH_TOML);
}

/// Returns a message of the user. The stand-in model requests the tool calls that the message
/// names, one in each completion, and then returns a text with their results.
pub(super) fn message(turn: usize) -> String {
    let arguments = json!({ "type": "relative", "offset": -1, "unit": "day" });
    let calls = vec![format!("call {TOOL} {arguments}"); CALLS];
    format!("Message {turn}\n{}", calls.join("\nthen\n"))
}
