//! What a provider sent for itself, and gets back.
//!
//! Providers sign reasoning, encrypt it, mark requests for tools, and refuse or misunderstand a
//! conversation in which that is missing. Nobody else understands it. It travels with the message as one
//! part, [`Part::Other`] of type [`PROVIDER_STATE`], which is the first one of its message. A guest keeps
//! the part with the message, and shows it again with it.
//!
//! The part repeats no text and no arguments. Its outline says in which order the provider gave the parts
//! of the message, and which fields each of them had beside its text or its arguments. When the same
//! provider is asked again for a model of the same family, the message is written as it came. A provider
//! of another name or a model of another family gets neither the state nor the reasoning of the message.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wattle_graph::llm::{PROVIDER_STATE, Part, ToolCall};
use wattle_run::json::lenient;

/// Bytes of what a provider sends for itself in one answer: signatures and encrypted reasoning have some ten
/// KiB, pages that a provider's own tools found some hundred. The journal keeps all of it.
const OWN_BYTES: usize = 4 << 20;

/// Levels of a value that a provider sends for itself.
const OWN_DEPTH: usize = 32;

/// Fields of a message or of a part.
pub(super) type Fields = Map<String, Value>;

/// The size of what a provider sends for itself in one answer.
#[derive(Debug, Default)]
pub(super) struct OwnBytes(usize);

impl OwnBytes {
    /// Bytes so far.
    pub(super) fn count(&self) -> usize {
        self.0
    }

    /// Counts fields.
    ///
    /// # Errors
    ///
    /// If they are too deep, or too much together with all that came before.
    pub(super) fn add_fields<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Result<(), String> {
        fields.into_iter().try_for_each(|(name, value)| self.add(name.len() + weight(value)?))
    }

    /// Counts a value.
    ///
    /// # Errors
    ///
    /// As [`add_fields`](Self::add_fields).
    pub(super) fn add_value(&mut self, value: &Value) -> Result<(), String> {
        self.add(weight(value)?)
    }

    /// Counts bytes.
    ///
    /// # Errors
    ///
    /// If these are too much together with all that came before.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), String> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 > OWN_BYTES {
            return Err(format!("it has more than {OWN_BYTES} bytes in fields of its own"));
        }
        Ok(())
    }
}

/// Bytes of the texts, names and other scalars of a value: one for a scalar that is no text.
///
/// # Errors
///
/// If the value has too many levels.
pub(super) fn weight(value: &Value) -> Result<usize, String> {
    fn inner(value: &Value, depth: usize) -> Result<usize, String> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("a field of its own has more than {OWN_DEPTH} levels"));
        };
        match value {
            Value::String(text) => Ok(text.len()),
            Value::Array(items) => items.iter().map(|item| Ok(1 + inner(item, depth)?)).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| Ok(name.len() + inner(value, depth)?)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(1),
        }
    }
    inner(value, OWN_DEPTH)
}

/// Whether a value says anything.
pub(super) fn says(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// An object with further fields; those that it has stay, and objects are joined.
pub(super) fn with(mut value: Value, fields: Fields) -> Value {
    if let Some(object) = value.as_object_mut() {
        for (name, more) in fields {
            match (object.get_mut(&name), more) {
                (Some(known @ Value::Object(_)), Value::Object(more)) => {
                    *known = with(known.take(), more);
                }
                (Some(_), _) => {}
                (None, more) => drop(object.insert(name, more)),
            }
        }
    }
    value
}

/// Whose state it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// The provider, as it is configured.
    provider: String,
    /// The family of the model that answered.
    family: String,
}

impl Owner {
    pub(super) fn new(provider: &str, model: &str) -> Self {
        Self { provider: provider.to_owned(), family: family(model).to_owned() }
    }
}

/// The family of a model: its name up to the first sign after the first word, behind the name of a vendor.
/// `gemini-3-pro` and `gemini-flash-latest` are of one family, `anthropic/claude-opus-4` and
/// `anthropic/claude-haiku-5` of another one.
fn family(model: &str) -> &str {
    let start = model.rfind('/').map_or(0, |slash| slash + 1);
    let word = model[start..].find(|letter: char| !letter.is_alphabetic());
    &model[..word.map_or(model.len(), |length| start + length)]
}

