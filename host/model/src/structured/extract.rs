//! Finds the JSON documents in the text of a completion.
//!
//! Models surround a document with prose, code fences and drafts, reason before it, or write it as
//! a JSON string within the text. One pass finds all documents in order. A malformed or truncated
//! document is reported as an error; a complete object within it does not count as a document.

use std::collections::VecDeque;

use serde_json::Value;
use wattle_run::json::bounded::JsonBudget;
use wattle_run::json::lenient;

use crate::structured::reader::{self, DocumentEnd};

/// Maximum documents of one text, counted from the end. The limit is needed because each document
/// is validated.
const MAX_DOCUMENTS: usize = 16;

/// The error of a truncated JSON document.
const INCOMPLETE: &str = "the JSON is incomplete";

/// Characters of a malformed document that its error quotes, starting at the first invalid
/// character.
const EXCERPT_CHARS: usize = 40;

/// Tags around reasoning.
const THINK_TAGS: (&str, &str) = ("<think>", "</think>");

/// A document in strict JSON, or its error.
type FoundDocument = Result<String, String>;

/// Returns the documents of a text in order, each parsed or with its error. The result has at least
/// one element. In a text that was truncated (`cut`), every unfinished start may be a document.
pub(super) fn documents(text: &str, cut: bool) -> Vec<Result<Value, String>> {
    let text = after_reasoning(text).trim();
    let whole = match lenient::parse(text).map(lenient::join_surrogates_in) {
        Ok(value) if !value.is_string() => return vec![Ok(unwrap_single(value))],
        whole => whole,
    };
    let mut found = VecDeque::new();
    scan(text, true, cut, &mut found);
    if found.is_empty() {
        return vec![whole.map_err(|error| error.to_string())];
    }
    // All documents are in memory at once.
    let budget = JsonBudget::default();
    found.into_iter().map(|found| parse(&found?, &budget)).collect()
}

/// Returns the text after the reasoning that it starts with.
fn after_reasoning(text: &str) -> &str {
    let Some(inside) = text.trim_start().strip_prefix(THINK_TAGS.0) else { return text };
    inside.split_once(THINK_TAGS.1).map_or("", |(_, said)| said)
}

/// Finds the documents of a text. In a JSON string within the text (not `is_outer`), no further
/// string is unescaped.
fn scan(text: &str, is_outer: bool, cut: bool, found: &mut VecDeque<FoundDocument>) {
    let mut at = 0;
    while let Some(start) = text[at..].find(['{', '[']).map(|further| at + further) {
        let here = &text[start..];
        at = start + 1;
        let inside = here[1..].trim_start();
        // An array counts as a document only if its first item is an object, because `[1]` cannot
        // match a response schema.
        let object = if here.starts_with('{') { Some(inside) } else { inside.strip_prefix('{') };
        let Some(object) = object else {
            if cut && inside.is_empty() {
                push_found(found, Err(INCOMPLETE.to_owned()));
            }
            continue;
        };
        if is_outer && object.trim_start().starts_with('\\') {
            let (inner, length) = unescape(here);
            if let Some(inner) = inner {
                let reaches_end = start + length == text.len();
                scan(&inner, false, cut && reaches_end, found);
            }
            at = start + length;
            continue;
        }
        let read = reader::read(here);
        at = start + read.length;
        match read.end {
            DocumentEnd::Complete => push_found(found, Ok(read.strict)),
            DocumentEnd::Invalid(place) => {
                let place: String = place.chars().take(EXCERPT_CHARS).collect();
                push_found(found, Err(format!("the JSON is invalid from here on: `{place}`")));
            }
            // The text of a model that keeps repeating a document ends with a truncated copy of the
            // document.
            DocumentEnd::Truncated | DocumentEnd::Undecided
                if is_repetition(found, &read.strict) => {}
            DocumentEnd::Truncated => push_found(found, Err(INCOMPLETE.to_owned())),
            DocumentEnd::Undecided if cut => push_found(found, Err(INCOMPLETE.to_owned())),
            DocumentEnd::Prose | DocumentEnd::Undecided => {}
        }
    }
}

fn push_found(found: &mut VecDeque<FoundDocument>, document: FoundDocument) {
    if found.len() == MAX_DOCUMENTS {
        found.pop_front();
    }
    found.push_back(document);
}

