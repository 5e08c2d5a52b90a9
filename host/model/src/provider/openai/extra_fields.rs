//! Provider-specific fields, merged from chunks.

use std::ops::RangeInclusive;

use serde_json::Value;

use crate::provider::provider_state::{Fields, StateSize, approx_bytes, has_content};

/// Number of items at the end of an array that a chunk can still extend.
const MAX_OPEN_ITEMS: usize = 128;

/// String fields that each chunk repeats. The strings of all other fields are appended to those of
/// earlier chunks, unless they [repeat](is_repetition) them.
const REPEATED_FIELDS: [&str; 4] = ["type", "id", "format", "name"];

/// String fields of `reasoning_details` and `thinking_blocks` that arrive in fragments.
const FRAGMENTED_FIELDS: [&str; 5] = ["text", "summary", "data", "thinking", "signature"];

/// The type of a block of reasoning in `thinking_blocks`.
const THINKING_TYPE: &str = "thinking";

/// The number of characters of a word that a chunk can repeat in any field. Shorter fragments of a
/// text may be equal by chance, and longer strings are no names.
const REPEATED_CHARS: RangeInclusive<usize> = 4..=32;

/// Merges the fields of a chunk that are not in `read`, and adds the size of new data to `own`.
///
/// # Errors
///
/// Fails if the fields are nested too deep, or if they become too large.
pub(super) fn merge_chunk(
    fields: &mut Fields,
    piece: &Value,
    read: &[&str],
    own: &mut StateSize,
) -> Result<(), String> {
    let Some(piece) = piece.as_object() else { return Ok(()) };
    let added =
        piece.iter().filter(|(name, value)| !read.contains(&name.as_str()) && has_content(value));
    for (name, value) in added {
        // Checks the depth before the recursion below.
        approx_bytes(value)?;
        own.add(merge_field(fields, name, value)?)?;
    }
    Ok(())
}

/// Merges a field of a chunk with the field of the same name from earlier chunks: strings are
/// appended, objects are merged, items of arrays with an `index` are merged with the item of the
/// same index, and a fragment of a [thinking block](is_next_thinking) with the block. Returns the
/// number of bytes added.
fn merge_field(fields: &mut Fields, name: &str, value: &Value) -> Result<usize, String> {
    match (fields.get_mut(name), value) {
        (Some(Value::String(text)), Value::String(more)) if !is_repetition(name, text, more) => {
            text.push_str(more);
            Ok(more.len())
        }
        (Some(Value::Object(known)), Value::Object(more)) => merge_objects(known, more),
        (Some(Value::Array(known)), Value::Array(more)) => {
            more.iter().map(|item| merge_item(known, item)).sum()
        }
        (Some(known), value) => {
            let before = std::mem::replace(known, value.clone());
            Ok(approx_bytes(value)?.saturating_sub(approx_bytes(&before)?))
        }
        (None, value) => {
            fields.insert(name.to_owned(), value.clone());
            Ok(name.len() + approx_bytes(value)?)
        }
    }
}

/// Returns whether the string of a chunk repeats the field and is no fragment of it. A word that
/// equals the whole value so far is a repetition, such as the name of a phase or a channel that a
/// service sends with every chunk. Fragments of texts and signatures do not begin with one word
/// twice.
fn is_repetition(name: &str, known: &str, more: &str) -> bool {
    REPEATED_FIELDS.contains(&name)
        || known == more && is_word(more) && !FRAGMENTED_FIELDS.contains(&name)
}

/// Returns whether a string is a word in lower case, as services name the values of a field.
fn is_word(text: &str) -> bool {
    let is_of_word = |letter: char| letter.is_ascii_lowercase() || matches!(letter, '_' | '-');
    REPEATED_CHARS.contains(&text.len()) && text.chars().all(is_of_word)
}

/// Merges the fields of an object with those of the same names from earlier chunks. Returns the
/// number of bytes added.
///
/// # Errors
///
/// Fails if the fields are nested too deep.
pub(super) fn merge_objects(known: &mut Fields, more: &Fields) -> Result<usize, String> {
    let said = more.iter().filter(|(_, value)| !value.is_null());
    said.map(|(name, value)| merge_field(known, name, value)).sum()
}

fn merge_item(items: &mut Vec<Value>, item: &Value) -> Result<usize, String> {
    let index = item.get("index").filter(|index| !index.is_null());
    let known = match index {
        Some(_) => {
            let mut open = items.iter_mut().rev().take(MAX_OPEN_ITEMS);
            open.find(|known| known.get("index") == index)
        }
        None => items.last_mut().filter(|last| is_next_thinking(last, item)),
    };
    match (known, item) {
        (Some(Value::Object(known)), Value::Object(more)) => merge_objects(known, more),
        _ => {
            items.push(item.clone());
            approx_bytes(item)
        }
    }
}

