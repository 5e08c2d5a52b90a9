//! The app of the attackers, with the graphs of all cases, and the host's configuration.

use wattle_kit::standin::Handle;
use wattle_run::limit;
use wattle_run::memory_budget::BUDGET_BYTES;

use super::hostile::Hostile;
use crate::guests;
use crate::workspace::{self, MISDEEDS, Workspace};

/// The name of the attackers' app.
pub const APP: &str = "misdeeds";

/// The app of attackers who keep what they take: its runs and its web handlers wait for a service.
/// A request without a key, a tenant or a user counts for the app of its run.
pub const CROWD: &str = "crowd";

/// Places for runs of the host: few, so that attackers take them soon.
pub const PLACES: usize = 64;

/// The graph that honest callers run. It adds one to a number.
pub const HONEST: &str = "honest";

/// Maximum bytes of the compiled code of all components of the host, as in its configuration: the
/// least that it accepts. The code of the apps of the attacks takes a small part of it.
pub const CODE_BYTES: u32 = 64 << 20;

/// Tasks that the graph `fan_out` runs at once.
pub const AT_ONCE: usize = 8;

/// Models whose completions never end or are too large.
pub const MODELS: [&str; 5] = ["comments", "deltas", "endless", "large", "numbers"];

/// MCP servers. The first has a tool whose schema doubles; the others send an endless output, an
/// output that is too deep, an endless tool list, or a result of numbers. An app with the server's
/// name calls its tools.
pub const TOOL_SERVERS: [&str; 5] = ["shape", "endless", "deep", "pages", "numbers"];

/// Graphs with one node each, and the channels of the node.
const NODES: &[(&str, &[&str])] = &[
    ("ask_shaped", &["schema", "answer"]),
    ("ask_model", &["route", "schema", "answer"]),
    ("multiply", &["sends"]),
    ("jump", &["jumps"]),
    ("hoard", &["blobs", "bytes", "kept"]),
    ("run_sql", &["database", "statement", "rows"]),
    ("fail_as", &["code", "message"]),
    ("roll", &["count", "bytes", "number"]),
    ("start_many", &["graph", "count", "bytes"]),
    ("huge_output", &["size", "text"]),
    ("flood_emit", &["count", "number"]),
    ("flood_log", &["count", "numbers", "number"]),
    ("many_numbers", &["count", "value"]),
    ("spin", &[]),
    ("call_then_wait", &["route", "text", "url", "body"]),
    ("use_tool", &["tool", "text"]),
    ("ungranted_http", &["url", "status"]),
];

/// A graph that gives up a request soon.
const HURRY: &str = r#"
[graphs.hurry]
entry = "ungranted_http"
[graphs.hurry.channels.url]
[graphs.hurry.channels.status]
[graphs.hurry.nodes.ungranted_http]
timeout = "2s"
"#;

/// A graph with a branch whose condition compares all pairs of items.
const CONDITION: &str = r#"
[graphs.condition]
entry = "counter"
[graphs.condition.channels.number]
[graphs.condition.channels.op]
[graphs.condition.nodes.counter]
[[graphs.condition.branches]]
name = "way"
from = "counter"
cases = [{ when = "state.op.exists(a, state.op.exists(b, a + b < 0))", to = "counter" }, { to = "END" }]

[graphs.typed]
entry = "counter"
[graphs.typed.channels.number]
[graphs.typed.channels.value]
schema.type = "array"
schema.items.anyOf = [
    { type = "string" }, { type = "boolean" }, { type = "null" },
    { type = "array" }, { type = "object" }, { type = "integer" },
]
[graphs.typed.nodes.counter]

[graphs.honest]
entry = "counter"
[graphs.honest.channels.number]
schema = { type = "integer" }
[graphs.honest.nodes.counter]
"#;

/// A graph without an end that appends a text to its state in each superstep.
const GROW: &str = r#"
[graphs.grow]
entry = "huge_output"
[graphs.grow.channels.size]
[graphs.grow.channels.text]
reducer = "append"
[graphs.grow.nodes.huge_output]
goto = "END"
[[graphs.grow.edges]]
from = "huge_output"
to = "huge_output"
"#;

