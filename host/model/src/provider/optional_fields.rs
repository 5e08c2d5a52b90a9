//! Optional fields of requests that services reject.
//!
//! A service may reject a request because it does not know a field, or because a model does not
//! support the field. The host then sends the request without the field, or with the field under
//! its other name. It remembers what the service accepted, and sends later requests for the same
//! model in this form.

use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;

use crate::provider::error::rejection_words;
use crate::provider::rejections::Rejections;

/// Prefixes of the models that expect `max_completion_tokens` instead of `max_tokens`.
const MAX_COMPLETION_TOKENS_MODELS: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// Words with which services reject a field, and not its value: "Unsupported parameter",
/// "does not support 0.5 with this model", "Unrecognized request argument supplied", "Extra inputs
/// are not permitted".
const REJECTING: [&str; 11] = [
    "unsupported",
    "not support",
    "n't support",
    "unrecognized",
    "unknown",
    "unexpected",
    "extra ",
    "extra_",
    "not permitted",
    "not allowed",
    "deprecated",
];

/// An optional field of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionalField {
    /// `stream_options` in OpenAI's format, without which a stream has no usage.
    StreamOptions = 1,
    /// The limit of output tokens in OpenAI's format, which has two names.
    TokenLimit = 2,
    /// `temperature`.
    Temperature = 4,
}

impl OptionalField {
    const ALL: [Self; 3] = [Self::StreamOptions, Self::TokenLimit, Self::Temperature];

    /// Returns the name that the field has by default.
    fn name(self, model: &str) -> &'static str {
        match self {
            Self::StreamOptions => "stream_options",
            Self::TokenLimit => token_limit_name(model, FieldSet::default()),
            Self::Temperature => "temperature",
        }
    }

    /// Returns whether a service rejects the field with these words. It may also reject the value,
    /// such as a limit that is too large, which is the operator's to change.
    fn is_rejected(self, model: &str, words: &str) -> bool {
        let is_field =
            self == Self::StreamOptions || REJECTING.iter().any(|word| words.contains(word));
        is_field && words.contains(self.name(model))
    }

    /// Returns a sentence about requests after a rejection of the field.
    fn note(self, model: &str) -> String {
        let name = self.name(model);
        match self {
            Self::StreamOptions => format!(
                "requests have no `{name}`, which the service rejects; usage of streams may be \
                 missing"
            ),
            Self::TokenLimit => {
                let other = token_limit_name(model, FieldSet::default().with(self));
                format!("requests have `{other}` in place of `{name}`, which the service rejects")
            }
            Self::Temperature => format!("requests have no `{name}`, which the service rejects"),
        }
    }
}

/// Returns the name of the limit of output tokens in OpenAI's format.
fn token_limit_name(model: &str, rejected: FieldSet) -> &'static str {
    let is_new = MAX_COMPLETION_TOKENS_MODELS.iter().any(|name| model.starts_with(name));
    if is_new == rejected.has(OptionalField::TokenLimit) {
        "max_tokens"
    } else {
        "max_completion_tokens"
    }
}

/// A set of optional fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet(u8);

impl FieldSet {
    fn has(self, field: OptionalField) -> bool {
        self.0 & field as u8 != 0
    }

