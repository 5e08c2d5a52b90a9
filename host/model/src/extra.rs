//! Provider-specific fields that the operator adds to the body of a request.
//!
//! Services that speak OpenAI's format have additional options, such as DeepSeek's `thinking`. The
//! host sends the extra fields without changes. Extra fields cannot replace a field that the host
//! sets, because the response would no longer match the request of the guest.

use serde_json::{Map, Value};

use crate::config::ProviderKind;

/// Fields at the top level of a request body.
pub type Extra = Map<String, Value>;

/// Body fields that the host sets. Extra fields cannot replace them.
const RESERVED: [&str; 13] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "response_format",
    "stream",
    "stream_options",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "seed",
    "stop",
    "n",
];

/// Returns the reason why extra fields cannot be added to requests to a provider of the kind
/// `kind`; `None` if they can.
pub(crate) fn invalid_reason(kind: ProviderKind, extra: &Extra) -> Option<String> {
    if extra.is_empty() {
        return None;
    }
    if kind != ProviderKind::Openai {
        return Some("only providers of kind `openai` accept extra fields".to_owned());
    }
    let own = RESERVED.iter().find(|name| extra.contains_key(**name))?;
    Some(format!("`{own}` is set by the host; use the keys of the route, or remove the field"))
}

/// Merges the extra fields of a provider with those of a model of a route. A field of the model
/// replaces the provider's field of the same name.
pub(crate) fn merge(provider: &Extra, target: &Extra) -> Extra {
    let mut all = provider.clone();
    all.extend(target.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extra(value: Value) -> Extra {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn extra_fields_cannot_replace_fields_of_the_host() {
        let thinking = extra(json!({ "thinking": { "type": "disabled" } }));
        assert_eq!(invalid_reason(ProviderKind::Openai, &thinking), None);
        assert!(invalid_reason(ProviderKind::Gemini, &thinking).unwrap().contains("`openai`"));
        assert_eq!(invalid_reason(ProviderKind::Gemini, &Extra::new()), None);
        for name in RESERVED {
            let wrong = extra(json!({ "top_k": 1, name: 1 }));
            assert!(invalid_reason(ProviderKind::Openai, &wrong).unwrap().contains(name));
        }
    }

    #[test]
    fn extra_fields_of_a_model_replace_those_of_its_provider() {
        let provider = extra(json!({ "thinking": { "type": "enabled", "x": 1 }, "top_p": 0.5 }));
        let target = extra(json!({ "thinking": { "type": "disabled" } }));
        let expected = json!({ "thinking": { "type": "disabled" }, "top_p": 0.5 });
        assert_eq!(Value::Object(merge(&provider, &target)), expected);
    }
}