/// The state of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    #[serde(flatten)]
    owner: Owner,
    /// The parts in the provider's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outline: Vec<Item>,
    /// Fields of the message as a whole.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) fields: Fields,
}

/// A part in the outline of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Item {
    /// The next bytes of the message's text.
    Text(Stretch),
    /// The next bytes of its reasoning.
    Reasoning(Stretch),
    /// Its next request for a tool, with fields of that.
    Call(Fields),
    /// A part that means nothing to others, as it came.
    Own(Value),
}

/// Bytes of a text, and the fields of the part that says them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stretch {
    bytes: usize,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    fields: Fields,
}

/// A part of a message as its provider gave it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece<'a> {
    Text(&'a str, Fields),
    Reasoning(&'a str, Fields),
    Call(&'a ToolCall, Fields),
    Own(Value),
}

impl State {
    /// The state that a part holds.
    pub(super) fn of(part: &Part) -> Option<Self> {
        let Part::Other(value) = part else { return None };
        let is_state = value.get("type").and_then(Value::as_str) == Some(PROVIDER_STATE);
        // What somebody changed is no state any more.
        is_state.then(|| Self::deserialize(value).ok()).flatten()
    }

    fn part(&self) -> Part {
        let mut value = json!({ "type": PROVIDER_STATE });
        if let (Some(fields), Ok(Value::Object(own))) =
            (value.as_object_mut(), serde_json::to_value(self))
        {
            fields.extend(own);
        }
        // Halves of characters that came in two pieces stand side by side by now.
        Part::Other(lenient::settled(value))
    }
}

/// An answer in the order in which it arrives.
#[derive(Debug, Default)]
pub(super) struct Draft {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    outline: Vec<Item>,
    /// Fields of the message as a whole.
    pub(super) fields: Fields,
}

impl Draft {
    pub(super) fn text(&mut self, text: &str, fields: Fields) {
        self.text.push_str(text);
        match self.outline.last_mut() {
            Some(Item::Text(last)) if last.fields.is_empty() && fields.is_empty() => {
                last.bytes += text.len();
            }
            _ if text.is_empty() && fields.is_empty() => {}
            _ => self.outline.push(Item::Text(Stretch { bytes: text.len(), fields })),
        }
    }

    pub(super) fn reasoning(&mut self, text: &str, fields: Fields) {
        self.reasoning.push_str(text);
        match self.outline.last_mut() {
            Some(Item::Reasoning(last)) if last.fields.is_empty() && fields.is_empty() => {
                last.bytes += text.len();
            }
            _ if text.is_empty() && fields.is_empty() => {}
            _ => self.outline.push(Item::Reasoning(Stretch { bytes: text.len(), fields })),
        }
    }

    pub(super) fn call(&mut self, call: ToolCall, fields: Fields) {
        self.calls.push(call);
        self.outline.push(Item::Call(fields));
    }

    /// A part that means nothing to others.
    pub(super) fn own(&mut self, value: Value) {
        self.outline.push(Item::Own(value));
    }

    /// The parts of the message: its state if it has one, reasoning, text, requests for tools.
    pub(super) fn parts(self, owner: Owner) -> Vec<Part> {
        let has_state = |item: &Item| match item {
            Item::Text(Stretch { fields, .. }) | Item::Call(fields) => !fields.is_empty(),
            // Whose reasoning it is decides to whom it is shown.
            Item::Reasoning(_) | Item::Own(_) => true,
        };
        let mut parts = Vec::new();
        if !self.fields.is_empty() || self.outline.iter().any(has_state) {
            let state = State { owner, outline: self.outline, fields: self.fields };
            parts.push(state.part());
        }
        parts.extend(Some(self.reasoning).filter(|text| !text.is_empty()).map(Part::Reasoning));
        parts.extend(Some(self.text).filter(|text| !text.is_empty()).map(Part::Text));
        parts.extend(self.calls.into_iter().map(Part::ToolCall));
        parts
    }
}

/// A message of a model, for one provider.
#[derive(Debug, PartialEq)]
pub(super) struct Said<'a> {
    /// In the provider's order, if it is the provider's own.
    pub(super) pieces: Vec<Piece<'a>>,
    /// Fields of the message as a whole.
    pub(super) fields: Fields,
}

impl<'a> Said<'a> {
    /// A message for a provider. What other providers sent for themselves is left out, and so is what
    /// somebody has changed.
    pub(super) fn new(parts: &'a [Part], owner: &Owner) -> Self {
        let state = parts.iter().find_map(State::of);
        let Some(state) = state else {
            return Self { pieces: plain(parts, true), fields: Fields::new() };
        };
        if state.owner != *owner {
            return Self { pieces: plain(parts, false), fields: Fields::new() };
        }
        match outlined(parts, state.outline) {
            Some(pieces) => Self { pieces, fields: state.fields },
            None => Self { pieces: plain(parts, true), fields: Fields::new() },
        }
    }

    /// All of its text.
    pub(super) fn text(&self) -> String {
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text, _) => Some(*text),
            _ => None,
        });
        texts.collect()
    }
}

