//! The app `tour`, which the threads for the studio belong to: an agent without code of its own. It
//! has tools of an MCP server, one that it may call only with approval and one that has an effect.

use std::fs;
use std::path::Path;

use anyhow::Result;
use wattle_kit::configuration::Configuration;

/// The path of the MCP server at the stand-ins.
pub(crate) const TOOLS_PATH: &str = "/mcp/probe";

/// A tool that needs approval. It repeats its argument `text`.
pub(crate) const APPROVED_TOOL: &str = "echo";

/// A tool that is neither read-only nor idempotent.
pub(crate) const EFFECT_TOOL: &str = "announce";

/// The graph of the agent.
pub(crate) const GRAPH: &str = "tour";

const APP: &str = r#"
[app]
name = "tour"
version = "0.1.0"
doc = "A tour of the studio: an agent with a tool that needs approval"

[needs.plugins.std]
llm = ["chat"]
tools = ["mcp:probe/echo", "mcp:probe/announce"]
"#;

const GRAPHS: &str = r#"
[graphs.tour]
doc = "An agent that asks a person before it repeats something"
entry = "agent"

[graphs.tour.channels.messages]
reducer = "messages"
doc = "The conversation"

[graphs.tour.nodes.agent]
plugin = "std"
goto = "tools"
doc = "One model turn: asks for tools or answers"
with = { route = "chat", approve = { tools = ["echo"] } }

[graphs.tour.nodes.tools]
plugin = "std"
doc = "Calls the tools that the model asked for"

[[graphs.tour.edges]]
from = "tools"
to = "agent"
"#;

/// What the newer version of the graph has in addition.
const ADDED: &str = r#"
[graphs.tour.channels.note]
doc = "What a person notes about the conversation"
schema = { type = ["string", "null"] }
"#;

/// Writes the app into a folder of the demo.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let app = folder.join("tour");
    fs::create_dir_all(&app)?;
    fs::write(app.join("app.toml"), APP)?;
    fs::write(app.join("graph.toml"), GRAPHS)?;
    Ok(())
}

/// Replaces the graph of the app by a newer version.
pub(crate) fn write_newer(folder: &Path) -> Result<()> {
    fs::write(folder.join("tour/graph.toml"), [GRAPHS, ADDED].concat())?;
    Ok(())
}

/// Returns the settings of the app in a folder of the demo: its grants, its tools at the stand-ins,
/// and webhooks to them.
pub(crate) fn configuration(folder: &Path, standins: &str) -> Result<Configuration> {
    let text = format!(
        "[server.webhooks]\nallow = [\"http://127.0.0.1:*\"]\n\
         [mcp.probe]\nurl = \"{standins}{TOOLS_PATH}\"\nprivate = true\n\
         [apps.tour]\npath = {:?}\n\
         [grants.\"tour/std\"]\nllm = [\"chat\"]\n\
         tools = [\"mcp:probe/{APPROVED_TOOL}\", \"mcp:probe/{EFFECT_TOOL}\"]\n\
         in_doubt = \"ask\"\n",
        folder.join("tour").display().to_string(),
    );
    Ok(Configuration::parse("the settings of the app `tour`", &text)?)
}
