//! Messages of the chat page: `UIMessage` of the AI SDK.

mod assistant;
mod lean;
mod model;
mod read;
mod table;

use wattle_plugin::chat::ui::Part;
use wattle_plugin::prelude::{Deserialize, Extra, JsonSchema, Serialize, Value};

pub(crate) use self::assistant::said;
pub(crate) use self::lean::lean;
pub(crate) use self::model::for_model;
pub(crate) use self::read::read;
pub(crate) use self::table::{StoredMessage, keep, list, put, replace_those_of_runs};

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// The service.
    System,
    /// The person.
    User,
    /// The model, with the tools it called.
    Assistant,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct UiMessage {
    /// Unique in its session.
    pub(crate) id: String,
    pub(crate) role: Role,
    /// Text, reasoning, files and tool calls, in order.
    #[schemars(with = "Vec<Extra>")]
    pub(crate) parts: Vec<Value>,
}

impl UiMessage {
    /// Returns the text parts.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match Part::of(part) {
            Part::Text(text) => Some(text),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
