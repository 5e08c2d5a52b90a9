//! Log messages of guests. A log call has no result, so a message that breaks a limit is truncated
//! and not refused.

use serde_json::{Map, Value};

use crate::json::bounded::{JsonBudget, RAW_VALUE_KEY};
use crate::json::check_depth;
use crate::limit;

/// A message for the operator, as the guest wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogMessage {
    /// `trace`, `debug`, `info`, `warn`, `error`, `stdout`, `stderr` or another name.
    pub level: String,
    /// Text of the message.
    pub message: String,
    /// Names of the fields, and their values as JSON text.
    pub fields: Vec<(String, String)>,
}

impl LogMessage {
    /// Creates a message without fields.
    pub fn new(level: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: level.into(), message: message.into(), fields: Vec::new() }
    }

    /// Returns the size of the message with its fields, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let fields: usize = self.fields.iter().map(field_bytes).sum();
        self.level.len() + self.message.len() + fields
    }

    /// Truncates the message with its fields to [`limit::EVENT_BYTES`], and adds a note about this
    /// to the end of the message. Runs before the fields are parsed, because a parsed field takes
    /// up to 32 times the memory of its text.
    pub(crate) fn truncate(mut self) -> Self {
        let bytes = self.bytes();
        if bytes <= limit::EVENT_BYTES {
            return self;
        }
        let mut room = limit::EVENT_BYTES;
        for text in [&mut self.level, &mut self.message] {
            text.truncate(text.floor_char_boundary(room));
            // A truncated text would keep the memory of the whole one.
            text.shrink_to_fit();
            room -= text.len();
        }
        let fitting = self.fields.iter().map(field_bytes).scan(room, |room, bytes| {
            *room = room.checked_sub(bytes)?;
            Some(())
        });
        let kept = fitting.count();
        self.fields.truncate(kept);
        let note = format!(" [truncated: {bytes} bytes, the limit is {}]", limit::EVENT_BYTES);
        self.message.push_str(&note);
        self
    }

    /// Returns level, message, and the fields as an object; null without fields.
    pub(crate) fn into_parts(self) -> (String, String, Value) {
        let Self { level, message, fields } = self;
        if fields.is_empty() {
            return (level, message, Value::Null);
        }
        let fields: Map<String, Value> =
            fields.into_iter().map(|(name, text)| (field_name(name), parse_field(text))).collect();
        (level, message, Value::Object(fields))
    }
}

/// Returns the size of a field, in bytes, with the punctuation of JSON.
fn field_bytes((name, text): &(String, String)) -> usize {
    name.len() + text.len() + "\"\":,".len()
}

/// Returns the name of a field in the event log. [`RAW_VALUE_KEY`] loses its `$`, because an event
/// with this key could not be read again.
fn field_name(name: String) -> String {
    if name == RAW_VALUE_KEY { name.trim_start_matches('$').to_owned() } else { name }
}

/// Parses a field. A field that is not valid JSON, or is nested too deeply for the event log, is
/// kept as text.
fn parse_field(text: String) -> Value {
    match JsonBudget::default().parse(&text) {
        Ok(value) if check_depth("a field", &value).is_ok() => value,
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn field(name: &str, text: impl Into<String>) -> (String, String) {
        (name.to_owned(), text.into())
    }

    #[test]
    fn log_fields_that_are_invalid_or_too_deep_are_kept_as_text() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let fields = vec![
            field("n", "[1]"),
            field("text", "plain"),
            field("deep", deep(limit::JSON_DEPTH + 1)),
            field("endless", "[".repeat(10_000)),
        ];
        let message = LogMessage { fields, ..LogMessage::new("info", "m") };
        let (level, message, fields) = message.into_parts();
        assert_eq!((&*level, &*message), ("info", "m"));
        assert_eq!((&fields["n"], &fields["text"]), (&json!([1]), &json!("plain")));
        assert_eq!(fields["deep"], deep(limit::JSON_DEPTH + 1));
        assert!(fields["endless"].is_string());
        assert_eq!(LogMessage::new("info", "m").into_parts().2, Value::Null);
    }

    #[test]
    fn log_fields_with_the_key_of_raw_values_can_be_read_again() {
        let raw = format!("{{\"{RAW_VALUE_KEY}\":\"[1]\"}}");
        let fields = vec![field(RAW_VALUE_KEY, "plain"), field("raw", raw.clone())];
        let message = LogMessage { fields, ..LogMessage::new("info", "m") };
        let (_, _, fields) = message.into_parts();
        assert_eq!(fields, json!({ "serde_json::private::RawValue": "plain", "raw": raw }));
        let read: Value = serde_json::from_str(&fields.to_string()).unwrap();
        assert_eq!(read, fields);
    }

    #[test]
    fn log_fields_beyond_the_limit_are_dropped_before_they_are_parsed() {
        let numbers = format!("[{}0]", "0,".repeat(1 << 20));
        let fields = vec![field("small", "1"), field("numbers", numbers), field("after", "2")];
        let message = LogMessage { fields, ..LogMessage::new("info", "m") }.truncate();
        assert_eq!(message.fields, [field("small", "1")]);
        assert!(message.message.starts_with("m [truncated: 2097"), "{}", message.message);
    }

    proptest! {
        #[test]
        fn a_truncated_log_message_is_within_the_limit(
            level in "[a-zö]{0,3}",
            times in 0..3 * limit::EVENT_BYTES,
            sizes in prop::collection::vec(0..limit::EVENT_BYTES, 0..5),
        ) {
            let mut message = LogMessage::new(level, "ö".repeat(times / "ö".len()));
            message.fields = sizes.into_iter().map(|bytes| field("f", "1".repeat(bytes))).collect();
            let bytes = message.bytes();
            let truncated = message.clone().truncate();
            if bytes <= limit::EVENT_BYTES {
                prop_assert_eq!(truncated, message);
            } else {
                let note = truncated.message.rfind(" [truncated: ").unwrap();
                let without_note = truncated.bytes() - (truncated.message.len() - note);
                prop_assert!(without_note <= limit::EVENT_BYTES, "{without_note}");
                prop_assert!(message.message.starts_with(&truncated.message[..note]));
                prop_assert!(message.fields.starts_with(&truncated.fields));
            }
        }
    }
}
