//! The app `tour`, which the threads for the studio belong to: an agent without code of its own. It
//! has tools of an MCP server, one that it may call only with approval and one that has an effect.
//! Another graph has this graph as a subgraph, and a third one calls a model without a grant.

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

/// The graph with the agent's graph as a subgraph. Its last node has two attempts.
pub(crate) const PARENT_GRAPH: &str = "fair";

/// The graph whose model route is not granted.
pub(crate) const UNGRANTED_GRAPH: &str = "draft";

const APP: &str = r#"
[app]
name = "tour"
version = "0.1.0"
doc = "A tour of the studio: an agent with a tool that needs approval"

[needs.plugins.std]
llm = ["chat", "light"]
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

[graphs.fair]
doc = "Lets the agent of `tour` work, and reports what it has done"
entry = "work"

[graphs.fair.channels.messages]
reducer = "messages"
doc = "The conversation"

[graphs.fair.channels.report]
schema = { type = ["object", "null"] }
doc = "What was done, as a document"

[graphs.fair.nodes.work]
graph = "tour"
doc = "The graph of the agent"

[graphs.fair.nodes.sum_up]
plugin = "std"
node = "agent"
retry = { attempts = 2, initial = "10ms", on = ["invalid"] }
doc = "Says what was done, then again as a document"

[graphs.fair.nodes.sum_up.with]
route = "chat"
tools = []

[graphs.fair.nodes.sum_up.with.answer]
name = "report"
channel = "report"

[graphs.fair.nodes.sum_up.with.answer.schema]
type = "object"
properties = { announced = { type = "integer" }, summary = { type = "string" } }
required = ["announced", "summary"]
additionalProperties = false

[[graphs.fair.edges]]
from = "work"
to = "sum_up"

[graphs.draft]
doc = "An agent whose model route is requested and not granted"
entry = "agent"

[graphs.draft.channels.messages]
reducer = "messages"
doc = "The conversation"

[graphs.draft.nodes.agent]
plugin = "std"
doc = "One model turn, which is denied"
with = { route = "light", tools = [] }
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

/// Replaces the graphs of the app by a newer version.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_have_each_graph() {
        for text in [GRAPHS.to_owned(), [GRAPHS, ADDED].concat()] {
            let graphs = Configuration::parse("the graphs", &text).unwrap();
            for graph in [GRAPH, PARENT_GRAPH, UNGRANTED_GRAPH] {
                assert!(graphs.text(&format!("graphs.{graph}.doc")).is_some(), "{graph}");
            }
            let subgraph = graphs.text(&format!("graphs.{PARENT_GRAPH}.nodes.work.graph"));
            assert_eq!(subgraph, Some(GRAPH));
        }
    }

    #[test]
    fn one_model_route_is_requested_and_not_granted() {
        let app = Configuration::parse("the app", APP).unwrap();
        let config = configuration(Path::new("/demo"), "http://127.0.0.1:9").unwrap();
        let routes = "requested = [\"chat\", \"light\"]\ngranted = [\"chat\"]";
        let routes = Configuration::parse("the routes", routes).unwrap();
        assert_eq!(app.get("needs.plugins.std.llm"), routes.get("requested"));
        assert_eq!(config.get("grants.tour/std.llm"), routes.get("granted"));
        let graphs = Configuration::parse("the graphs", GRAPHS).unwrap();
        let route = graphs.text(&format!("graphs.{UNGRANTED_GRAPH}.nodes.agent.with.route"));
        assert_eq!(route, Some("light"));
    }
}
