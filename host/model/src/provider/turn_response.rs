//! The parsed response of one turn.

use serde_json::Value;
use wattle_graph::llm::{Completion, FinishReason, Part, Usage};

/// The parsed response of one turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnResponse {
    pub(crate) parts: Vec<Part>,
    pub(crate) finish_reason: FinishReason,
    pub(crate) usage: Usage,
    pub(crate) model: String,
}

impl TurnResponse {
    /// Returns the text of the response.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Adds the usage of the first turn to the usage of a repair turn.
    pub(crate) fn add_usage_of(mut self, first: &Self) -> Self {
        self.usage = sum_usage(&first.usage, &self.usage);
        self
    }

    /// Converts the response to the completion that the guest receives.
    pub(crate) fn into_completion(self, structured: Option<Value>) -> Completion {
        Completion {
            id: None,
            parts: self.parts,
            structured,
            finish_reason: self.finish_reason,
            usage: self.usage,
            model: self.model,
            attempts: Vec::new(),
        }
    }
}

/// Adds the tokens of two turns.
fn sum_usage(left: &Usage, right: &Usage) -> Usage {
    let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    Usage {
        input_tokens: add(left.input_tokens, right.input_tokens),
        output_tokens: add(left.output_tokens, right.output_tokens),
        cached_input_tokens: add(left.cached_input_tokens, right.cached_input_tokens),
        reasoning_tokens: add(left.reasoning_tokens, right.reasoning_tokens),
    }
}