/// Parts as they stand.
fn plain(parts: &[Part], with_reasoning: bool) -> Vec<Piece<'_>> {
    let pieces = parts.iter().filter_map(|part| match part {
        Part::Text(text) if !text.is_empty() => Some(Piece::Text(text, Fields::new())),
        Part::Reasoning(text) if with_reasoning => Some(Piece::Reasoning(text, Fields::new())),
        Part::ToolCall(call) => Some(Piece::Call(call, Fields::new())),
        _ => None,
    });
    pieces.collect()
}

/// Parts in the order of an outline; `None` if they are not those of which it was made.
fn outlined(parts: &[Part], outline: Vec<Item>) -> Option<Vec<Piece<'_>>> {
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
    // Of several parts of one kind nobody knows where they were joined.
    let mut text = one(&texts)?;
    let mut reasoning = one(&reasoning)?;
    let mut calls = calls.into_iter();
    let mut pieces = Vec::with_capacity(outline.len());
    for item in outline {
        pieces.push(match item {
            Item::Text(Stretch { bytes, fields }) => Piece::Text(next(&mut text, bytes)?, fields),
            Item::Reasoning(Stretch { bytes, fields }) => {
                Piece::Reasoning(next(&mut reasoning, bytes)?, fields)
            }
            Item::Call(fields) => Piece::Call(calls.next()?, fields),
            Item::Own(value) => Piece::Own(value),
        });
    }
    (text.is_empty() && reasoning.is_empty() && calls.next().is_none()).then_some(pieces)
}

fn one<'a>(texts: &[&'a str]) -> Option<&'a str> {
    match texts {
        [] => Some(""),
        [text] => Some(text),
        _ => None,
    }
}