/// Returns whether `strict`, a document that is cut off, repeats the two newest documents: these
/// are equal and start with `strict`.
fn is_repetition(found: &VecDeque<FoundDocument>, strict: &str) -> bool {
    let mut newest = found.iter().rev().map(|found| found.as_deref().ok());
    match (newest.next().flatten(), newest.next().flatten()) {
        (Some(last), Some(before)) => last == before && last.starts_with(strict),
        _ => false,
    }
}

/// Unescapes the start of a text that is the content of a JSON string. Returns the result, and the
/// number of bytes that the content takes in the text.
fn unescape(text: &str) -> (Option<String>, usize) {
    let mut is_escaped = false;
    let end = text.find(|sign: char| {
        let ends = sign == '"' && !is_escaped;
        is_escaped = sign == '\\' && !is_escaped;
        ends
    });
    // Brackets directly before the closing quote do not belong to the document.
    let inside = text[..end.unwrap_or(text.len())]
        .trim_end_matches(|sign: char| sign.is_whitespace() || matches!(sign, '{' | '['));
    let mut quoted = "\"".to_owned();
    inside.chars().for_each(|sign| reader::push_escaped(&mut quoted, sign));
    quoted.push('"');
    match lenient::parse(&quoted) {
        Ok(Value::String(inner)) => (Some(inner), inside.len()),
        _ => (None, inside.len()),
    }
}

