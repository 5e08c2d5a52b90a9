//! Arguments of tool calls in the forms that services send.

use serde_json::{Value, json};
use wattle_run::json::bounded::JsonBudget;
use wattle_run::json::lenient::{self, SurrogateJoiner};

use crate::provider::provider_state::has_content;
use crate::structured::reader::push_escaped;

/// The empty object. Gateways that translate Anthropic's format send it before the arguments,
/// because a block of Anthropic's format starts with an empty object.
const EMPTY_OBJECT: &str = "{}";

/// Strings that mean that a call has no arguments.
const NO_ARGUMENTS: [&str; 3] = [EMPTY_OBJECT, "[]", "null"];

/// Parses arguments that a service sends as a JSON value or as a string that contains a JSON value.
/// Absent arguments, `null` and, from services written in PHP, an empty array mean no arguments.
/// All calls of a response share the budget. Arguments beyond the budget remain a string; see
/// [`from_text`].
pub(super) fn from_json(document: Option<&Value>, budget: &JsonBudget) -> Value {
    match document {
        Some(Value::String(text)) => ArgumentsBuffer::from_whole(text).parse(budget),
        Some(document) if has_content(document) => match budget.count(document) {
            Ok(()) => lenient::join_surrogates_in(document.clone()),
            Err(_) => document.to_string().into(),
        },
        _ => json!({}),
    }
}

/// Parses arguments from a string. Some services encode the arguments twice. Arguments that are not
/// JSON, or beyond the budget, remain a string, so that the schema of the tool rejects them and the
/// model learns why.
fn from_text(text: &str, budget: &JsonBudget) -> Value {
    let text = text.trim();
    if text.is_empty() {
        return json!({});
    }
    let read = match lenient::parse_within(text, budget) {
        Ok(Value::String(inner)) => parse_object(&inner, budget),
        Ok(document) if has_content(&document) => Some(lenient::join_surrogates_in(document)),
        Ok(_) => Some(json!({})),
        Err(_) => None,
    };
    read.unwrap_or_else(|| text.into())
}

/// Parses a JSON object; `None` if the text is not a JSON object.
fn parse_object(text: &str, budget: &JsonBudget) -> Option<Value> {
    let mut escaped = EscapedText::default();
    escaped.push_str(text.trim());
    let read = lenient::parse_within(&escaped.text, budget).ok();
    read.map(lenient::join_surrogates_in).filter(Value::is_object)
}

/// A JSON text in which raw control characters in strings are escaped. Models write line breaks and
/// tabs into strings without the escapes that JSON requires.
#[derive(Debug, Default)]
struct EscapedText {
    text: String,
    /// Whether the text ends within a string.
    in_string: bool,
    /// Whether the text ends with the backslash of an escape.
    in_escape: bool,
}

