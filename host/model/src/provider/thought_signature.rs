//! Thought signatures of Gemini.
//!
//! Gemini 3 signs the first tool call of each turn, and rejects a conversation in which such a call
//! has no signature. Calls of other models and calls in messages that were edited have none. They
//! get a placeholder.

/// The signature that Gemini 3 accepts for a tool call that another model made, or that was
/// modified. Source: "Thought signatures" of the Gemini API's documentation.
pub(super) const PLACEHOLDER: &str = "skip_thought_signature_validator";

/// Prefixes of models that need no signatures.
const UNSIGNED_MODELS: [&str; 2] = ["gemini-1", "gemini-2"];

/// Returns whether a model needs signatures in Gemini's own format. A model with another name may
/// be Gemini 3 under an alias.
pub(super) fn is_needed(model: &str) -> bool {
    gemini_name(model).is_none_or(|name| is_signed(&name))
}

/// Returns whether a model needs signatures in OpenAI's format, in which most models are no Gemini.
pub(super) fn is_needed_in_openai_format(model: &str) -> bool {
    gemini_name(model).is_some_and(|name| is_signed(&name))
}

/// Returns the name of a Gemini model in lower case, without what gateways write before it.
fn gemini_name(model: &str) -> Option<String> {
    let model = model.to_ascii_lowercase();
    model.rfind("gemini").map(|start| model[start..].to_owned())
}

fn is_signed(name: &str) -> bool {
    !UNSIGNED_MODELS.iter().any(|unsigned| name.starts_with(unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gemini_3_needs_signatures_under_each_name() {
        for (model, own_format, openai_format) in [
            ("gemini-3-pro-preview", true, true),
            ("gemini-3.1-flash", true, true),
            ("gemini-flash-latest", true, true),
            ("models/gemini-3-pro", true, true),
            ("google/gemini-3-pro-preview", true, true),
            ("gemini/gemini-3-flash", true, true),
            ("vertex_ai/Gemini-3-Pro", true, true),
            ("databricks-gemini-3-pro", true, true),
            ("gemini-2.5-flash", false, false),
            ("models/gemini-2.5-flash", false, false),
            ("gemini/gemini-1.5-pro", false, false),
            ("databricks-gemini-2-5-pro", false, false),
            ("my-model", true, false),
            ("gpt-5", true, false),
        ] {
            assert_eq!(is_needed(model), own_format, "{model}");
            assert_eq!(is_needed_in_openai_format(model), openai_format, "{model}");
        }
    }
}
