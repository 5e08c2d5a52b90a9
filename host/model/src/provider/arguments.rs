//! Arguments of requests for tools, as services write them.

use serde_json::{Value, json};
use wattle_run::json::lenient::{self, Halves};

use crate::provider::state::says;

/// The empty object, which gateways that translate Anthropic's format write in front of the arguments: a block begins
/// with it.
const EMPTY: &str = "{}";

/// What stands for no arguments.
const NONE: [&str; 3] = [EMPTY, "[]", "null"];

/// The arguments that a service gives as a document, or as its text. No arguments are absent, `null` or, from
/// services written in PHP, an empty list.
pub(super) fn of_document(document: Option<&Value>) -> Value {
    match document {
        Some(Value::String(text)) => Arguments::whole(text).value(),
        Some(document) if says(document) => lenient::settled(document.clone()),
        _ => json!({}),
    }
}

/// The arguments that a text is. Some services write the text of the document as a text once more. Arguments that are
/// not JSON stay the text that they are, so that the tool's schema refuses them and the model reads why.
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

/// The object that a text is, if it is one.
fn object(text: &str) -> Option<Value> {
    lenient::read(text.trim()).ok().map(lenient::settled).filter(Value::is_object)
}

/// The text of arguments that arrives in pieces. What stands for no arguments is held back: it is no part of the text
/// if it is all that comes, or an empty object in front of another one. So the pieces that are handed on add up to the
/// arguments.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    text: String,
    halves: Halves,
    /// What may stand for no arguments, without white space.
    held: String,
    /// All further text is text.
    is_begun: bool,
}

impl Arguments {
    /// Arguments that come in one piece.
    pub(super) fn whole(text: &str) -> Self {
        let mut arguments = Self::default();
        arguments.feed(text);
        arguments.end();
        arguments
    }

    /// Takes a piece; gives what is handed on of it.
    pub(super) fn feed(&mut self, piece: &str) -> &str {
        let piece = self.halves.feed(piece);
        self.add(&piece)
    }

    /// The pieces have ended; gives what is still to be handed on. What stands for no arguments and is cut is broken, and
    /// stays what it is.
    pub(super) fn end(&mut self) -> &str {
        let from = self.text.len();
        let tail = self.halves.end();
        self.add(tail);
        if !self.is_none() {
            self.text.push_str(&std::mem::take(&mut self.held));
        }
        &self.text[from..]
    }

    /// What was handed on.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether all that came stands for no arguments.
    pub(super) fn is_none(&self) -> bool {
        self.text.is_empty() && NONE.contains(&self.held.as_str())
    }

    /// The arguments.
    pub(super) fn value(&self) -> Value {
        of_text(&self.text)
    }

    fn add(&mut self, piece: &str) -> &str {
        let from = self.text.len();
        let rest = self.hold(piece);
        self.text.push_str(rest);
        &self.text[from..]
    }

    /// Holds back what may stand for no arguments; gives the rest of the piece. Each sign is looked at once.
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

    /// What is handed on of a text that comes in pieces of `size` characters, and what it means.
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
    fn pieces_add_up_to_the_arguments() {
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
    fn documents_are_read_in_every_form() {
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
    fn white_space_in_front_is_not_kept() {
        let mut arguments = Arguments::default();
        for _ in 0..10_000 {
            assert_eq!(arguments.feed(&" ".repeat(100)), "");
        }
        assert_eq!(arguments.feed("{\"a\":"), "{\"a\":");
    }
}
