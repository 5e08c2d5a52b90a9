//! Provider state: data that a provider sends for its own use and expects in later requests.
//!
//! Providers sign reasoning, encrypt it or mark tool calls, and reject or misread a conversation
//! that lacks these data. Other providers do not understand these data. The state is the first part
//! of its message: a [`Part::Other`] of type [`PROVIDER_STATE`]. A guest keeps the part and sends
//! it back with the message.
//!
//! The state repeats no text and no arguments. The outline of the state contains the order in which
//! the provider sent the parts of the message, and the other fields of these parts. A request to
//! the same provider, for a model of the same family, contains the message as the provider sent it.
//! Other providers, and models of other families, get neither the state nor the reasoning of the
//! message.

mod call_ids;
mod size;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wattle_graph::llm::{PROVIDER_STATE, Part, ToolCall};
use wattle_run::json::lenient;

pub(super) use self::size::{MAX_STATE_BYTES, StateSize, approx_bytes};
use crate::provider::model_family::{family, family_without_model};

/// Fields of a message or of a part.
pub(super) type Fields = Map<String, Value>;

/// Returns whether a value has content.
pub(super) fn has_content(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Adds fields to an object. Objects are merged; existing values of other types are kept.
pub(super) fn merge_fields(mut value: Value, fields: Fields) -> Value {
    if let Some(object) = value.as_object_mut() {
        for (name, more) in fields {
            match (object.get_mut(&name), more) {
                (Some(known @ Value::Object(_)), Value::Object(more)) => {
                    *known = merge_fields(known.take(), more);
                }
                (Some(_), _) => {}
                (None, more) => drop(object.insert(name, more)),
            }
        }
    }
    value
}

/// The provider and the model that a provider state belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateOwner {
    /// The configured name of the provider.
    provider: String,
    /// The family of the model by [`family_without_model`]. Only states without `model` are
    /// compared by it.
    family: String,
    /// The requested model. States of older threads do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

impl StateOwner {
    pub(super) fn new(provider: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            family: family_without_model(model).to_owned(),
            model: Some(model.to_owned()),
        }
    }

    /// Returns whether a state of `other` is sent in a request of this owner: the provider is the
    /// same, and the models are of one family.
    fn accepts(&self, other: &Self) -> bool {
        let is_same_family = match (&self.model, &other.model) {
            (Some(model), Some(other)) => family(model) == family(other),
            _ => self.family == other.family,
        };
        self.provider == other.provider && is_same_family
    }
}

/// The state of an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ProviderState {
    #[serde(flatten)]
    owner: StateOwner,
    /// The parts in the provider's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outline: Vec<OutlineItem>,
    /// Fields of the message itself.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) fields: Fields,
    /// The ids of the calls as the provider sent them, if `fields` contains one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    call_ids: Vec<String>,
}

/// A part in the outline of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutlineItem {
    /// The next bytes of the text.
    Text(TextRange),
    /// The next bytes of the reasoning.
    Reasoning(TextRange),
    /// The next tool call, with its other fields.
    Call(Fields),
    /// A part that only the provider understands.
    Own(Value),
}

impl OutlineItem {
    fn is_marked_reasoning(&self) -> bool {
        matches!(self, Self::Reasoning(TextRange { fields, .. }) if !fields.is_empty())
    }
}

/// The next `bytes` bytes of the text or the reasoning, and the fields of their part other than the
/// text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TextRange {
    bytes: usize,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    fields: Fields,
}