/// A graph whose tasks hold memory while they wait for a service.
const OCCUPY: &str = r#"
[graphs.occupy]
entry = "spread"
[graphs.occupy.channels.groups]
[graphs.occupy.channels.bytes]
[graphs.occupy.channels.url]
[graphs.occupy.nodes.spread]
goto = ["occupy"]
[graphs.occupy.nodes.occupy]
"#;

/// Returns a graph whose first node sends the tasks of a superstep. They run in the order of the
/// names of their nodes.
fn fan_out() -> String {
    format!(
        r#"
[graphs.fan_out]
entry = "spread"
max_concurrency = {AT_ONCE}
[graphs.fan_out.channels.groups]
[graphs.fan_out.channels.number]
reducer = "sum"
[graphs.fan_out.channels.url]
[graphs.fan_out.channels.status]
reducer = "any"
[graphs.fan_out.nodes.spread]
goto = ["early", "held", "later"]
[graphs.fan_out.nodes.early]
node = "counter"
[graphs.fan_out.nodes.held]
node = "ungranted_http"
[graphs.fan_out.nodes.later]
node = "counter"
"#
    )
}

/// Returns a graph whose second superstep has as many tasks as run at once. Each gives the whole
/// conversation to a model.
fn histories() -> String {
    let mut text = r#"
[graphs.histories]
entry = "counter"
[graphs.histories.channels.number]
[graphs.histories.channels.route]
[graphs.histories.channels.messages]
reducer = "messages"
[graphs.histories.nodes.counter]
"#
    .to_owned();
    for task in 0..limit::STEP_CONCURRENCY {
        text.push_str(&format!(
            "[graphs.histories.nodes.recite_{task}]\nnode = \"recite\"\n\
             [[graphs.histories.edges]]\nfrom = \"counter\"\nto = \"recite_{task}\"\n"
        ));
    }
    text
}

const MANIFEST: &str = r#"
[app]
name = "misdeeds"
version = "0.1.0"
doc = "misbehaves on request"
[components]
misdeeds = "misdeeds.wasm"
[needs]
llm = ["chat", "comments", "deltas", "endless", "large", "numbers"]
http = [{ host = "127.0.0.1", scheme = "http", methods = ["GET"], private = true }]
sql = [{ database = "notes", access = "read-write" }]
tools = ["misdeeds/doubled"]
[migrations.notes]
sqlite = "migrations"
"#;

/// The graph of an app that calls the tools of a server.
const CALLER: &str = r#"
[graphs.call]
entry = "call_tool"
[graphs.call.channels.call]
[graphs.call.channels.results]
[graphs.call.nodes.call_tool]
plugin = "tools"
"#;

const CROWD_GRAPH: &str = r#"
[graphs.wait]
entry = "ungranted_http"
[graphs.wait.channels.url]
[graphs.wait.channels.status]
[graphs.wait.nodes.ungranted_http]
"#;

const CROWD_MANIFEST: &str = r#"
[app]
name = "crowd"
version = "0.1.0"
doc = "waits"
web = "crowd"
[components]
crowd = "crowd.wasm"
[needs]
http = [{ host = "127.0.0.1", scheme = "http", methods = ["GET"], private = true }]
"#;

fn graphs() -> String {
    let mut text = [CONDITION, GROW, OCCUPY, HURRY, &fan_out(), &histories()].concat();
    for (node, channels) in NODES {
        text.push_str(&format!("\n[graphs.{node}]\nentry = \"{node}\"\n"));
        for channel in *channels {
            text.push_str(&format!("[graphs.{node}.channels.{channel}]\n"));
        }
        text.push_str(&format!("[graphs.{node}.nodes.{node}]\n"));
    }
    text
}

/// Writes the app with all graphs into the plugins folder.
pub fn put_app(workspace: &Workspace) {
    workspace
        .write("plugins/misdeeds/migrations/0001_notes.sql", "CREATE TABLE notes (text TEXT);");
    workspace.write("plugins/misdeeds/misdeeds.wasm", guests::bytes(MISDEEDS));
    workspace.write("plugins/misdeeds/graph.toml", graphs());
    workspace.write("plugins/misdeeds/app.toml", MANIFEST);
}

