//! Compares a JSON text with a value.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Returns true if a text is the JSON of a value. Reads the text only up to the first difference.
/// The text is not parsed to a value, since a value takes many times the memory of its text.
pub(crate) fn is_json_of(text: &str, value: &Value) -> bool {
    let mut text = serde_json::Deserializer::from_str(text);
    Same(value).deserialize(&mut text).is_ok() && text.end().is_ok()
}

/// A visitor that fails unless the JSON that it reads equals the value.
#[derive(Clone, Copy)]
struct Same<'v>(&'v Value);

fn check<E: Error>(is_same: bool) -> Result<(), E> {
    if is_same { Ok(()) } else { Err(E::custom("the values differ")) }
}

impl<'de> DeserializeSeed<'de> for Same<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<(), D::Error> {
        text.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Same<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the same value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        check(self.0.is_null())
    }

    fn visit_bool<E: Error>(self, read: bool) -> Result<(), E> {
        check(self.0.as_bool() == Some(read))
    }

    fn visit_i64<E: Error>(self, read: i64) -> Result<(), E> {
        check(self.0.as_i64() == Some(read))
    }

    fn visit_u64<E: Error>(self, read: u64) -> Result<(), E> {
        check(self.0.as_u64() == Some(read))
    }

    fn visit_f64<E: Error>(self, read: f64) -> Result<(), E> {
        let own = self.0.as_f64().filter(|_| self.0.is_f64());
        check(own.is_some_and(|own| own.partial_cmp(&read).is_some_and(Ordering::is_eq)))
    }

    fn visit_str<E: Error>(self, read: &str) -> Result<(), E> {
        check(self.0.as_str() == Some(read))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        for item in self.0.as_array().into_iter().flatten() {
            let read = list.next_element_seed(Same(item))?;
            check::<A::Error>(read.is_some())?;
        }
        check(self.0.is_array() && list.next_element::<IgnoredAny>()?.is_none())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Some(fields) = self.0.as_object() else { return check(false) };
        let mut seen = HashSet::new();
        while let Some(name) = object.next_key::<String>()? {
            let Some((name, value)) = fields.get_key_value(&name) else { return check(false) };
            object.next_value_seed(Same(value))?;
            check::<A::Error>(seen.insert(name))?;
        }
        check(seen.len() == fields.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_compared_as_a_value() {
        let value = json!({ "a": [1, -2, 2.5, true, null, "x\n"], "b": {}, "c": [] });
        let written = value.to_string();
        for text in [
            written.as_str(),
            r#" { "c": [], "b": {}, "a": [1, -2, 25e-1, true, null, "\u0078\n"] } "#,
        ] {
            assert!(is_json_of(text, &value), "{text}");
        }
        for text in [
            "",
            "{}",
            "[]",
            r#"{ "a": [1, -2, 2.5, true, null, "x\n"], "b": {}, "c": [] } {}"#,
            r#"{ "a": [1, -2, 2.5, true, null, "x\n"], "b": {}, "c": [0] }"#,
            r#"{ "a": [1, -2, 2.5, true, null], "b": {}, "c": [] }"#,
            r#"{ "a": [1, -2, 2.5, true, null, "x\n"], "b": [], "c": [] }"#,
            r#"{ "a": [1, -2, 2.5, true, null, "x\n"], "b": {}, "b": {} }"#,
            r#"{ "a": [1, -2, 2.5, true, null, "x\n"], "b": {}, "c": [], "d": 1 }"#,
        ] {
            assert!(!is_json_of(text, &value), "{text}");
        }
    }

    proptest! {
        #[test]
        fn comparison_agrees_with_the_parser(
            text in r#"[\[\]{}",:a1. ]{0,12}"#,
            other in r#"[\[\]{}",:a1. ]{0,12}"#,
        ) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert!(is_json_of(&value.to_string(), &value));
                let expected = serde_json::from_str::<Value>(&other).is_ok_and(|it| it == value);
                // A text with a duplicate key never equals a value.
                prop_assert!(expected || !is_json_of(&other, &value));
            }
        }
    }
}
