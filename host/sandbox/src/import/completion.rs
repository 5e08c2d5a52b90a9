//! Conversion of completions, which model calls and streams share.

use wattle_graph::llm::{Attempt, Completion, FinishReason, Usage};

use crate::bindings::wattle::plugin::llm;
use crate::import::message::from_part;
use crate::json;

/// Converts a completion for a guest.
pub(crate) fn from_completion(completion: Completion) -> llm::Completion {
    llm::Completion {
        parts: completion.parts.into_iter().map(from_part).collect(),
        structured: completion.structured.as_ref().map(json::to_text),
        finish_reason: match completion.finish_reason {
            FinishReason::Stop => llm::FinishReason::Stop,
            FinishReason::Length => llm::FinishReason::Length,
            FinishReason::ToolCalls => llm::FinishReason::ToolCalls,
            FinishReason::ContentFilter => llm::FinishReason::ContentFilter,
            FinishReason::Other(reason) => llm::FinishReason::Other(reason),
        },
        usage: from_usage(&completion.usage),
        model: completion.model,
        extra: extra_fields(completion.id.as_ref(), &completion.attempts),
    }
}

/// Returns the extension fields of a completion (`extra`): the id of the message that the
/// completion becomes, and the models that were called.
fn extra_fields(id: Option<&String>, attempts: &[Attempt]) -> Vec<(String, String)> {
    let id = id.map(|id| ("id", serde_json::json!(id)));
    let attempts = (!attempts.is_empty()).then(|| ("attempts", serde_json::json!(attempts)));
    let told = id.into_iter().chain(attempts);
    told.map(|(key, value)| (key.to_owned(), value.to_string())).collect()
}

fn from_usage(usage: &Usage) -> llm::Usage {
    llm::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        extra: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::failure::Failure;

    use super::*;

    #[test]
    fn extra_contains_the_message_id_and_the_called_models() {
        let asked = |model: &str, error| Attempt {
            provider: "openai".to_owned(),
            model: model.to_owned(),
            tries: 1,
            error,
        };
        let failure = Failure::new("unavailable", "away").retryable();
        let id = "m".to_owned();
        let told = super::extra_fields(Some(&id), &[asked("a", Some(failure)), asked("b", None)]);
        assert_eq!(told.len(), 2);
        assert_eq!(told[0], ("id".to_owned(), "\"m\"".to_owned()));
        assert_eq!(told[1].0, "attempts");
        let told: serde_json::Value = serde_json::from_str(&told[1].1).unwrap();
        assert_eq!(told[0]["error"]["code"], "unavailable");
        assert_eq!(told[1], serde_json::json!({ "provider": "openai", "model": "b", "tries": 1 }));
        assert!(super::extra_fields(None, &[]).is_empty());
    }
}