/// A part of a message as the provider sent it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SentPart<'a> {
    Text(&'a str, Fields),
    Reasoning(&'a str, Fields),
    Call(&'a ToolCall, Fields),
    Opaque(Value),
}

impl ProviderState {
    /// Parses the state in a part.
    pub(super) fn from_part(part: &Part) -> Option<Self> {
        let Part::Other(value) = part else { return None };
        let is_state = value.get("type").and_then(Value::as_str) == Some(PROVIDER_STATE);
        // A state that cannot be parsed, such as a modified one, is ignored.
        is_state.then(|| Self::deserialize(value).ok()).flatten()
    }

    fn to_part(&self) -> Part {
        let mut value = json!({ "type": PROVIDER_STATE });
        if let (Some(fields), Ok(Value::Object(own))) =
            (value.as_object_mut(), serde_json::to_value(self))
        {
            fields.extend(own);
        }
        // The two halves of a surrogate pair that arrived in separate fragments are adjacent in the
        // assembled value.
        Part::Other(lenient::join_surrogates_in(value))
    }
}

/// A message that is assembled in the order in which it arrives.
#[derive(Debug, Default)]
pub(super) struct MessageBuilder {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    outline: Vec<OutlineItem>,
    /// Fields of the message itself that only the provider understands.
    pub(super) fields: Fields,
    /// Whether the message has a state in any case, because it has call ids that other providers
    /// reject.
    pub(super) has_own_ids: bool,
}

impl MessageBuilder {
    pub(super) fn push_text(&mut self, text: &str, fields: Fields) {
        self.text.push_str(text);
        match self.outline.last_mut() {
            Some(OutlineItem::Text(last)) if last.fields.is_empty() && fields.is_empty() => {
                last.bytes += text.len();
            }
            _ if text.is_empty() && fields.is_empty() => {}
            _ => self.outline.push(OutlineItem::Text(TextRange { bytes: text.len(), fields })),
        }
    }

    pub(super) fn push_reasoning(&mut self, text: &str, fields: Fields) {
        self.reasoning.push_str(text);
        match self.outline.last_mut() {
            Some(OutlineItem::Reasoning(last)) if last.fields.is_empty() && fields.is_empty() => {
                last.bytes += text.len();
            }
            _ if text.is_empty() && fields.is_empty() => {}
            _ => self.outline.push(OutlineItem::Reasoning(TextRange { bytes: text.len(), fields })),
        }
    }

    /// Returns whether the message has a call with the same id, name and arguments.
    pub(super) fn has_call(&self, call: &ToolCall) -> bool {
        self.calls.contains(call)
    }

    pub(super) fn push_call(&mut self, call: ToolCall, fields: Fields) {
        self.calls.push(call);
        self.outline.push(OutlineItem::Call(fields));
    }

    /// Adds a part that only the provider understands.
    pub(super) fn push_opaque(&mut self, value: Value) {
        self.outline.push(OutlineItem::Own(value));
    }

    /// Returns the parts of the message: its state if it has one, reasoning, text, tool calls.
    pub(super) fn build(self, owner: StateOwner) -> Vec<Part> {
        let has_state = |item: &OutlineItem| match item {
            OutlineItem::Text(TextRange { fields, .. }) | OutlineItem::Call(fields) => {
                !fields.is_empty()
            }
            // Reasoning needs a state with an owner, because the owner determines which providers
            // receive the reasoning.
            OutlineItem::Reasoning(_) | OutlineItem::Own(_) => true,
        };
        let mut parts = Vec::new();
        if self.has_own_ids || !self.fields.is_empty() || self.outline.iter().any(has_state) {
            let call_ids = call_ids::referenced_in(&self.fields, &self.calls);
            let (outline, fields) = (self.outline, self.fields);
            let state = ProviderState { owner, outline, fields, call_ids };
            parts.push(state.to_part());
        }
        parts.extend(Some(self.reasoning).filter(|text| !text.is_empty()).map(Part::Reasoning));
        parts.extend(Some(self.text).filter(|text| !text.is_empty()).map(Part::Text));
        parts.extend(self.calls.into_iter().map(Part::ToolCall));
        parts
    }
}

/// An assistant message in the form for one provider.
#[derive(Debug, PartialEq)]
pub(super) struct SentMessage<'a> {
    /// The parts; in the provider's order if the state is the provider's.
    pub(super) parts: Vec<SentPart<'a>>,
    /// Fields of the message itself.
    pub(super) fields: Fields,
    /// Whether the provider made the message, even if the message was changed since.
    pub(super) is_own: bool,
}

impl<'a> SentMessage<'a> {
    /// Converts a message for a provider. Omits the state of other providers, and state that no
    /// longer matches the message.
    pub(super) fn new(parts: &'a [Part], owner: &StateOwner) -> Self {
        let plain = |with_reasoning: bool, is_own: bool| {
            let parts = plain_parts(parts, with_reasoning);
            Self { parts, fields: Fields::new(), is_own }
        };
        let state = parts.iter().find_map(ProviderState::from_part);
        let Some(state) = state else { return plain(true, false) };
        if !owner.accepts(&state.owner) {
            return plain(false, false);
        }
        // Reasoning with fields of its own is incomplete without them.
        let has_plain_reasoning = !state.outline.iter().any(OutlineItem::is_marked_reasoning);
        match ordered_parts(parts, state.outline) {
            Some(parts) => {
                let ids = parts.iter().filter_map(|piece| match piece {
                    SentPart::Call(call, _) => Some(call.id.as_str()),
                    _ => None,
                });
                let mut fields = state.fields;
                call_ids::replace(&mut fields, &state.call_ids, ids);
                Self { parts, fields, is_own: true }
            }
            None => plain(has_plain_reasoning, true),
        }
    }
}

/// Returns the parts in the order of the message.
fn plain_parts(parts: &[Part], with_reasoning: bool) -> Vec<SentPart<'_>> {
    let pieces = parts.iter().filter_map(|part| match part {
        Part::Text(text) if !text.is_empty() => Some(SentPart::Text(text, Fields::new())),
        Part::Reasoning(text) if with_reasoning => Some(SentPart::Reasoning(text, Fields::new())),
        Part::ToolCall(call) => Some(SentPart::Call(call, Fields::new())),
        _ => None,
    });
    pieces.collect()
}