    fn with(self, field: OptionalField) -> Self {
        Self(self.0 | field as u8)
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The optional fields of the requests of one turn.
pub(super) struct TurnFields {
    /// The fields that the service rejects.
    rejected: FieldSet,
    /// The fields that the requests have, unless the service rejects them.
    requested: FieldSet,
}

impl TurnFields {
    /// Returns the fields of a turn without requests. `rejected` are the fields that the service is
    /// known to reject.
    pub(super) fn new(rejected: FieldSet) -> Self {
        Self { rejected, requested: FieldSet::default() }
    }

    /// Returns the fields that the service rejects.
    pub(super) fn rejected(&self) -> FieldSet {
        self.rejected
    }

    /// Returns the value of a field in a request: none if the service rejects the field.
    pub(super) fn value<T>(&mut self, field: OptionalField, value: Option<T>) -> Option<T> {
        self.note_requested(field, value.is_some());
        value.filter(|_| !self.rejected.has(field))
    }

    /// Returns the limit of output tokens in a request in OpenAI's format, with its name.
    pub(super) fn token_limit(
        &mut self,
        model: &str,
        limit: Option<u32>,
    ) -> (&'static str, Option<u32>) {
        self.note_requested(OptionalField::TokenLimit, limit.is_some());
        (token_limit_name(model, self.rejected), limit)
    }

    /// Notes that the requests have a field, if there is a value for it.
    fn note_requested(&mut self, field: OptionalField, has_value: bool) {
        if has_value {
            self.requested = self.requested.with(field);
        }
    }

    /// Adds the field that the service rejects with a failure. Returns false if the service rejects
    /// the request for another reason.
    pub(super) fn reject(&mut self, failure: &Failure, model: &str) -> bool {
        let Some(words) = rejection_words(failure) else { return false };
        let is_rejected = |field: &OptionalField| {
            self.requested.has(*field)
                && !self.rejected.has(*field)
                && field.is_rejected(model, &words)
        };
        let Some(field) = OptionalField::ALL.into_iter().find(is_rejected) else { return false };
        self.rejected = self.rejected.with(field);
        true
    }
}

/// The rejected fields of the models of one provider. A gateway has several services.
#[derive(Debug, Default)]
pub(super) struct FieldRejections(Rejections<FieldSet>);

impl FieldRejections {
    /// Returns the fields that the service of a model rejects.
    pub(super) fn of_model(&self, model: &str) -> FieldSet {
        self.0.accepted(|| Digest::of(model.as_bytes())).unwrap_or_default()
    }

    /// Remembers further fields that the service of a model rejects, because a request without them
    /// has succeeded.
    pub(super) fn remember(&self, provider: &str, model: &str, rejected: FieldSet) {
        let add = |known: Option<FieldSet>| known.unwrap_or_default().union(rejected);
        let known = self.0.update(Digest::of(model.as_bytes()), add).unwrap_or_default();
        for field in OptionalField::ALL {
            if rejected.has(field) && !known.has(field) {
                tracing::info!(provider, model, "{}", field.note(model));
            }
        }
    }

    /// Returns one sentence for each field that the service of a model rejects.
    pub(super) fn notes(&self, model: &str) -> Vec<String> {
        let rejected = self.of_model(model);
        let fields = OptionalField::ALL.into_iter().filter(|field| rejected.has(*field));
        fields.map(|field| field.note(model)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::failure::code;

    use super::*;
    use crate::provider::rejections::MAX_REJECTIONS;

    #[test]
    fn models_whose_fields_are_rejected_are_bounded() {
        let rejections = FieldRejections::default();
        let rejected = FieldSet::default().with(OptionalField::StreamOptions);
        assert_eq!(rejections.of_model("m"), FieldSet::default());
        rejections.remember("p", "m", rejected);
        assert_eq!(rejections.of_model("m"), rejected);
        for number in 0..MAX_REJECTIONS {
            rejections.remember("p", &number.to_string(), rejected);
        }
        assert_eq!(rejections.of_model("m"), FieldSet::default(), "it is forgotten");
        assert_eq!(rejections.of_model(&(MAX_REJECTIONS - 1).to_string()), rejected);
    }

    #[test]
    fn rejected_fields_of_a_model_add_up() {
        let rejections = FieldRejections::default();
        for field in [OptionalField::Temperature, OptionalField::TokenLimit] {
            rejections.remember("p", "m", FieldSet::default().with(field));
        }
        let expected = [
            "requests have `max_completion_tokens` in place of `max_tokens`, which the service \
             rejects",
            "requests have no `temperature`, which the service rejects",
        ];
        assert_eq!(rejections.notes("m"), expected);
        assert!(rejections.notes("n").is_empty());
    }

    #[test]
    fn turn_rejects_each_field_of_its_requests_once() {
        let text = "the request was rejected (status 400): unsupported parameter: 'temperature'";
        let failure = Failure::new(code::INVALID, text).with_details(json!({ "status": 400 }));
        let mut fields = TurnFields::new(FieldSet::default());
        assert!(!fields.reject(&failure, "m"), "no request has the field");
        assert_eq!(fields.value(OptionalField::Temperature, Some(1)), Some(1));
        assert!(fields.reject(&failure, "m"));
        assert_eq!(fields.value(OptionalField::Temperature, Some(1)), None);
        assert!(!fields.reject(&failure, "m"), "the last request did not have the field");
    }

    #[test]
    fn rejection_of_a_field_differs_from_that_of_its_value() {
        use OptionalField::{StreamOptions, Temperature, TokenLimit};
        for (field, model, words) in [
            (StreamOptions, "m", "stream_options is wrong"),
            (TokenLimit, "m", "unsupported parameter: 'max_tokens' is not supported"),
            (TokenLimit, "o3", "unrecognized request argument supplied: max_completion_tokens"),
            (Temperature, "m", "'temperature' does not support 0.5 with this model"),
            (Temperature, "m", "gpt-5 models don't support temperature=0.5"),
            (Temperature, "m", "`temperature` is deprecated for this model"),
        ] {
            assert!(field.is_rejected(model, words), "{words}");
        }
        for (field, model, words) in [
            (TokenLimit, "m", "max_tokens is too large: 9. this model supports at most 5 tokens"),
            (TokenLimit, "m", "unknown parameter: 'max_completion_tokens'"),
            (TokenLimit, "o3", "unknown parameter: 'max_tokens'"),
            (Temperature, "m", "temperature must be between 0 and 1"),
            (Temperature, "m", "unsupported parameter: 'seed'"),
        ] {
            assert!(!field.is_rejected(model, words), "{words}");
        }
    }

    #[test]
    fn token_limit_has_its_other_name_after_a_rejection() {
        let rejected = FieldSet::default().with(OptionalField::TokenLimit);
        for (model, usual, other) in [
            ("gpt-4o", "max_tokens", "max_completion_tokens"),
            ("gpt-5", "max_completion_tokens", "max_tokens"),
        ] {
            assert_eq!(token_limit_name(model, FieldSet::default()), usual);
            assert_eq!(token_limit_name(model, rejected), other);
        }
    }
}
