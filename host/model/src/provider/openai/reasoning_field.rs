//! The field of a message in which a service sends reasoning.
//!
//! Reasoning goes back in the field in which it came, because services reject the other one: Groq
//! with "property 'reasoning_content' is unsupported" (janhq/jan issue 8136), and Cerebras with
//! `wrong_api_format` (vercel/ai issue 15042).

use serde_json::Value;

use crate::provider::provider_state::Fields;

/// The name of the field in the state of reasoning.
const STATE_FIELD: &str = "field";

/// A field with reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReasoningField {
    /// The field of DeepSeek and others. Reasoning between tags in the text goes back in this field
    /// as well.
    #[default]
    ReasoningContent,
    /// The field of Groq, Cerebras, Ollama, OpenRouter and vLLM.
    Reasoning,
}

impl ReasoningField {
    /// Returns the name of the field.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
        }
    }

    /// Returns the field of a message with reasoning, and the reasoning. Some services send the
    /// same reasoning in both fields.
    pub(super) fn find(message: &Value) -> Option<(Self, &str)> {
        [Self::ReasoningContent, Self::Reasoning].into_iter().find_map(|field| {
            let text = message.get(field.name())?.as_str()?;
            (!text.is_empty()).then_some((field, text))
        })
    }

    /// Returns the state of reasoning that came in this field. States of older threads do not have
    /// the field, and neither do those with the default.
    pub(super) fn to_state(self) -> Fields {
        let mut state = Fields::new();
        if self != Self::default() {
            state.insert(STATE_FIELD.to_owned(), self.name().into());
        }
        state
    }

    /// Returns the field in the state of reasoning.
    pub(super) fn from_state(state: &Fields) -> Self {
        if state.get(STATE_FIELD).is_some_and(|name| name == Self::Reasoning.name()) {
            Self::Reasoning
        } else {
            Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_is_found_and_kept_in_the_state() {
        for (message, found) in [
            (json!({ "reasoning_content": "a" }), Some((ReasoningField::ReasoningContent, "a"))),
            (json!({ "reasoning": "a" }), Some((ReasoningField::Reasoning, "a"))),
            (
                json!({ "reasoning": "a", "reasoning_content": "" }),
                Some((ReasoningField::Reasoning, "a")),
            ),
            (
                json!({ "reasoning": "a", "reasoning_content": "b" }),
                Some((ReasoningField::ReasoningContent, "b")),
            ),
            (json!({ "reasoning": null, "reasoning_content": {} }), None),
        ] {
            assert_eq!(ReasoningField::find(&message), found, "{message}");
        }
        for field in [ReasoningField::ReasoningContent, ReasoningField::Reasoning] {
            assert_eq!(ReasoningField::from_state(&field.to_state()), field);
        }
        assert!(ReasoningField::default().to_state().is_empty());
    }
}