fn next<'a>(text: &mut &'a str, bytes: usize) -> Option<&'a str> {
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

    /// A message with everything in it.
    fn message(owner: Owner) -> Vec<Part> {
        let mut draft = Draft::default();
        draft.reasoning("first ", fields(json!({ "signature": "s1" })));
        draft.own(json!({ "type": "redacted", "data": "x" }));
        draft.text("let ", Fields::new());
        draft.text("me", Fields::new());
        draft.call(call("c1"), fields(json!({ "extra": { "b": 2 } })));
        draft.reasoning("then", fields(json!({ "signature": "s2" })));
        draft.call(call("c2"), Fields::new());
        draft.fields = fields(json!({ "details": [1] }));
        draft.parts(owner)
    }

    #[test]
    fn a_message_goes_back_as_it_came() {
        let owner = Owner::new("g", "gemini-3-pro");
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
        // Through a journal and back.
        let parts: Vec<Part> =
            serde_json::from_value(serde_json::to_value(&parts).unwrap()).unwrap();
        let said = Said::new(&parts, &owner);
        let (one, two) = (call("c1"), call("c2"));
        let expected = [
            Piece::Reasoning("first ", fields(json!({ "signature": "s1" }))),
            Piece::Own(json!({ "type": "redacted", "data": "x" })),
            Piece::Text("let me", Fields::new()),
            Piece::Call(&one, fields(json!({ "extra": { "b": 2 } }))),
            Piece::Reasoning("then", fields(json!({ "signature": "s2" }))),
            Piece::Call(&two, Fields::new()),
        ];
        assert_eq!(said.pieces, expected);
        assert_eq!(said.fields, fields(json!({ "details": [1] })));
    }

    #[test]
    fn halves_of_a_character_are_whole_in_the_state() {
        let piece = |text: &str| lenient::read(text).unwrap().as_str().unwrap().to_owned();
        let joined = piece(r#""caf\ud83d""#) + &piece(r#""\ude00""#);
        let owner = Owner::new("p", "m");
        let draft = Draft { fields: fields(json!({ "details": joined })), ..Draft::default() };
        let parts = draft.parts(owner.clone());
        let said = Said::new(&parts, &owner);
        assert_eq!(Value::Object(said.fields), json!({ "details": "caf\u{1f600}" }));
    }

    #[test]
    fn others_get_neither_state_nor_reasoning() {
        let parts = message(Owner::new("g", "gemini-3-pro"));
        for other in [Owner::new("h", "gemini-3-pro"), Owner::new("g", "gemma-3")] {
            let said = Said::new(&parts, &other);
            let (one, two) = (call("c1"), call("c2"));
            let expected = [
                Piece::Text("let me", Fields::new()),
                Piece::Call(&one, Fields::new()),
                Piece::Call(&two, Fields::new()),
            ];
            assert_eq!((said.pieces.as_slice(), said.fields.len()), (&expected[..], 0));
        }
    }

    #[test]
    fn what_was_changed_goes_without_its_state() {
        let owner = Owner::new("g", "gemini-3-pro");
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
            let said = Said::new(&parts, &owner);
            assert!(said.fields.is_empty());
            let bare = said.pieces.iter().all(|piece| match piece {
                Piece::Text(_, fields) | Piece::Reasoning(_, fields) | Piece::Call(_, fields) => {
                    fields.is_empty()
                }
                Piece::Own(_) => false,
            });
            assert!(bare, "{:?}", said.pieces);
        }
    }

    #[test]
    fn what_is_there_stays() {
        let call = json!({ "name": "add", "function": { "name": "add" } });
        let own = json!({ "name": "sub", "function": { "name": "sub", "strict": true }, "x": 1 });
        let expected =
            json!({ "name": "add", "function": { "name": "add", "strict": true }, "x": 1 });
        assert_eq!(with(call, fields(own)), expected);
    }

    #[test]
    fn what_a_provider_sends_for_itself_is_bounded() {
        let deep = (0..OWN_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        let mut own = OwnBytes::default();
        let refused = own.add_fields(&fields(json!({ "a": deep }))).unwrap_err();
        assert!(refused.contains("levels"), "{refused}");
        let mut own = OwnBytes::default();
        own.add_value(&json!({ "a": "x".repeat(OWN_BYTES - 1) })).unwrap();
        assert_eq!(own.count(), OWN_BYTES);
        let refused = own.add(1).unwrap_err();
        assert!(refused.contains("4194304 bytes"), "{refused}");
    }

    #[test]
    fn words_alone_have_no_state() {
        let mut draft = Draft::default();
        draft.text("hi", Fields::new());
        draft.call(call("c1"), Fields::new());
        let parts = draft.parts(Owner::new("o", "gpt-5"));
        assert_eq!(parts, [Part::Text("hi".into()), Part::ToolCall(call("c1"))]);
    }

    #[test]
    fn models_of_one_family_share_their_state() {
        for (model, expected) in [
            ("gemini-3-flash-preview", "gemini"),
            ("gemini-flash-latest", "gemini"),
            ("anthropic/claude-opus-4", "anthropic/claude"),
            ("gpt-5.1", "gpt"),
            ("o3", "o"),
            ("qwen3-max", "qwen"),
            ("deepseek-reasoner", "deepseek"),
            ("", ""),
        ] {
            assert_eq!(family(model), expected);
        }
    }
}