/// Returns the parts in the order of an outline; `None` if the outline does not match them.
fn ordered_parts(parts: &[Part], outline: Vec<OutlineItem>) -> Option<Vec<SentPart<'_>>> {
    let (mut texts, mut reasoning) = (Vec::new(), Vec::new());
    let mut calls = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text.as_str()),
            Part::Reasoning(text) => reasoning.push(text.as_str()),
            Part::ToolCall(call) => calls.push(call),
            _ => {}
        }
    }
    // The outline counts bytes from the start of a single text, so several text parts cannot match
    // the outline.
    let mut text = single_text(&texts)?;
    let mut reasoning = single_text(&reasoning)?;
    let mut calls = calls.into_iter();
    let mut pieces = Vec::with_capacity(outline.len());
    for item in outline {
        pieces.push(match item {
            OutlineItem::Text(TextRange { bytes, fields }) => {
                SentPart::Text(take_bytes(&mut text, bytes)?, fields)
            }
            OutlineItem::Reasoning(TextRange { bytes, fields }) => {
                SentPart::Reasoning(take_bytes(&mut reasoning, bytes)?, fields)
            }
            OutlineItem::Call(fields) => SentPart::Call(calls.next()?, fields),
            OutlineItem::Own(value) => SentPart::Opaque(value),
        });
    }
    (text.is_empty() && reasoning.is_empty() && calls.next().is_none()).then_some(pieces)
}

fn single_text<'a>(texts: &[&'a str]) -> Option<&'a str> {
    match texts {
        [] => Some(""),
        [text] => Some(text),
        _ => None,
    }
}

