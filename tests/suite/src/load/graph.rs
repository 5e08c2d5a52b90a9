//! The graphs that run: two of the reference graphs, and how a state identifies its run.

use serde_json::{Value, json};

/// The stream modes of runs.
const MODES: [&str; 4] = ["values", "updates", "messages-tuple", "custom"];

/// A reference graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graph {
    /// A graph with one node that echoes a text.
    Echo,
    /// A graph that streams a message, calls a tool itself and stops at an interrupt.
    Talk,
}

impl Graph {
    /// Returns the name of the graph on the server.
    pub fn name(self) -> &'static str {
        match self {
            Self::Echo => "factory_agent",
            Self::Talk => "agent",
        }
    }

    /// Returns the request of a run with a text.
    pub fn request(self, said: &str) -> Value {
        let input = match self {
            Self::Echo => json!({ "text": said }),
            Self::Talk => json!({ "messages": [{ "role": "user", "content": said }] }),
        };
        json!({ "assistant_id": self.name(), "input": input, "stream_mode": MODES })
    }

    /// Returns a text that every state contains after a run with this text.
    pub fn proof(self, said: &str) -> String {
        match self {
            Self::Echo => format!("\"text\":\"{said} echoed\""),
            Self::Talk => format!("\"content\":\"{said}\""),
        }
    }
}
