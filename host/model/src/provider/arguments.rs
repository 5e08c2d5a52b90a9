//! Arguments of tool calls in the forms that services send.

use serde_json::{Value, json};
use wattle_run::json::lenient::{self, Halves};

use crate::provider::state::says;

/// The empty object. Gateways that translate Anthropic's format send it before the arguments, because a block of that
/// format starts with it.
const EMPTY: &str = "{}";

/// Strings that mean no arguments.
const NONE: [&str; 3] = [EMPTY, "[]", "null"];

/// Parses arguments that a service sends as a JSON value or as a string that contains one. Absent arguments, `null`
/// and, from services written in PHP, an empty array mean no arguments.
pub(super) fn of_document(document: Option<&Value>) -> Value {
    match document {
        Some(Value::String(text)) => Arguments::whole(text).value(),
        Some(document) if says(document) => lenient::settled(document.clone()),
        _ => json!({}),
    }
}

/// Parses arguments from a string. Some services encode them twice. Arguments that are not JSON remain a string, so
/// that the schema of the tool rejects them and the model learns why.
fn of_text(text: &str) -> Value {
    let text = text.trim();
    if text.is_empty() {
        return json!({});
    }
    let read = match lenient::read(text) {
        Ok(Value::String(inner)) => object(&inner),
        Ok(document) => Some(of_document(Some(&document))),
        Err(_) => None,
    };
    read.unwrap_or_else(|| text.into())
}

/// Parses a JSON object; `None` if the text is not one.
fn object(text: &str) -> Option<Value> {
    lenient::read(text.trim()).ok().map(lenient::settled).filter(Value::is_object)
}

/// Arguments that arrive in fragments. A possible start of a string that means no arguments is held back: it is not
/// part of the arguments if nothing follows, or if it is an empty object before another one. The emitted fragments thus
/// add up to the arguments.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    text: String,
    halves: Halves,
    /// Text that is held back because it may mean no arguments, without white space.
    held: String,
    /// Whether all further text is part of the arguments.
    is_begun: bool,
}

impl Arguments {
    /// Parses arguments that arrive in one fragment.
    pub(super) fn whole(text: &str) -> Self {
        let mut arguments = Self::default();
        arguments.feed(text);
        arguments.end();
        arguments
    }

    /// Appends a fragment. Returns the text to emit.
    pub(super) fn feed(&mut self, piece: &str) -> &str {
        let piece = self.halves.feed(piece);
        self.add(&piece)
    }

    /// Finishes the arguments. Returns the remaining text to emit. A truncated string that would have meant no
    /// arguments is malformed, and is kept.
    pub(super) fn end(&mut self) -> &str {
        let from = self.text.len();
        let tail = self.halves.end();
        self.add(tail);
        if !self.is_none() {
            self.text.push_str(&std::mem::take(&mut self.held));
        }
        &self.text[from..]
    }

    /// Returns the emitted text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the whole text means no arguments.
    pub(super) fn is_none(&self) -> bool {
        self.text.is_empty() && NONE.contains(&self.held.as_str())
    }

    /// Returns the parsed arguments.
    pub(super) fn value(&self) -> Value {
        of_text(&self.text)
    }

    fn add(&mut self, piece: &str) -> &str {
        let from = self.text.len();
        let rest = self.hold(piece);
        self.text.push_str(rest);
        &self.text[from..]
    }

    /// Moves the start of a fragment to the held text as long as the text may mean no arguments. Returns the rest of
    /// the fragment. Reads each character once.
    fn hold<'a>(&mut self, piece: &'a str) -> &'a str {
        let mut rest = piece;
        while !self.is_begun {
            rest = rest.trim_start();
            let Some(sign) = rest.chars().next() else { return rest };
            let goes_on = |none: &&str| {
                none.strip_prefix(self.held.as_str()).is_some_and(|more| more.starts_with(sign))
            };
            if NONE.iter().any(goes_on) {
                self.held.push(sign);
                rest = &rest[sign.len_utf8()..];
            } else if self.held == EMPTY && sign == '{' {
                self.held.clear();
            } else {
                self.text.push_str(&std::mem::take(&mut self.held));
                self.is_begun = true;
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the emitted text and the arguments of a text that arrives in fragments of `size` characters.
    fn read(text: &str, size: usize) -> (String, Value) {
        let mut arguments = Arguments::default();
        let letters: Vec<char> = text.chars().collect();
        let mut shown = String::new();
        for piece in letters.chunks(size) {
            shown.push_str(arguments.feed(&piece.iter().collect::<String>()));
        }
        shown.push_str(arguments.end());
        assert_eq!(arguments.text(), shown);
        (shown, arguments.value())
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
        ] {
            for size in [1, 2, 3, 100] {
                assert_eq!(read(text, size), (shown.into(), value.clone()), "{text} by {size}");
            }
        }
    }

    #[test]
    fn every_form_of_arguments_is_parsed() {
        for none in [
            None,
            Some(&json!(null)),
            Some(&json!({})),
            Some(&json!([])),
            Some(&json!("[]")),
            Some(&json!("\"{}\"")),
        ] {
            assert_eq!(of_document(none), json!({}), "{none:?}");
        }
        assert_eq!(of_document(Some(&json!({ "a": 1 }))), json!({ "a": 1 }));
        assert_eq!(of_document(Some(&json!("{}{\"a\": 1}"))), json!({ "a": 1 }));
    }

    #[test]
    fn leading_white_space_is_dropped() {
        let mut arguments = Arguments::default();
        for _ in 0..10_000 {
            assert_eq!(arguments.feed(&" ".repeat(100)), "");
        }
        assert_eq!(arguments.feed("{\"a\":"), "{\"a\":");
    }
}