impl EscapedText {
    fn push_str(&mut self, piece: &str) {
        for sign in piece.chars() {
            if !self.in_string || self.in_escape {
                self.text.push(sign);
            } else {
                push_escaped(&mut self.text, sign);
            }
            match sign {
                _ if self.in_escape => self.in_escape = false,
                '\\' => self.in_escape = self.in_string,
                '"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }
}

/// Arguments that arrive in fragments. Text that may be the start of a string that means no
/// arguments is held back. If nothing follows, or if an empty object precedes another object, the
/// held text is not part of the arguments. The emitted fragments therefore add up to the arguments.
#[derive(Debug, Default)]
pub(super) struct ArgumentsBuffer {
    escaped: EscapedText,
    halves: SurrogateJoiner,
    /// The start of the arguments, without white space, held back while it may be a string that
    /// means no arguments (`{}`, `[]`, `null`).
    held: String,
    /// Whether all further text is part of the arguments.
    has_started: bool,
}

impl ArgumentsBuffer {
    /// Parses arguments that arrive in one fragment.
    pub(super) fn from_whole(text: &str) -> Self {
        let mut arguments = Self::default();
        arguments.push(text);
        arguments.finish();
        arguments
    }

    /// Appends a fragment. Returns the text to emit.
    pub(super) fn push(&mut self, piece: &str) -> &str {
        let piece = self.halves.feed(piece);
        self.add(&piece)
    }

    /// Finishes the arguments. Returns the remaining text to emit. The truncated start of a string
    /// that means no arguments is malformed, and is emitted.
    pub(super) fn finish(&mut self) -> &str {
        let from = self.text().len();
        let rest = self.halves.finish();
        self.add(rest);
        if !self.is_none() {
            self.release_held();
        }
        &self.text()[from..]
    }

    /// Returns the emitted text.
    pub(super) fn text(&self) -> &str {
        &self.escaped.text
    }

    /// Returns whether the whole text is a string that means no arguments.
    pub(super) fn is_none(&self) -> bool {
        self.text().is_empty() && NO_ARGUMENTS.contains(&self.held.as_str())
    }

    /// Returns the parsed arguments.
    pub(super) fn parse(&self, budget: &JsonBudget) -> Value {
        from_text(self.text(), budget)
    }

    fn add(&mut self, piece: &str) -> &str {
        let from = self.text().len();
        let rest = self.hold_back(piece);
        self.escaped.push_str(rest);
        &self.text()[from..]
    }

    /// Appends the held text, which has no string.
    fn release_held(&mut self) {
        self.escaped.push_str(&std::mem::take(&mut self.held));
    }

    /// Moves the start of a fragment to the held text as long as the text may be a string that
    /// means no arguments. Returns the rest of the fragment. Each character is read once.
    fn hold_back<'a>(&mut self, piece: &'a str) -> &'a str {
        let mut rest = piece;
        while !self.has_started {
            rest = rest.trim_start();
            let Some(sign) = rest.chars().next() else { return rest };
            let goes_on = |none: &&str| {
                none.strip_prefix(self.held.as_str()).is_some_and(|more| more.starts_with(sign))
            };
            if NO_ARGUMENTS.iter().any(goes_on) {
                self.held.push(sign);
                rest = &rest[sign.len_utf8()..];
            } else if self.held == EMPTY_OBJECT && sign == '{' {
                self.held.clear();
            } else {
                self.release_held();
                self.has_started = true;
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the emitted text and the arguments of a text that arrives in fragments of `size`
    /// characters.
    fn read(text: &str, size: usize) -> (String, Value) {
        let mut arguments = ArgumentsBuffer::default();
        let letters: Vec<char> = text.chars().collect();
        let mut shown = String::new();
        for piece in letters.chunks(size) {
            shown.push_str(arguments.push(&piece.iter().collect::<String>()));
        }
        shown.push_str(arguments.finish());
        assert_eq!(arguments.text(), shown);
        (shown, arguments.parse(&JsonBudget::default()))
    }

    #[test]
    fn emitted_fragments_add_up_to_the_arguments() {
        for (text, shown, value) in [
            ("", "", json!({})),
            (" ", "", json!({})),
            ("null", "", json!({})),
            ("{}", "", json!({})),
            (" { }\n", "", json!({})),
            ("[]", "", json!({})),
            ("{}{\"a\": 1}", "{\"a\": 1}", json!({ "a": 1 })),
            ("{} {}\n{\"a\": 1}", "{\"a\": 1}", json!({ "a": 1 })),
            (" {\"a\": 1} ", "{\"a\": 1} ", json!({ "a": 1 })),
            ("{ \"a\": 1}", "{\"a\": 1}", json!({ "a": 1 })),
            ("{", "{", json!("{")),
            ("[", "[", json!("[")),
            ("{\"a\": oops", "{\"a\": oops", json!("{\"a\": oops")),
            ("{}[1]", "{}[1]", json!("{}[1]")),
            ("[1]", "[1]", json!([1])),
            ("\"word\"", "\"word\"", json!("\"word\"")),
            (r#""{\"a\": 1}""#, r#""{\"a\": 1}""#, json!({ "a": 1 })),
            (r#"{"a": "\ud83d"}"#, r#"{"a": "\ud83d"}"#, json!({ "a": "\u{fffd}" })),
            ("{\"a\": \"1\n\t2\"}", r#"{"a": "1\u000a\u00092"}"#, json!({ "a": "1\n\t2" })),
            ("{\"a\":\n\"\\\"\n\"}", "{\"a\":\n\"\\\"\\u000a\"}", json!({ "a": "\"\n" })),
            ("{\"a\": \"\\\n\"}", "{\"a\": \"\\\n\"}", json!("{\"a\": \"\\\n\"}")),
        ] {
            for size in [1, 2, 3, 100] {
                assert_eq!(read(text, size), (shown.into(), value.clone()), "{text} by {size}");
            }
        }
    }

    #[test]
    fn arguments_beyond_the_budget_remain_text() {
        let budget = JsonBudget::new(1_000);
        let few = ArgumentsBuffer::from_whole("[1, 2]");
        assert_eq!(few.parse(&budget), json!([1, 2]));
        let many = format!("[{}1]", "1,".repeat(20));
        assert_eq!(ArgumentsBuffer::from_whole(&many).parse(&budget), json!(many));
        assert_eq!(from_json(Some(&json!(vec![1; 21])), &budget), json!(many));
        assert_eq!(few.parse(&budget), json!([1, 2]), "the others do not count");
    }

    #[test]
    fn every_form_of_arguments_is_parsed() {
        let budget = JsonBudget::default();
        for none in [
            None,
            Some(&json!(null)),
            Some(&json!({})),
            Some(&json!([])),
            Some(&json!("[]")),
            Some(&json!("\"{}\"")),
        ] {
            assert_eq!(from_json(none, &budget), json!({}), "{none:?}");
        }
        assert_eq!(from_json(Some(&json!({ "a": 1 })), &budget), json!({ "a": 1 }));
        assert_eq!(from_json(Some(&json!("{}{\"a\": 1}")), &budget), json!({ "a": 1 }));
        let twice = json!("{\"a\": \"1\n2\"}").to_string();
        assert_eq!(from_json(Some(&json!(twice)), &budget), json!({ "a": "1\n2" }));
    }

    #[test]
    fn leading_white_space_is_dropped() {
        let mut arguments = ArgumentsBuffer::default();
        for _ in 0..10_000 {
            assert_eq!(arguments.push(&" ".repeat(100)), "");
        }
        assert_eq!(arguments.push("{\"a\":"), "{\"a\":");
    }
}
