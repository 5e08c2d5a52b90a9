//! Typed parts of the content of a message.
//!
//! Most services send the content as a text. Others send an array of parts. Mistral has the
//! reasoning in parts of type `thinking`, and Databricks in parts of type `reasoning`, with the
//! signatures of Claude. Both reject reasoning in another form. All parts but texts, and the fields
//! beside a text, are provider state: the content of the message in a request is the array that the
//! service sent. The state has the number of its bytes in place of each text of reasoning.

use serde_json::Value;

use crate::provider::openai::extra_fields::merge_objects;
use crate::provider::provider_state::{
    Fields, MAX_STATE_BYTES, MessageBuilder, approx_bytes, has_content,
};
use crate::provider::think_tags::StreamedText;

/// Types of parts with reasoning, each with the field that has the reasoning: a text, or an array
/// of items with a `text`.
const REASONING_FIELDS: [(&str, &str); 2] = [("thinking", "thinking"), ("reasoning", "summary")];

/// Fields of a part with a text that are not state: the text, and the index of the part in a stream.
const READ_TEXT_FIELDS: [&str; 2] = ["text", "index"];

/// The field with the signature of a reasoning text. It ends the text.
const SIGNATURE_FIELD: &str = "signature";

/// Maximum parts of one response.
const MAX_PARTS: usize = 1_000;

/// The typed parts of a response so far. Text without other fields is not a part.
#[derive(Debug, Default)]
pub(super) struct ContentParts(Vec<ContentPart>);

#[derive(Debug)]
struct ContentPart {
    fields: Fields,
    start: Position,
    end: Position,
}

/// A position in a response: the bytes of text and reasoning before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) text: usize,
    pub(super) reasoning: usize,
}

impl Position {
    /// Returns the position at the end of the output so far.
    pub(super) fn end_of(output: &StreamedText) -> Self {
        Self { text: output.text.len(), reasoning: output.reasoning.len() }
    }
}

impl ContentParts {
    /// Returns whether a part at this position continues the last part. Services send the reasoning
    /// of one part in several chunks.
    pub(super) fn is_continued_by(&self, part: &Fields, start: Position) -> bool {
        self.0.last().is_some_and(|last| last.is_continued_by(part, start))
    }

    /// Returns the reason why a part cannot be kept in a state that has `state_bytes`; `None` if it
    /// can. `is_next` says whether it continues the last part.
    pub(super) fn rejection(
        &self,
        part: &Fields,
        is_next: bool,
        state_bytes: usize,
    ) -> Option<String> {
        if !is_next && self.0.len() >= MAX_PARTS {
            return Some(format!("the content has more than {MAX_PARTS} parts"));
        }
        let bytes = match size(part) {
            Ok(bytes) if has_reasoning(part) => bytes.saturating_sub(reasoning_bytes(part)),
            Ok(bytes) => bytes,
            Err(reason) => return Some(reason),
        };
        let is_too_large = state_bytes.saturating_add(bytes) > MAX_STATE_BYTES;
        is_too_large.then(|| format!("the provider state has more than {MAX_STATE_BYTES} bytes"))
    }

    /// Adds a part from `start` to `end`. Its reasoning texts are [replaced](reasoning_texts) with
    /// their numbers of bytes, and it has no text. Returns the number of bytes that the part adds to
    /// the state.
    ///
    /// # Errors
    ///
    /// Fails if the part is nested too deep.
    pub(super) fn push(
        &mut self,
        part: Fields,
        start: Position,
        end: Position,
    ) -> Result<usize, String> {
        let bytes = size(&part)?;
        self.0.push(ContentPart { fields: part, start, end });
        Ok(bytes)
    }

    /// Adds a part to the last part, which it continues up to `end`, like [`push`](Self::push).
    ///
    /// # Errors
    ///
    /// Fails if the part is nested too deep.
    pub(super) fn continue_last(&mut self, part: Fields, end: Position) -> Result<usize, String> {
        let Some(last) = self.0.last_mut() else { return Ok(0) };
        // Checks the depth before the recursion in `merge_part`.
        size(&part)?;
        last.end = end;
        if is_text(&part) && last.fields == part {
            return Ok(0);
        }
        merge_part(&mut last.fields, part)
    }

    /// Counts reasoning of `bytes` at `start` to the last text of the last part, if the part ends
    /// there.
    pub(super) fn extend_last(&mut self, start: usize, bytes: usize) {
        if let Some(last) = self.0.last_mut().filter(|last| last.end.reasoning == start)
            && let Some(text) = reasoning_texts(&mut last.fields).pop()
            && let Some(count) = text.as_u64()
        {
            *text = (count + bytes as u64).into();
            last.end.reasoning += bytes;
        }
    }

