//! Ids of tool calls in requests.
//!
//! A conversation may have ids of several services, after a fallback or a change of the route. A
//! service accepts the ids that it made, and rejects ids of other services that do not have its
//! form. Such an id is replaced with one that is derived from it, so that a call and its result
//! have the same id in each request.

use std::borrow::Cow;
use std::collections::HashSet;

use wattle_graph::id::Digest;

/// Maximum characters of an id. Source: "string too long. Expected a string with maximum length 40"
/// of OpenAI (camel-ai/camel issue 2215).
const MAX_ID_CHARS: usize = 40;

/// The number of characters of an id of Mistral, which are letters and digits. Source: "must be
/// a-z, A-Z, 0-9, with a length of 9" of Mistral (anomalyco/opencode issue 1680).
const MISTRAL_ID_CHARS: usize = 9;

/// The number of digits of the digest in a derived id of up to [`MAX_ID_CHARS`] characters.
const DIGEST_CHARS: usize = 24;

/// Words in the names of Mistral's models. Other services with these models may have the same
/// requirement, because the prompt templates of the models check the ids.
const MISTRAL_MODELS: [&str; 8] =
    ["codestral", "devstral", "magistral", "ministral", "mistral", "mixtral", "pixtral", "voxtral"];

/// The form of the ids that a service accepts from other services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallIdForm {
    /// 1 to [`MAX_ID_CHARS`] characters.
    Short,
    /// [`MISTRAL_ID_CHARS`] letters and digits.
    Mistral,
}

impl CallIdForm {
    /// Returns the form for a model.
    pub(super) fn of_model(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        if MISTRAL_MODELS.iter().any(|word| model.contains(word)) {
            Self::Mistral
        } else {
            Self::Short
        }
    }

    /// Returns whether an id has this form.
    pub(super) fn accepts(self, id: &str) -> bool {
        match self {
            Self::Short => (1..=MAX_ID_CHARS).contains(&id.chars().count()),
            Self::Mistral => {
                id.len() == MISTRAL_ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
            }
        }
    }

    /// Returns an id of this form. Equal ids remain equal.
    fn derive(self, id: &str) -> String {
        let digest = Digest::of(id.as_bytes()).to_hex();
        let digits = |count: usize| digest.chars().take(count);
        match self {
            Self::Short => "call_".chars().chain(digits(DIGEST_CHARS)).collect(),
            Self::Mistral => digits(MISTRAL_ID_CHARS).collect(),
        }
    }
}

/// The ids of the calls and results in one request.
#[derive(Debug)]
pub(super) struct CallIds {
    form: CallIdForm,
    /// Ids of another form that the service made.
    own: HashSet<String>,
}

impl CallIds {
    /// Creates the ids of a request to a model.
    pub(super) fn for_model(model: &str) -> Self {
        Self { form: CallIdForm::of_model(model), own: HashSet::new() }
    }

    /// Adds an id that the service made.
    pub(super) fn add_own(&mut self, id: &str) {
        if !self.form.accepts(id) {
            self.own.insert(id.to_owned());
        }
    }

    /// Returns the id to send for the id of a call or of its result.
    pub(super) fn sent<'i>(&self, id: &'i str) -> Cow<'i, str> {
        if self.form.accepts(id) || self.own.contains(id) {
            id.into()
        } else {
            self.form.derive(id).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_services_get_the_accepted_form() {
        let long = format!("chatcmpl-{}-0", "0".repeat(36));
        for (model, id, is_kept) in [
            ("gpt-5", "call_1", true),
            ("gpt-5", "call#add#0", true),
            ("gpt-5", "functions.add:0", true),
            ("gpt-5", "toolu_01A", true),
            ("gpt-5", &long[..40], true),
            ("gpt-5", &long[..41], false),
            ("gpt-5", "", false),
            ("mistral-large-latest", "D681PevKs", true),
            ("mistralai/Devstral-Small-2507", "D681PevKs", true),
            ("open-mixtral-8x22b", "call_1", false),
            ("magistral-medium-2509", "call_1234", false),
            ("codestral-latest", "D681PevKs1", false),
            ("pixtral-large", "", false),
        ] {
            let ids = CallIds::for_model(model);
            let sent = ids.sent(id);
            assert_eq!(sent == id, is_kept, "{model} {id}: {sent}");
            assert_eq!(ids.sent(id), sent, "{model} {id}");
            assert_eq!(ids.sent(&sent), sent, "{model} {id}");
        }
        let ids = CallIds::for_model("mistral-small");
        assert_ne!(ids.sent("call_1"), ids.sent("call_2"));
    }

    #[test]
    fn ids_of_the_service_are_kept() {
        for model in ["gpt-5", "mistral-small"] {
            let long = "x".repeat(100);
            let mut ids = CallIds::for_model(model);
            ids.add_own(&long);
            assert_eq!(ids.sent(&long), long, "{model}");
            assert_ne!(ids.sent(&long[1..]), long[1..], "{model}");
        }
    }
}
