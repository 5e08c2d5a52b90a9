//! JSON values as text: the length and the digest of the text without building it, its nesting, values that cache
//! their text, writers with a limit, and lone surrogates.

mod append;
mod surrogates;

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::OnceLock;

use serde::{Serialize, Serializer};
use serde_json::Value;

pub use self::append::{append, append_list, append_object};
pub use self::surrogates::{
    HIGH_SURROGATES, LOW_SURROGATES, replace_lone_surrogates, replace_surrogates,
};
use crate::id::Digest;

/// Returns the length of a value as JSON text, in bytes.
///
/// # Errors
///
/// Errors of the serializer.
pub fn length<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<u64> {
    let mut text = LimitedWriter::new(io::sink(), u64::MAX);
    serde_json::to_writer(&mut text, value)?;
    Ok(text.written())
}

/// Returns the digest of the JSON text of a value, and the length of the text in bytes.
///
/// # Errors
///
/// Errors of the serializer.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<(Digest, u64)> {
    let mut text = LimitedWriter::new(blake3::Hasher::new(), u64::MAX);
    serde_json::to_writer(&mut text, value)?;
    let digest = Digest::from_bytes(*text.get_mut().finalize().as_bytes());
    Ok((digest, text.written()))
}

/// Returns true if a value has at most `most` bytes as JSON text. Serialization stops at the first
/// byte above the limit.
pub fn has_at_most(value: &Value, most: u64) -> bool {
    serde_json::to_writer(LimitedWriter::new(io::sink(), most), value).is_ok()
}

/// Returns true if a value is nested at most `levels` deep. Parsers are recursive, so they reject
/// text that is nested too deeply.
pub fn is_within_depth(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => {
            levels > 0 && items.iter().all(|item| is_within_depth(item, levels - 1))
        }
        Value::Object(fields) => {
            levels > 0 && fields.values().all(|field| is_within_depth(field, levels - 1))
        }
        _ => true,
    }
}

/// A JSON value that caches its text. The value is serialized when the text is first needed, so
/// that a value that many guests get is serialized once.
#[derive(Debug, Default)]
pub struct JsonWithText {
    value: Value,
    text: OnceLock<Box<str>>,
}

impl JsonWithText {
    /// Returns the value as JSON text.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| self.value.to_string().into())
    }
}

impl From<Value> for JsonWithText {
    fn from(value: Value) -> Self {
        Self { value, text: OnceLock::new() }
    }
}

impl Deref for JsonWithText {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl Serialize for JsonWithText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// A writer that counts the bytes that it passes on, and fails with [`io::ErrorKind::FileTooLarge`]
/// above a limit.
#[derive(Debug)]
pub struct LimitedWriter<W> {
    inner: W,
    written: u64,
    most: u64,
}

impl<W> LimitedWriter<W> {
    /// Creates a writer that passes at most `most` bytes on to `inner`.
    pub fn new(inner: W, most: u64) -> Self {
        Self { inner, written: 0, most }
    }

    /// Returns the number of bytes that were passed on.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the writer to which the bytes are passed on.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }
}

impl<W: Write> Write for LimitedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written.saturating_add(bytes.len() as u64) > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let written = self.inner.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn depth_is_that_of_the_deepest_value() {
        let value = json!({ "a": [1, [], { "b": "c" }], "d": null });
        assert!(is_within_depth(&value, 3) && !is_within_depth(&value, 2));
        assert!(is_within_depth(&json!("text"), 0) && !is_within_depth(&json!({}), 0));
    }

    #[test]
    fn length_and_digest_are_those_of_the_serialized_text() {
        for value in
            [json!(null), json!({}), json!({ "\u{1}\"": ["ü", 1.5, true, "x".repeat(99)] })]
        {
            let text = value.to_string();
            let bytes = text.len() as u64;
            assert_eq!(length(&value).unwrap(), bytes, "{value}");
            assert_eq!(digest(&value).unwrap(), (Digest::of(text.as_bytes()), bytes), "{value}");
            assert!(has_at_most(&value, bytes), "{value}");
            assert!(!has_at_most(&value, bytes - 1), "{value}");
        }
    }

    #[test]
    fn a_value_is_serialized_once() {
        let value = json!({ "z": "ü\n", "a": [1.5, null] });
        let kept = JsonWithText::from(value.clone());
        assert_eq!(kept.text(), value.to_string());
        assert_eq!(kept.text().as_ptr(), kept.text().as_ptr());
        assert_eq!((&*kept, json!(kept)), (&value, value.clone()));
        assert_eq!(JsonWithText::default().text(), "null");
    }

    #[test]
    fn limited_writer_passes_on_bytes_up_to_its_limit() {
        let mut writer = LimitedWriter::new(Vec::new(), 5);
        writer.write_all(b"abc").unwrap();
        let refused = writer.write_all(b"def").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        writer.write_all(b"gh").unwrap();
        assert_eq!((writer.written(), writer.get_mut().as_slice()), (5, &b"abcgh"[..]));
    }
}