    /// Moves the output of a response into a draft, in the order in which it came. `state` is the
    /// state of reasoning that is not part of the content.
    pub(super) fn move_into(
        self,
        draft: &mut MessageBuilder,
        output: &StreamedText,
        state: &Fields,
    ) {
        let text = |draft: &mut MessageBuilder, from: Position, to: Position, fields: Fields| {
            let reasoning = slice(&output.reasoning, from.reasoning, to.reasoning);
            if !reasoning.is_empty() {
                draft.push_reasoning(reasoning, state.clone());
            }
            draft.push_text(slice(&output.text, from.text, to.text), fields);
        };
        let mut end = Position::default();
        for ContentPart { mut fields, start, end: part_end } in self.0 {
            text(draft, end, start, Fields::new());
            end = part_end;
            if has_reasoning(&fields) {
                let reasoning = slice(&output.reasoning, start.reasoning, end.reasoning);
                draft.push_reasoning(reasoning, fields);
            } else if is_text(&fields) {
                fields.remove("type");
                text(draft, start, end, fields);
            } else {
                draft.push_opaque(fields.into());
            }
        }
        text(draft, end, Position::end_of(output), Fields::new());
    }
}

impl ContentPart {
    fn is_continued_by(&self, part: &Fields, start: Position) -> bool {
        let is_same = |name: &str| match (self.fields.get(name), part.get(name)) {
            (Some(known), Some(other)) => known == other,
            _ => true,
        };
        self.end == start
            && ["type", "id", "index"].into_iter().all(is_same)
            && if is_text(part) {
                self.is_continued_by_text(part)
            } else {
                self.is_continued_by_reasoning(part)
            }
    }

    /// Returns whether a text with these other fields continues the text of this part. Texts with
    /// other fields are separate parts, because a signature is that of the text of its part.
    fn is_continued_by_text(&self, part: &Fields) -> bool {
        let has_same_id = part.get("id").is_some_and(|id| self.fields.get("id") == Some(id));
        has_same_id || self.fields == *part
    }

    fn is_continued_by_reasoning(&self, part: &Fields) -> bool {
        let has_same_form = reasoning_field(part).is_some_and(|name| {
            matches!(
                (self.fields.get(name), part.get(name)),
                (Some(Value::Array(_)), Some(Value::Array(_)))
                    | (Some(Value::Number(_)), Some(Value::String(_)))
                    | (_, None)
            )
        });
        has_same_form && !(self.is_signed() && reasoning_bytes(part) > 0)
    }

    /// Returns whether the part, or the last item of its reasoning, has a signature.
    fn is_signed(&self) -> bool {
        let reasoning = reasoning_field(&self.fields).and_then(|name| self.fields.get(name));
        let last = reasoning.and_then(Value::as_array).and_then(|items| items.last());
        let of_item = last.and_then(|item| item.get(SIGNATURE_FIELD));
        [self.fields.get(SIGNATURE_FIELD), of_item].into_iter().flatten().any(has_content)
    }
}

/// Returns the fields beside the text of a part, and the type; `None` if no other field has content.
pub(super) fn fields_of_text(part: &Fields) -> Option<Fields> {
    let own = part
        .iter()
        .filter(|(name, value)| !READ_TEXT_FIELDS.contains(&name.as_str()) && has_content(value));
    let fields: Fields = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    (fields.len() > 1).then_some(fields)
}

/// Returns whether a part is the fields of a text.
fn is_text(part: &Fields) -> bool {
    part.get("type").is_some_and(|kind| kind == "text")
}

/// Returns whether a part, or the state of reasoning, is that of a part with reasoning.
pub(super) fn has_reasoning(part: &Fields) -> bool {
    reasoning_field(part).is_some()
}

/// Returns the number of bytes of the reasoning in a part that the service sent.
fn reasoning_bytes(part: &Fields) -> usize {
    let length = |text: &Value| text.as_str().map_or(0, str::len);
    match reasoning_field(part).and_then(|name| part.get(name)) {
        Some(Value::Array(items)) => {
            items.iter().filter_map(|item| item.get("text")).map(length).sum()
        }
        Some(text) => length(text),
        None => 0,
    }
}

/// Returns the part of a reasoning text with its state; `None` if the reasoning was not in a part.
pub(super) fn restore(text: &str, state: &Fields) -> Option<Value> {
    if !has_reasoning(state) {
        return None;
    }
    let (mut part, mut rest) = (state.clone(), text);
    for text in reasoning_texts(&mut part) {
        if let Some(bytes) = text.as_u64() {
            let (piece, after) = rest.split_at_checked(bytes as usize).unwrap_or((rest, ""));
            *text = piece.into();
            rest = after;
        }
    }
    Some(part.into())
}

