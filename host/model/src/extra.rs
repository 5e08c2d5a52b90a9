//! Fields of a provider's own that are added to a request.
//!
//! Services that speak OpenAI's format have switches of their own, such as DeepSeek's `thinking`.
//! They are written down as they go over the wire. What this crate sets itself cannot be replaced:
//! an answer would no longer be what was asked for.

use serde_json::{Map, Value};

use crate::config::ProviderKind;

/// Fields at the top level of a request body.
pub type Extra = Map<String, Value>;

/// Fields that a request sets itself.
const OWN: [&str; 13] = [
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

/// What keeps these fields from being added to requests of this kind.
pub(crate) fn problem(kind: ProviderKind, extra: &Extra) -> Option<String> {
    if extra.is_empty() {
        return None;
    }
    if kind != ProviderKind::Openai {
        return Some("only providers of kind `openai` take further fields".to_owned());
    }
    let own = OWN.iter().find(|name| extra.contains_key(**name))?;
    Some(format!("`{own}` is set by the host; use the route's own keys, or remove it"))
}

/// The fields of a provider and of a route's target; the target's replace the provider's.
pub(crate) fn joined(provider: &Extra, target: &Extra) -> Extra {
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
    fn what_the_host_sets_cannot_be_replaced() {
        let thinking = extra(json!({ "thinking": { "type": "disabled" } }));
        assert_eq!(problem(ProviderKind::Openai, &thinking), None);
        assert!(problem(ProviderKind::Gemini, &thinking).unwrap().contains("`openai`"));
        assert_eq!(problem(ProviderKind::Gemini, &Extra::new()), None);
        for name in OWN {
            let wrong = extra(json!({ "top_k": 1, name: 1 }));
            assert!(problem(ProviderKind::Openai, &wrong).unwrap().contains(name));
        }
    }

    #[test]
    fn a_target_goes_before_its_provider() {
        let provider = extra(json!({ "thinking": { "type": "enabled", "x": 1 }, "top_p": 0.5 }));
        let target = extra(json!({ "thinking": { "type": "disabled" } }));
        let expected = json!({ "thinking": { "type": "disabled" }, "top_p": 0.5 });
        assert_eq!(Value::Object(joined(&provider, &target)), expected);
    }
}