/// Replaces the app by a newer version, in which the graph `call_then_wait` has one more channel.
pub fn put_newer_app(workspace: &Workspace) {
    let more = "[graphs.call_then_wait.channels.more]\n";
    workspace.write("plugins/misdeeds/graph.toml", format!("{}{more}", graphs()));
}

/// Writes the app whose runs and web handlers wait into the plugins folder.
pub fn put_crowd(workspace: &Workspace) {
    workspace.write("plugins/crowd/crowd.wasm", guests::bytes(MISDEEDS));
    workspace.write("plugins/crowd/graph.toml", CROWD_GRAPH);
    workspace.write("plugins/crowd/app.toml", CROWD_MANIFEST);
}

/// Writes the apps that call tools of hostile servers into the plugins folder.
pub fn put_callers(workspace: &Workspace) {
    workspace.write("plugins/tools.wasm", guests::bytes("wattle-guest-tools"));
    for name in TOOL_SERVERS {
        workspace.write(&format!("plugins/{name}/graph.toml"), CALLER);
        workspace.write(
            &format!("plugins/{name}/app.toml"),
            format!(
                "[app]\nname = \"{name}\"\nversion = \"0.1.0\"\ndoc = \"calls tools\"\n\
                 [needs.plugins.tools]\ntools = [\"mcp:{name}/*\"]\n"
            ),
        );
    }
}

/// Returns the configuration. Limits have their defaults, except the timeouts of MCP servers, the
/// places for runs, and the memory of compiled code. The budget of memory is the default of a
/// machine with 8 GiB or more, so that the attacks meet the same limits on every machine.
pub fn toml(standin: &Handle, hostile: &Hostile) -> String {
    let mut text = workspace::base_toml(standin);
    let base = format!("http://{}", hostile.address);
    for name in MODELS {
        text.push_str(&format!(
            "[model.providers.{name}]\nkind = \"openai\"\nbase_url = \"{base}/{name}/\"\n\
             key_env = \"SUITE_MODEL_KEY\"\n\
             [model.routes.{name}]\nprovider = \"{name}\"\nmodel = \"m\"\nretries = 0\n"
        ));
    }
    for name in TOOL_SERVERS {
        // A call without an end takes the whole timeout. A list without an end is to be cut by the
        // number of its pages, and a result of numbers by the memory of its values.
        let time = if matches!(name, "pages" | "numbers") { "30s" } else { "2s" };
        text.push_str(&format!(
            "[mcp.{name}]\nurl = \"{base}/mcp/{name}\"\nprivate = true\ntimeout = \"{time}\"\n"
        ));
    }
    let models = MODELS.map(|name| format!("\"{name}\"")).join(", ");
    let tools = TOOL_SERVERS.map(|name| format!("\"mcp:{name}/*\"")).join(", ");
    text.push_str(&format!(
        r#"
[limits]
runs = {PLACES}
memory = "{memory_mib}MiB"
code_memory = "{code_mib}MiB"
[sql.notes]
url = "sqlite:notes.db"
[grants.tools]
tools = [{tools}]
[grants.misdeeds]
llm = ["chat", {models}]
http = [
    {{ host = "127.0.0.1", scheme = "http", port = {port}, methods = ["GET"], private = true }},
    {{ host = "127.0.0.1", scheme = "http", port = {hostile}, methods = ["GET"], private = true }},
]
sql = [{{ database = "notes", access = "read-write" }}]
tools = ["misdeeds/doubled"]
[grants.crowd]
http = [{{ host = "127.0.0.1", scheme = "http", port = {port}, methods = ["GET"], private = true }}]
limits = {{ cpu = "30s" }}
"#,
        memory_mib = BUDGET_BYTES >> 20,
        code_mib = CODE_BYTES >> 20,
        port = standin.addr.port(),
        hostile = hostile.address.port(),
    ));
    text
}
