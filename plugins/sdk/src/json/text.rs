//! JSON text of values.

use std::io;

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Capacity of a text before its first byte. Most updates fit.
const INITIAL_BYTES: usize = 128;

/// A JSON value as text, which is how the host receives it.
///
/// ```
/// use serde_json::json;
/// use wattle_plugin::JsonText;
///
/// let text = JsonText::from(json!({"total": 3}));
/// assert_eq!(text.as_str(), r#"{"total":3}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// Serializes a value. The text is that of the [`Value`] to which it converts. Only a key that
    /// a nested object has twice stays in the text twice; the host uses its last value.
    pub(crate) fn of<T: ?Sized + Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        let mut bytes = Vec::with_capacity(INITIAL_BYTES);
        let formatter = ValueFormatter { in_key: false };
        value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter))?;
        String::from_utf8(bytes).map(Self).map_err(serde_json::Error::custom)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Converts to the text.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}

/// Writes numbers as a [`Value`] has them: an `f32` is an `f64`, and integers have 64 bits. A key
/// is a text, so it has any number.
struct ValueFormatter {
    in_key: bool,
}

impl ValueFormatter {
    fn check(&self, fits: bool) -> io::Result<()> {
        if self.in_key || fits { Ok(()) } else { Err(io::Error::other("number out of range")) }
    }
}

impl Formatter for ValueFormatter {
    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.in_key = true;
        CompactFormatter.begin_object_key(writer, first)
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.in_key = false;
        CompactFormatter.end_object_key(writer)
    }

    fn write_f32<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        if self.in_key {
            CompactFormatter.write_f32(writer, value)
        } else {
            CompactFormatter.write_f64(writer, value.into())
        }
    }

    fn write_i128<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: i128) -> io::Result<()> {
        self.check(i64::try_from(value).is_ok() || u64::try_from(value).is_ok())?;
        CompactFormatter.write_i128(writer, value)
    }

    fn write_u128<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: u128) -> io::Result<()> {
        self.check(u64::try_from(value).is_ok())?;
        CompactFormatter.write_u128(writer, value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};
    use serde::{Serialize, Serializer};

    use super::JsonText;
    use crate::json::shapes::{shape, through_value};

    /// An object with one key.
    struct Keyed<K>(K);

    impl<K: Serialize> Serialize for Keyed<K> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([(&self.0, 1)])
        }
    }

    #[track_caller]
    fn check(value: &impl Serialize, expected: Result<&str, &str>) {
        let text = JsonText::of(value).map(JsonText::into_string);
        let text = text.map_err(|error| error.to_string());
        assert_eq!(text, through_value(value));
        assert_eq!(text.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn numbers_are_those_of_a_value() {
        check(&0.1_f32, Ok("0.10000000149011612"));
        check(&[f32::NAN, f32::INFINITY], Ok("[null,null]"));
        check(&[f64::NAN, 0.5, 1.0], Ok("[null,0.5,1.0]"));
        check(&i128::from(u64::MAX), Ok("18446744073709551615"));
        check(&i128::from(i64::MIN), Ok("-9223372036854775808"));
        check(&i128::MIN, Err("number out of range"));
        check(&[u128::MAX], Err("number out of range"));
    }

    #[test]
    fn keys_are_those_of_a_value() {
        check(&Keyed("a\"b"), Ok(r#"{"a\"b":1}"#));
        check(&Keyed(0.1_f32), Ok(r#"{"0.1":1}"#));
        check(&Keyed(u128::MAX), Ok(r#"{"340282366920938463463374607431768211455":1}"#));
        check(&Keyed([1]), Err("key must be a string"));
        check(&[Keyed(1_i128 << 100)], Ok(r#"[{"1267650600228229401496703205376":1}]"#));
        check(&Keyed(true), Ok(r#"{"true":1}"#));
    }

    proptest! {
        #[test]
        fn text_is_that_of_a_value(shape in shape()) {
            let text = JsonText::of(&shape).map(JsonText::into_string);
            prop_assert_eq!(text.map_err(|error| error.to_string()), through_value(&shape));
        }
    }
}