fn take_bytes<'a>(text: &mut &'a str, bytes: usize) -> Option<&'a str> {
    let (piece, rest) = text.split_at_checked(bytes)?;
    *text = rest;
    Some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Fields {
        serde_json::from_value(value).unwrap()
    }

    fn call(id: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "add".into(), arguments: json!({ "a": 1 }) }
    }

    /// A message with every kind of part.
    fn message(owner: StateOwner) -> Vec<Part> {
        let mut draft = MessageBuilder::default();
        draft.push_reasoning("first ", fields(json!({ "signature": "s1" })));
        draft.push_opaque(json!({ "type": "redacted", "data": "x" }));
        draft.push_text("let ", Fields::new());
        draft.push_text("me", Fields::new());
        draft.push_call(call("c1"), fields(json!({ "extra": { "b": 2 } })));
        draft.push_reasoning("then", fields(json!({ "signature": "s2" })));
        draft.push_call(call("c2"), Fields::new());
        draft.fields = fields(json!({ "details": [1] }));
        draft.build(owner)
    }

    #[test]
    fn message_is_sent_back_unchanged() {
        let owner = StateOwner::new("g", "gemini-3-pro");
        let parts = message(owner.clone());
        let kinds: Vec<&str> = parts
            .iter()
            .map(|part| match part {
                Part::Other(_) => "state",
                Part::Reasoning(_) => "reasoning",
                Part::Text(_) => "text",
                _ => "call",
            })
            .collect();
        assert_eq!(kinds, ["state", "reasoning", "text", "call", "call"]);
        // The parts are serialized and parsed, as when they are read from a journal.
        let parts: Vec<Part> =
            serde_json::from_value(serde_json::to_value(&parts).unwrap()).unwrap();
        let said = SentMessage::new(&parts, &owner);
        let (one, two) = (call("c1"), call("c2"));
        let expected = [
            SentPart::Reasoning("first ", fields(json!({ "signature": "s1" }))),
            SentPart::Opaque(json!({ "type": "redacted", "data": "x" })),
            SentPart::Text("let me", Fields::new()),
            SentPart::Call(&one, fields(json!({ "extra": { "b": 2 } }))),
            SentPart::Reasoning("then", fields(json!({ "signature": "s2" }))),
            SentPart::Call(&two, Fields::new()),
        ];
        assert_eq!(said.parts, expected);
        assert_eq!(said.fields, fields(json!({ "details": [1] })));
    }

    #[test]
    fn split_surrogate_pairs_are_joined_in_the_state() {
        let piece = |text: &str| lenient::parse(text).unwrap().as_str().unwrap().to_owned();
        let joined = piece(r#""caf\ud83d""#) + &piece(r#""\ude00""#);
        let owner = StateOwner::new("p", "m");
        let draft = MessageBuilder {
            fields: fields(json!({ "details": joined })),
            ..MessageBuilder::default()
        };
        let parts = draft.build(owner.clone());
        let said = SentMessage::new(&parts, &owner);
        assert_eq!(Value::Object(said.fields), json!({ "details": "caf\u{1f600}" }));
    }

    #[test]
    fn providers_and_families_do_not_get_state_and_reasoning_of_another() {
        let parts = message(StateOwner::new("g", "gemini-3-pro"));
        for other in [StateOwner::new("h", "gemini-3-pro"), StateOwner::new("g", "gemma-3")] {
            let said = SentMessage::new(&parts, &other);
            let (one, two) = (call("c1"), call("c2"));
            let expected = [
                SentPart::Text("let me", Fields::new()),
                SentPart::Call(&one, Fields::new()),
                SentPart::Call(&two, Fields::new()),
            ];
            assert_eq!((said.parts.as_slice(), said.fields.len()), (&expected[..], 0));
        }
    }

    #[test]
    fn changed_message_is_sent_without_its_state() {
        let owner = StateOwner::new("g", "gemini-3-pro");
        let whole = message(owner.clone());
        let mut shorter = whole.clone();
        shorter.pop();
        let mut longer = whole.clone();
        longer[2] = Part::Text("let me see".into());
        let mut cut = whole.clone();
        cut[1] = Part::Reasoning("f\u{e9}".into());
        let mut twice = whole;
        twice.push(Part::Text("more".into()));
        for parts in [shorter, longer, cut, twice] {
            let said = SentMessage::new(&parts, &owner);
            assert!(said.fields.is_empty());
            let bare = said.parts.iter().all(|piece| match piece {
                SentPart::Text(_, fields) | SentPart::Call(_, fields) => fields.is_empty(),
                SentPart::Reasoning(..) | SentPart::Opaque(_) => false,
            });
            assert!(bare, "{:?}", said.parts);
        }
    }

    #[test]
    fn added_fields_do_not_replace_existing_ones() {
        let call = json!({ "name": "add", "function": { "name": "add" } });
        let own = json!({ "name": "sub", "function": { "name": "sub", "strict": true }, "x": 1 });
        let expected =
            json!({ "name": "add", "function": { "name": "add", "strict": true }, "x": 1 });
        assert_eq!(merge_fields(call, fields(own)), expected);
    }

    #[test]
    fn plain_message_has_no_state() {
        let mut draft = MessageBuilder::default();
        draft.push_text("hi", Fields::new());
        draft.push_call(call("c1"), Fields::new());
        let parts = draft.build(StateOwner::new("o", "gpt-5"));
        assert_eq!(parts, [Part::Text("hi".into()), Part::ToolCall(call("c1"))]);
    }

    #[test]
    fn message_with_ids_of_its_provider_has_an_owner() {
        let mut draft = MessageBuilder { has_own_ids: true, ..MessageBuilder::default() };
        draft.push_call(call("c1"), Fields::new());
        let mut parts = draft.build(StateOwner::new("o", "gpt-5"));
        parts.push(Part::Text("changed".into()));
        for (provider, is_own) in [("o", true), ("p", false)] {
            let said = SentMessage::new(&parts, &StateOwner::new(provider, "gpt-5"));
            assert_eq!(said.is_own, is_own, "{provider}");
        }
    }

    #[test]
    fn models_of_one_gateway_get_the_state_of_their_family_only() {
        for (model, other, is_accepted) in [
            ("us.anthropic.claude-opus-5", "eu.anthropic.claude-haiku-5", true),
            ("us.anthropic.claude-opus-5", "us.meta.llama4-maverick", false),
            ("databricks-claude-opus-5", "databricks-gpt-5", false),
            ("databricks-dbrx", "databricks-claude-opus-5", false),
            ("gemini-3-pro", "gemini-flash-latest", true),
        ] {
            let parts = message(StateOwner::new("g", model));
            let said = SentMessage::new(&parts, &StateOwner::new("g", other));
            assert_eq!(!said.fields.is_empty(), is_accepted, "{model} {other}");
        }
    }

    #[test]
    fn state_without_a_model_is_accepted_by_its_family() {
        for (model, other, is_accepted) in [
            ("us.anthropic.claude-opus-5", "us.anthropic.claude-opus-5", true),
            ("gemini-3-pro", "gemini-flash-latest", true),
            ("gemini-3-pro", "gemma-3", false),
        ] {
            let mut parts = message(StateOwner::new("g", model));
            let Some(Part::Other(state)) = parts.first_mut() else { panic!("no state") };
            assert_eq!(state.as_object_mut().unwrap().remove("model"), Some(json!(model)));
            let said = SentMessage::new(&parts, &StateOwner::new("g", other));
            assert_eq!(!said.fields.is_empty(), is_accepted, "{model} {other}");
        }
    }
}