/// Returns the reasoning texts of a part, or the numbers in their place.
pub(super) fn reasoning_texts(part: &mut Fields) -> Vec<&mut Value> {
    let Some(name) = reasoning_field(part) else { return Vec::new() };
    match part.get_mut(name) {
        Some(Value::Array(items)) => {
            items.iter_mut().filter_map(|item| item.get_mut("text")).collect()
        }
        Some(text) => vec![text],
        None => Vec::new(),
    }
}

/// Returns the name of the field with the reasoning; `None` for a part of a type without reasoning.
fn reasoning_field(part: &Fields) -> Option<&'static str> {
    let kind = part.get("type")?;
    REASONING_FIELDS.iter().find(|(name, _)| kind == name).map(|(_, field)| *field)
}

/// Returns the approximate size of a part.
///
/// # Errors
///
/// Fails if the part is nested too deep.
fn size(part: &Fields) -> Result<usize, String> {
    let mut bytes = 0;
    for (name, value) in part {
        bytes += name.len() + approx_bytes(value)?;
    }
    Ok(bytes)
}

/// Merges a part with the part that continues it. Returns the number of bytes added.
fn merge_part(known: &mut Fields, mut part: Fields) -> Result<usize, String> {
    let mut added = 0;
    if let Some(name) = reasoning_field(&part)
        && let Some(more) = part.remove(name)
    {
        match known.get_mut(name) {
            Some(known) => added += merge_reasoning(known, more)?,
            None => {
                added += name.len() + approx_bytes(&more)?;
                known.insert(name.to_owned(), more);
            }
        }
    }
    Ok(added + merge_objects(known, &part)?)
}

fn merge_reasoning(known: &mut Value, more: Value) -> Result<usize, String> {
    match (known, more) {
        (Value::Array(items), Value::Array(more)) => merge_items(items, more),
        (count, more) => {
            *count = sum(Some(&*count), Some(&more));
            Ok(0)
        }
    }
}

/// Appends items to those of a part. A text at the start of a chunk continues a text at the end.
fn merge_items(items: &mut Vec<Value>, more: Vec<Value>) -> Result<usize, String> {
    let mut added = 0;
    for (index, item) in more.into_iter().enumerate() {
        let last = items.last_mut().and_then(Value::as_object_mut);
        let last = last.filter(|last| index == 0 && is_next_text(last, &item));
        if let (Some(last), Some(item)) = (last, item.as_object()) {
            let count = sum(last.get("text"), item.get("text"));
            added += merge_objects(last, item)?;
            last.insert("text".to_owned(), count);
        } else {
            added += approx_bytes(&item)?;
            items.push(item);
        }
    }
    Ok(added)
}

/// Returns whether an item has a text, and is of the same type as the last item, which has one.
fn is_next_text(last: &Fields, item: &Value) -> bool {
    let is_text = |text: Option<&Value>| text.is_some_and(Value::is_number);
    is_text(last.get("text")) && is_text(item.get("text")) && last.get("type") == item.get("type")
}

/// Returns the sum of two numbers of bytes.
fn sum(left: Option<&Value>, right: Option<&Value>) -> Value {
    let count = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or_default();
    count(left).saturating_add(count(right)).into()
}

fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn texts_of_a_part_are_restored() {
        for part in [
            json!({ "type": "thinking", "thinking": [
                { "type": "text", "text": "hé" },
                { "type": "reference", "reference_ids": [1] },
                { "type": "text", "text": "", "own": 1 },
                { "type": "text", "text": "there" },
            ], "closed": true }),
            json!({ "type": "thinking", "thinking": "héllo", "signature": "s" }),
            json!({ "type": "thinking", "thinking": [] }),
            json!({ "type": "thinking" }),
            json!({ "type": "reasoning", "summary": [
                { "type": "summary_text", "text": "héllo", "signature": "s" },
            ] }),
        ] {
            let (mut state, mut reasoning) = (fields(part.clone()), String::new());
            for text in reasoning_texts(&mut state) {
                let words = text.as_str().unwrap();
                reasoning.push_str(words);
                *text = words.len().into();
            }
            assert_eq!(restore(&reasoning, &state), Some(part));
        }
        assert_eq!(restore("hm", &fields(json!({ "field": "reasoning" }))), None);
        assert_eq!(restore("hm", &Fields::new()), None);
        let longer = fields(json!({ "type": "thinking", "thinking": 7 }));
        let expected = json!({ "type": "thinking", "thinking": "hm" });
        assert_eq!(restore("hm", &longer), Some(expected));
    }

    #[test]
    fn chunks_of_a_part_are_merged() {
        let mut part = fields(json!({ "type": "thinking", "thinking": [] }));
        for chunk in [
            json!([{ "type": "text", "text": 2, "signature": "" }]),
            json!([{ "type": "text", "text": 3, "signature": "a" }]),
            json!([{ "type": "reference", "reference_ids": [1] }, { "type": "text", "text": 1 }]),
            json!([{ "type": "text", "text": 1 }, { "type": "text", "text": 1 }]),
        ] {
            merge_part(&mut part, fields(json!({ "type": "thinking", "thinking": chunk })))
                .unwrap();
        }
        merge_part(&mut part, fields(json!({ "type": "thinking", "closed": true }))).unwrap();
        let expected = json!({ "type": "thinking", "closed": true, "thinking": [
            { "type": "text", "text": 5, "signature": "a" },
            { "type": "reference", "reference_ids": [1] },
            { "type": "text", "text": 2 },
            { "type": "text", "text": 1 },
        ] });
        assert_eq!(Value::Object(part), expected);
        let mut part = fields(json!({ "type": "thinking", "thinking": 2 }));
        merge_part(&mut part, fields(json!({ "type": "thinking", "thinking": 3 }))).unwrap();
        assert_eq!(part["thinking"], 5);
    }

    #[test]
    fn part_is_continued_where_it_ends() {
        let at = |text, reasoning| Position { text, reasoning };
        let mut parts = ContentParts::default();
        let state = json!({ "type": "thinking", "thinking": [], "id": "a" });
        parts.push(fields(state), at(1, 2), at(1, 5)).unwrap();
        for (part, start, is_continued) in [
            (json!({ "type": "thinking", "thinking": [] }), at(1, 5), true),
            (json!({ "type": "thinking", "thinking": [], "id": "a" }), at(1, 5), true),
            (json!({ "type": "thinking", "closed": true }), at(1, 5), true),
            (json!({ "type": "thinking", "thinking": [], "id": "b" }), at(1, 5), false),
            (json!({ "type": "thinking", "thinking": "hm" }), at(1, 5), false),
            (json!({ "type": "thinking", "thinking": [] }), at(2, 5), false),
            (json!({ "type": "thinking", "thinking": [] }), at(1, 6), false),
            (json!({ "type": "other" }), at(1, 5), false),
        ] {
            assert_eq!(parts.is_continued_by(&fields(part.clone()), start), is_continued, "{part}");
        }
        let summary = |text: Value| {
            let item = json!({ "type": "summary_text", "text": text, "signature": "s" });
            fields(json!({ "type": "reasoning", "summary": [item] }))
        };
        parts.push(summary(json!(3)), at(1, 5), at(1, 8)).unwrap();
        assert!(parts.is_continued_by(&summary(json!("")), at(1, 8)));
        assert!(!parts.is_continued_by(&summary(json!("hm")), at(1, 8)), "behind a signature");
    }

    #[test]
    fn text_is_continued_by_the_same_part() {
        let at = |text| Position { text, reasoning: 0 };
        let text = |own: Value| {
            let mut part = own;
            part["type"] = json!("text");
            fields_of_text(&fields(part)).unwrap()
        };
        for (known, own, is_continued) in [
            (json!({ "id": "a" }), json!({ "id": "a" }), true),
            (json!({ "id": "a" }), json!({ "id": "a", "citations": [1] }), true),
            (json!({ "id": "a" }), json!({ "id": "b" }), false),
            (json!({ "format": "a" }), json!({ "format": "a" }), true),
            (json!({ "format": "a" }), json!({ "format": "b" }), false),
            (json!({ "signature": "a" }), json!({ "format": "b" }), false),
        ] {
            let mut parts = ContentParts::default();
            parts.push(text(known.clone()), at(0), at(3)).unwrap();
            let part = text(own.clone());
            assert_eq!(parts.is_continued_by(&part, at(3)), is_continued, "{known} {own}");
            assert!(!parts.is_continued_by(&part, at(4)), "behind other text");
        }
        let none = json!({ "type": "text", "text": "hi", "index": 0, "annotations": [] });
        assert_eq!(fields_of_text(&fields(none)), None);
    }

    #[test]
    fn parts_that_are_too_large_are_rejected() {
        let parts = ContentParts::default();
        let part = |text: &str| {
            (
                fields(json!({ "type": "image", "data": text })),
                fields(json!({ "type": "thinking", "thinking": text })),
            )
        };
        let (image, thinking) = part(&"x".repeat(MAX_STATE_BYTES));
        assert!(parts.rejection(&image, false, 0).unwrap().contains("4194304 bytes"));
        assert_eq!(parts.rejection(&thinking, false, 0), None);
        assert_eq!(parts.rejection(&part("x").0, false, 0), None);
        assert!(parts.rejection(&part("x").0, false, MAX_STATE_BYTES).is_some());
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        let deep = fields(json!({ "type": "image", "data": deep }));
        assert!(parts.rejection(&deep, false, 0).unwrap().contains("levels"));
    }
}