/// Returns whether an item without an index is a fragment of the thinking block before it. LiteLLM
/// sends such a block in fragments, of which the last one has the signature (BerriAI/litellm issue
/// 29428). Anthropic rejects blocks without a signature.
fn is_next_thinking(last: &Value, item: &Value) -> bool {
    let is_thinking = |block: &Value| block.get("type").is_some_and(|kind| kind == THINKING_TYPE);
    is_thinking(last) && is_thinking(item) && !last.get("signature").is_some_and(has_content)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn joined(pieces: &[Value]) -> Value {
        let (mut fields, mut own) = (Fields::new(), StateSize::default());
        for piece in pieces {
            merge_chunk(&mut fields, piece, &["content"], &mut own).unwrap();
        }
        let mut whole = StateSize::default();
        whole.add_fields(&fields).unwrap();
        assert_eq!(own.bytes(), whole.bytes(), "the counter matches the size");
        Value::Object(fields)
    }

    #[test]
    fn chunks_are_merged() {
        let detail = |text: &str, signature: Value| {
            json!({ "content": "x", "reasoning_details": [{
                "type": "reasoning.text", "text": text, "signature": signature, "index": 0,
            }] })
        };
        let pieces = [
            detail("a", Value::Null),
            detail("b", json!("s")),
            detail("", Value::Null),
            json!({ "extra_content": { "google": { "thought_signature": "t" } } }),
            json!({ "extra_content": { "google": { "thought_signature": "u" } }, "n": 1 }),
            json!({ "n": 2, "nothing": null, "empty": "" }),
        ];
        let whole = json!({ "type": "reasoning.text", "text": "ab", "signature": "s", "index": 0 });
        let expected = json!({
            "reasoning_details": [whole],
            "extra_content": { "google": { "thought_signature": "tu" } },
            "n": 2,
        });
        assert_eq!(joined(&pieces), expected);
    }

    #[test]
    fn repeated_words_are_not_appended() {
        let detail = |text: &str| json!({ "index": 0, "text": text, "status": "in_progress" });
        let piece = json!({
            "phase": "commentary",
            "reasoning_signature": "AbCd",
            "thoughts": "no",
            "reasoning_details": [detail("haha")],
        });
        let expected = json!({
            "phase": "commentary",
            "reasoning_signature": "AbCdAbCd",
            "thoughts": "nono",
            "reasoning_details": [detail("hahahaha")],
        });
        assert_eq!(joined(&[piece.clone(), piece.clone()]), expected);
        let expected = json!("commentary");
        assert_eq!(joined(&[piece.clone(), piece.clone(), piece])["phase"], expected);
        let pieces = [json!({ "cipher": "abcd" }), json!({ "cipher": "efgh" })];
        assert_eq!(joined(&pieces), json!({ "cipher": "abcdefgh" }));
    }

    #[test]
    fn items_without_an_index_are_appended() {
        let piece = json!({ "list": [{ "type": "a" }] });
        let expected = json!({ "list": [{ "type": "a" }, { "type": "a" }] });
        assert_eq!(joined(&[piece.clone(), piece]), expected);
    }

    #[test]
    fn fragments_of_a_thinking_block_are_joined() {
        fn block(text: &str, signature: Value) -> Value {
            json!({ "type": "thinking", "thinking": text, "signature": signature })
        }
        let redacted = json!({ "type": "redacted_thinking", "data": "ZW5j" });
        let pieces = [
            block("haha", json!("")),
            block("haha", Value::Null),
            block("", json!("s1")),
            redacted.clone(),
            block("so", Value::Null),
            block("", json!("s2")),
            block("whole", json!("s3")),
        ];
        let pieces = pieces.map(|block| json!({ "thinking_blocks": [block] }));
        let expected = json!({ "thinking_blocks": [
            block("hahahaha", json!("s1")),
            redacted,
            block("so", json!("s2")),
            block("whole", json!("s3")),
        ] });
        assert_eq!(joined(&pieces), expected);
    }

    #[test]
    fn provider_specific_fields_are_bounded() {
        let (mut fields, mut own) = (Fields::new(), StateSize::default());
        let piece = json!({ "a": "x".repeat(1 << 20) });
        let refused = (0..5).try_for_each(|_| merge_chunk(&mut fields, &piece, &[], &mut own));
        assert!(refused.unwrap_err().contains("bytes"));
    }

    #[test]
    fn repeated_values_count_once() {
        let (mut fields, mut own) = (Fields::new(), StateSize::default());
        let piece = json!({ "type": "x".repeat(1 << 20), "list": [{ "index": 0, "id": "y" }] });
        for _ in 0..100 {
            merge_chunk(&mut fields, &piece, &[], &mut own).unwrap();
        }
        assert!(own.bytes() < 2 << 20, "{}", own.bytes());
    }
}