fn parse(strict: &str, budget: &JsonBudget) -> Result<Value, String> {
    match lenient::parse_within(strict, budget).map(lenient::join_surrogates_in) {
        Ok(value) => Ok(unwrap_single(value)),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the object inside of an array that contains one object, because the root of a response
/// schema is an object.
fn unwrap_single(value: Value) -> Value {
    match value {
        Value::Array(mut items) if items.len() == 1 && items[0].is_object() => items.remove(0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Returns the documents of a text; `None` for those that cannot be read.
    fn found(text: &str) -> Vec<Option<Value>> {
        documents(text, false).into_iter().map(Result::ok).collect()
    }

    #[test]
    fn documents_are_found_in_order() {
        let (one, two) = (json!({"a": 1}), json!({"a": 2}));
        let cases = [
            (" {\"a\":1}\n", vec![one.clone()]),
            ("\u{feff}{\"a\":\u{a0}1}", vec![one.clone()]),
            ("```json\n{\"a\":1}\n```", vec![one.clone()]),
            ("First\n```json\n{\"a\":1}\n```\nthen\n```\n{\"a\":2}\n```\n", vec![one, two]),
            ("Sure, {name}! {\"a\":{\"b\":2}} Bye {}", vec![json!({"a": {"b": 2}}), json!({})]),
            ("Begin with \"{\", then: {\"a\":\"b\"}", vec![json!({"a": "b"})]),
            ("{ \"{\" } {\"a\":\"{}\"} }", vec![json!({"a": "{}"})]),
            ("as in [1] and [{\"a\":1}](x) or [x]", vec![json!({"a": 1})]),
            ("[{\"a\":1} is it", vec![json!({"a": 1})]),
            ("so: [{\"a\":1}, {\"a\":2}]", vec![json!([{"a": 1}, {"a": 2}])]),
            ("[{\"a\":1}]", vec![json!({"a": 1})]),
            ("[1]", vec![json!([1])]),
            ("<think>{\"a\":1}</think>{\"a\":2}", vec![json!({"a": 2})]),
            ("{\"a\":1}\n{\"a\":1}\n{\"a\": ", vec![json!({"a": 1}); 2]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected.into_iter().map(Some).collect();
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn unambiguous_syntax_errors_are_corrected() {
        let cases = [
            ("{\"a\": \"one\ntwo\tthree\u{1}\"}", json!({"a": "one\ntwo\tthree\u{1}"})),
            ("So: {\"a\": \"one\r\ntwo\"}", json!({"a": "one\r\ntwo"})),
            ("{\"a\": [1, 2,], \"b\": {\"c\": 3,},}", json!({"a": [1, 2], "b": {"c": 3}})),
            ("{// all\n\"a\": 1, /* {\"b\": 2} */ \"b\": 3 // end\n}", json!({"a": 1, "b": 3})),
            ("{\"a\": True, \"b\": [None, False]}", json!({"a": true, "b": [null, false]})),
            ("{\"a\": \"it\\'s\"}", json!({"a": "it's"})),
            ("So: {\"a\": \"caf\\ud83d\"}", json!({"a": "caf\u{fffd}"})),
            ("\"{\\\"a\\\": \\\"\\\\n\\\"}\"", json!({"a": "\n"})),
            ("```json\n\"{\\n  \\\"a\\\": 1\\n}\"\n```", json!({"a": 1})),
            ("{\\\"a\\\": 1}", json!({"a": 1})),
            ("{\\textbf {\"a\": 1}", json!({"a": 1})),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), vec![Some(expected)], "{text}");
        }
    }

    #[test]
    fn ambiguous_documents_are_errors() {
        let cases = [
            "",
            "no json here",
            "{",
            "{\"a\": 1",
            "{\"a\": {\"b\": 1}, \"c\": \"x",
            "{\"a\": {\"b\": 1}, \"c\": x}",
            "{\"a\": {\"b\": 1}, \"c\": x, \"d\": {\"e\": 1}",
            "{\"a\": 1,000}",
            "{\"a\": [1, 000]}",
            "{\"a\": NaN}",
            "{\"a\": \"say \"yes\" to it\"}",
            "{\"a\": [1, 2, /* ... */]}",
            "{'a': 1}",
            "{a: 1}",
            "{\"a\",}",
            "{\"a\": 1]",
            "<think>{\"a\": 1}",
            "[{\"a\": 1}, {\"a\": 2",
        ];
        for text in cases {
            assert_eq!(found(text), vec![None], "{text}");
        }
        let behind = "{\"a\": 1}\nno: {\"a\": 2, ";
        assert_eq!(found(behind), vec![Some(json!({"a": 1})), None]);
        let before = "```\n{\"a\": [1, ...\n```\n```\n{\"a\": 2}\n```";
        assert_eq!(found(before), vec![None, Some(json!({"a": 2}))]);
        for begun in ["{", "[", "{\"to", "{\"total\": ", "[{", "{\\\"to"] {
            let cut = documents(&format!("{{\"a\": 1}}\nno: {begun}"), true);
            assert!(cut.last().unwrap().is_err(), "{begun}: {cut:?}");
        }
        let told = documents("{\"a\": 1,000}", false).remove(0).unwrap_err();
        assert!(told.ends_with("`000}`"), "{told}");
    }

    #[test]
    fn hostile_texts_are_read_in_one_pass() {
        let pieces = [
            "[",
            "[{",
            "{\"",
            "{\"{",
            "{\"a\":",
            "{\"a\":x",
            "{\"a\":[{",
            "[{\"a\":[",
            "{//",
            "{ ",
            "{/*...",
            "{\\n",
            "{\\\"",
            "[{},",
            "[{}",
            "{}",
            "\"{",
            "{\"a\" //",
            "{\"a\":1}",
            "```{",
        ];
        for piece in pieces {
            for cut in [false, true] {
                let found = documents(&piece.repeat(100_000), cut);
                assert!(found.len() <= MAX_DOCUMENTS, "{piece}");
            }
        }
        assert_eq!(found(&"{".repeat(1 << 20)), vec![None]);
        let last = format!("{}{{\"a\":1}}", "{\"".repeat(100_000));
        assert_eq!(found(&last), vec![Some(json!({"a": 1}))]);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[\\PC\n\t]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                object(inner),
            ]
        })
    }

    fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        prop::collection::vec(("\\PC{0,8}", inner), 1..4)
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn document_is_found_in_any_prose(
            document in object(value()),
            before in "[^{}\\[\\]]{0,40}",
            after in "[^{}\\[\\]]{0,40}",
        ) {
            let text = format!("{before}{document}{after}");
            prop_assert_eq!(documents(&text, false), vec![Ok(document)]);
        }

        #[test]
        fn no_text_panics(text in r#"[{}\[\]",:\\/*n.0-9a`\n ]{0,64}"#, cut in any::<bool>()) {
            prop_assert!(!documents(&text, cut).is_empty());
        }
    }
}
