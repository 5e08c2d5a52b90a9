//! The place of a message in which a service sends reasoning: a field, or the text.
//!
//! Reasoning goes back in the field in which it came, because services reject the other one: Groq
//! with "property 'reasoning_content' is unsupported" (janhq/jan issue 8136), and Cerebras with
//! `wrong_api_format` (vercel/ai issue 15042).
//!
//! Reasoning that came between tags in the text goes back between these tags. Cerebras and the
//! models of MiniMax require this ("Reasoning" of Cerebras's documentation, ggml-org/llama.cpp pull
//! request 16933), and a text with tags is rejected by no service.

use serde_json::{Value, json};

use crate::provider::openai::content_parts;
use crate::provider::provider_state::Fields;

/// The name of the field in the state of reasoning.
const STATE_FIELD: &str = "field";

/// The opening and the closing tag in the state of reasoning that came in the text.
const TAGS: &str = "tags";

/// A field with reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReasoningField {
    /// The field of DeepSeek and others.
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

    /// Returns the field in the state of reasoning; `None` if the reasoning came in the content.
    pub(super) fn from_state(state: &Fields) -> Option<Self> {
        if content_parts::has_reasoning(state) || state.contains_key(TAGS) {
            return None;
        }
        let is_reasoning =
            state.get(STATE_FIELD).is_some_and(|name| name == Self::Reasoning.name());
        Some(if is_reasoning { Self::Reasoning } else { Self::default() })
    }
}

/// Returns the state of reasoning that came between an opening and a closing tag in the text.
pub(super) fn tags_to_state(tags: [&str; 2]) -> Fields {
    let mut state = Fields::new();
    state.insert(TAGS.to_owned(), json!(tags));
    state
}

/// Returns reasoning between its tags; `None` if it did not come between tags.
pub(super) fn restore_tags(reasoning: &str, state: &Fields) -> Option<String> {
    let tags = state.get(TAGS)?;
    let tag = |index: usize| tags.get(index).and_then(Value::as_str).unwrap_or_default();
    Some(format!("{}{reasoning}{}", tag(0), tag(1)))
}

#[cfg(test)]
mod tests {
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
            assert_eq!(ReasoningField::from_state(&field.to_state()), Some(field));
            assert_eq!(restore_tags("hm", &field.to_state()), None);
        }
        assert!(ReasoningField::default().to_state().is_empty());
    }

    #[test]
    fn tags_are_kept_in_the_state() {
        for (tags, restored) in
            [(["<think>", "</think>"], "<think>hm</think>"), (["", "</think>"], "hm</think>")]
        {
            let state = tags_to_state(tags);
            assert_eq!(restore_tags("hm", &state).as_deref(), Some(restored));
            assert_eq!(ReasoningField::from_state(&state), None);
        }
    }
}
