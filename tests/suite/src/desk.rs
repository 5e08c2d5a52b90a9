//! An app without code of its own: the agent of the plugin `std`, with the tools of two test
//! guests.

use serde_json::{Value, json};

use crate::guests;
use crate::server::{Setup, TestServer};
use crate::workspace::Workspace;

/// The path of model requests at the stand-in.
pub const MODEL_PATH: &str = "/v1/chat/completions";

/// Standalone plugins: the package, and the file below the test folder.
const PLUGINS: [(&str, &str); 3] = [
    ("wattle-std", "plugins/std/std.wasm"),
    ("wattle-guest-tools", "plugins/tools/tools/tools.wasm"),
    ("wattle-guest-shadow", "plugins/shadow.wasm"),
];

/// The variable parts of the app and its configuration.
#[derive(Clone, Debug)]
pub struct Desk {
    /// Configuration of the agent besides its route, as lines of TOML.
    pub agent: String,
    /// Configuration of the tool node, as lines of TOML.
    pub tools: String,
    /// The tools that the app requests for `std`, as TOML.
    pub granted: String,
    /// The tools that the operator grants the plugin `tools`, as TOML.
    pub nested: String,
    /// Limits of the plugin `tools`, as fields of a TOML table.
    pub limits: String,
}

impl Default for Desk {
    fn default() -> Self {
        Self {
            agent: String::new(),
            tools: String::new(),
            granted: "[\"tools/*\"]".to_owned(),
            nested: "[]".to_owned(),
            limits: "cpu = \"300ms\", memory = \"16MiB\", output = \"1MiB\"".to_owned(),
        }
    }
}

impl Desk {
    /// Creates an app whose agent has further configuration.
    pub fn with(agent: &str) -> Self {
        Self { agent: agent.to_owned(), ..Self::default() }
    }

    /// Writes the app and its plugins into the plugins folder.
    pub fn put(&self, workspace: &Workspace) {
        for (package, file) in PLUGINS {
            workspace.write(file, guests::bytes(package));
        }
        workspace.write("plugins/apps/desk/graph.toml", self.graph());
        workspace.write("plugins/apps/desk/app.toml", self.app());
    }

    /// Returns the operator's part of the configuration, in which the tools may reach only the
    /// stand-in.
    pub fn toml(&self, standin_port: u16) -> String {
        format!(
            r#"
[sql.ledger]
url = "sqlite:ledger.db"
[apps.desk]
path = "plugins/apps/desk"
[grants.tools]
http = [{{ host = "127.0.0.1", scheme = "http", port = {standin_port}, methods = ["GET", "POST"], private = true }}]
tools = {nested}
limits = {{ {limits} }}
"#,
            nested = self.nested,
            limits = self.limits,
        )
    }

    fn app(&self) -> String {
        format!(
            r#"
[app]
name = "desk"
version = "0.1.0"
doc = "an agent with tools"
[needs.plugins.std]
llm = ["chat"]
tools = {}
[settings]
greeting = "hello"
"#,
            self.granted
        )
    }

    fn graph(&self) -> String {
        format!(
            r#"
[graphs.chat]
entry = "agent"
[graphs.chat.channels.messages]
reducer = "messages"
[graphs.chat.channels.total]
reducer = "sum"
schema = {{ type = "number" }}
[graphs.chat.channels.result]
[graphs.chat.nodes.agent]
plugin = "std"
goto = "tools"
[graphs.chat.nodes.agent.with]
route = "chat"
{agent}
[graphs.chat.nodes.tools]
plugin = "std"
[graphs.chat.nodes.tools.with]
{tools}
[[graphs.chat.edges]]
from = "tools"
to = "agent"
"#,
            agent = self.agent,
            tools = self.tools,
        )
    }
}

impl Setup {
    /// Creates a server with the app.
    pub async fn desk(desk: &Desk) -> Self {
        let setup = Self::bare().await;
        desk.put(&setup.workspace);
        let toml = desk.toml(setup.standin.addr.port());
        setup.with(&toml)
    }
}

/// Returns the request of a run with one user message.
pub fn message(thread: Option<&str>, text: &str) -> Value {
    let input = json!({ "messages": [{ "role": "user", "content": text }] });
    let mut start = json!({ "graph": "chat", "input": input });
    if let Some(thread) = thread {
        start["thread_id"] = thread.into();
    }
    start
}

/// Returns the messages of a run that has ended.
pub fn messages(run: &Value) -> Vec<Value> {
    run["state"]["messages"].as_array().cloned().unwrap_or_default()
}

/// Returns the tool messages of a run.
pub fn tool_messages(run: &Value) -> Vec<Value> {
    let mut messages = messages(run);
    messages.retain(|message| message["role"] == "tool");
    messages
}

/// Returns the content of the last message of a run.
pub fn last_words(run: &Value) -> String {
    let last = messages(run).pop().unwrap_or_default();
    last["content"].as_str().unwrap_or_default().to_owned()
}

impl TestServer {
    /// Sends a message to the agent, on a thread or a new one, and waits until the run ends or is
    /// interrupted.
    pub async fn say(&self, thread: Option<&str>, text: &str) -> Value {
        let mut start = message(thread, text);
        start["wait"] = true.into();
        self.post("/api/v1/apps/desk/runs", &start).await.expect(200)
    }

    /// Sends a message on a new thread. The run must complete.
    ///
    /// # Panics
    ///
    /// If it does not complete.
    pub async fn chat(&self, text: &str) -> Value {
        let run = self.say(None, text).await;
        assert_eq!(run["status"], "completed", "{run}");
        run
    }

    /// Answers some of the pending interrupts and waits for the run.
    pub async fn decide(&self, thread: &str, answers: &Value) -> Value {
        let body = json!({ "answers": answers, "wait": true });
        self.post(&format!("/api/v1/threads/{thread}/resume"), &body).await.expect(200)
    }
}
