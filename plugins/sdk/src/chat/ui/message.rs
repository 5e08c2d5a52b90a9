//! Messages with their parts as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::ui::client::Part;
use crate::chat::ui::part::UiPart;

/// The sender of a message.
// The schema of each app that names this type has the line above as its description, and those of
// the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The service.
    System,
    /// The person.
    User,
    /// The model, with the tools it called.
    Assistant,
}

impl Role {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A message of the AI SDK.
// The schema of each app with conversations has the line above as its description, and those of the
// fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UiMessage {
    /// Unique in its conversation.
    pub id: String,
    /// The sender.
    pub role: Role,
    /// Text, reasoning, files and tool calls, in order.
    #[schemars(with = "Vec<UiPart>")]
    pub parts: Vec<Value>,
}

impl UiMessage {
    /// Returns the text parts, one a line.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::chat::ui::{Role, UiMessage};
    ///
    /// let parts = vec![json!({"type": "step-start"}), json!({"type": "text", "text": "hello"})];
    /// let message = UiMessage { id: "m".to_owned(), role: Role::Assistant, parts };
    /// assert_eq!(message.text(), "hello");
    /// ```
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match Part::of(part) {
            Part::Text(text) => Some(text),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
