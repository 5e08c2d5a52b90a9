//! Conversion of completions, which model calls and streams share.

use wattle_graph::llm::{Attempt, Completion, FinishReason, History, Usage};
use wattle_run::blocking::are_long_call_ids;
use wattle_run::gate::Gate;

use crate::bindings::wattle::plugin::llm;
use crate::host_state::HostState;
use crate::import::message::from_part;
use crate::json;

impl HostState {
    /// Converts a completion for the guest. `history` is that of the request. The search for unique
    /// ids of many calls in a long conversation waits for a turn of the caller.
    pub(crate) async fn convert_completion(
        &mut self,
        gate: &Gate,
        completion: Completion,
        history: Option<&History>,
    ) -> llm::Completion {
        let is_long = history.is_some_and(|history| are_long_call_ids(history, &completion));
        let work = || from_completion(completion, history);
        if is_long { self.parse_in_turn(gate, work).await } else { work() }
    }
}

/// Converts a completion for a guest. `history` is that of the request.
fn from_completion(completion: Completion, history: Option<&History>) -> llm::Completion {
    let call_ids = history.and_then(|history| history.call_ids(&completion));
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
        extra: extra_fields(completion.id.as_ref(), &completion.attempts, call_ids),
    }
}

/// Returns the extension fields of a completion (`extra`): the id of the message that the
/// completion becomes, the models that were called, and ids for its tool calls that are unique in
/// the conversation.
fn extra_fields(
    id: Option<&String>,
    attempts: &[Attempt],
    call_ids: Option<Vec<String>>,
) -> Vec<(String, String)> {
    let id = id.map(|id| ("id", serde_json::json!(id)));
    let attempts = (!attempts.is_empty()).then(|| ("attempts", serde_json::json!(attempts)));
    let call_ids = call_ids.filter(|ids| !ids.is_empty());
    let call_ids = call_ids.map(|ids| ("call_ids", serde_json::json!(ids)));
    let told = id.into_iter().chain(attempts).chain(call_ids);
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
    fn extra_contains_the_message_id_the_called_models_and_the_call_ids() {
        let asked = |model: &str, error| Attempt {
            provider: "openai".to_owned(),
            model: model.to_owned(),
            tries: 1,
            error,
        };
        let failure = Failure::new("unavailable", "away").retryable();
        let id = "m".to_owned();
        let attempts = [asked("a", Some(failure)), asked("b", None)];
        let told = super::extra_fields(Some(&id), &attempts, Some(vec!["c-2".to_owned()]));
        assert_eq!(told.len(), 3);
        assert_eq!(told[2], ("call_ids".to_owned(), "[\"c-2\"]".to_owned()));
        assert_eq!(told[0], ("id".to_owned(), "\"m\"".to_owned()));
        assert_eq!(told[1].0, "attempts");
        let told: serde_json::Value = serde_json::from_str(&told[1].1).unwrap();
        assert_eq!(told[0]["error"]["code"], "unavailable");
        assert_eq!(told[1], serde_json::json!({ "provider": "openai", "model": "b", "tries": 1 }));
        for no_calls in [None, Some(Vec::new())] {
            assert!(super::extra_fields(None, &[], no_calls).is_empty());
        }
    }
}
