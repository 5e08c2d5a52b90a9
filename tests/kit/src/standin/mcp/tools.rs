//! The tools of stand-in MCP servers.

use std::fmt::Debug;

use serde_json::{Value, json};

/// Tools of a stand-in. Calls must be fast, because they block the server.
pub trait McpTools: Debug + Send + Sync {
    /// Returns all tools.
    fn list(&self) -> Vec<McpTool>;

    /// Calls a listed tool with a JSON object.
    fn call(&self, name: &str, arguments: &Value) -> McpAnswer;
}

/// A tool in a list.
#[derive(Clone, Debug)]
pub struct McpTool {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// Whether the tool declares that it changes nothing.
    pub read_only: bool,
}

impl McpTool {
    /// Creates a read-only tool. `properties` are the schemas of its arguments, all of which are
    /// optional.
    pub fn reading(name: &str, description: &str, properties: &Value) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: json!({ "type": "object", "properties": properties }),
            read_only: true,
        }
    }

    /// Makes these arguments required.
    pub fn requiring(mut self, names: &[&str]) -> Self {
        self.schema["required"] = json!(names);
        self
    }
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum McpAnswer {
    /// A JSON value, returned as structured content and as text.
    Data(Value),
    /// Content blocks in the format of the protocol.
    Content(Vec<Value>),
    /// An error of the tool, returned as its result.
    Failed(String),
    /// A protocol error with this code.
    Refused(i32, String),
    /// Text content, after the notification that the tool list has changed.
    Changed(String),
}
