//! What runs: two of the reference graphs, and how to see in a state whose run it was.

use serde_json::{Value, json};

/// The modes in which runs are streamed.
const MODES: [&str; 4] = ["values", "updates", "messages-tuple", "custom"];

/// A graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graph {
    /// One node that echoes a text.
    Echo,
    /// Streams a message, calls a tool by hand, and stops at a question.
    Talk,
}

impl Graph {
    /// Its name on the server.
    pub fn name(self) -> &'static str {
        match self {
            Self::Echo => "factory_agent",
            Self::Talk => "agent",
        }
    }

    /// What asks for a run that says something.
    pub fn request(self, said: &str) -> Value {
        let input = match self {
            Self::Echo => json!({ "text": said }),
            Self::Talk => json!({ "messages": [{ "role": "user", "content": said }] }),
        };
        json!({ "assistant_id": self.name(), "input": input, "stream_mode": MODES })
    }

    /// The content of each state after a run that wrote a text.
    pub fn proof(self, said: &str) -> String {
        match self {
            Self::Echo => format!("\"text\":\"{said} echoed\""),
            Self::Talk => format!("\"content\":\"{said}\""),
        }
    }
}
