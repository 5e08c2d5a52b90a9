//! What stands behind an MCP server: its tools.

use std::fmt::Debug;

use serde_json::{Value, json};

/// Tools that a stand-in offers. Calls must be quick: they hold up the server.
pub trait McpTools: Debug + Send + Sync {
    /// The tools there are.
    fn list(&self) -> Vec<McpTool>;

    /// Calls one of them with a JSON object; asked only for tools that are listed.
    fn call(&self, name: &str, arguments: &Value) -> McpAnswer;
}

/// A tool as it is listed.
#[derive(Clone, Debug)]
pub struct McpTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// Whether it says that it changes nothing.
    pub read_only: bool,
}

impl McpTool {
    /// A tool that only reads; `properties` are those of its arguments, all optional.
    pub fn reading(name: &str, description: &str, properties: &Value) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: json!({ "type": "object", "properties": properties }),
            read_only: true,
        }
    }

    /// The same tool, with these arguments required.
    pub fn requiring(mut self, names: &[&str]) -> Self {
        self.schema["required"] = json!(names);
        self
    }
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub enum McpAnswer {
    /// A document, as data and as text.
    Data(Value),
    /// Content blocks as on the wire.
    Content(Vec<Value>),
    /// The tool failed and says so in its result.
    Failed(String),
    /// The protocol's error with this code.
    Refused(i32, String),
    /// The text, after a notification that the list of tools has changed.
    Changed(String),
}
