//! Writes values as JSON text.
//!
//! `serde_json` looks up each byte of a string in a table. Most strings have no byte that must be
//! escaped, and a comparison of many bytes at once shows this in a fraction of the time.

use serde_json::Value;

/// Number of bytes of a string that are compared at once.
const COMPARED_BYTES: usize = 64;

/// Appends the JSON text of a value: the text that `serde_json` writes.
///
/// # Errors
///
/// Errors of the serializer.
pub fn append(text: &mut Vec<u8>, value: &Value) -> serde_json::Result<()> {
    match value {
        Value::String(string) => append_string(text, string),
        Value::Array(items) => append_list(text, items),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| (name.as_str(), field));
            append_object(text, fields, |text, _, field| append(text, field))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => serde_json::to_writer(text, value),
    }
}

/// Appends the JSON text of a list of values like [`append`].
///
/// # Errors
///
/// See [`append`].
pub fn append_list<'v>(
    text: &mut Vec<u8>,
    items: impl IntoIterator<Item = &'v Value>,
) -> serde_json::Result<()> {
    text.push(b'[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            text.push(b',');
        }
        append(text, item)?;
    }
    text.push(b']');
    Ok(())
}

/// Appends the JSON text of an object. `append_field` appends the text of the value of a field, and
/// gets the name of the field.
///
/// # Errors
///
/// Errors of `append_field`, and those of [`append`].
pub fn append_object<'n, V>(
    text: &mut Vec<u8>,
    fields: impl IntoIterator<Item = (&'n str, V)>,
    append_field: impl Fn(&mut Vec<u8>, &str, V) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    text.push(b'{');
    for (place, (name, field)) in fields.into_iter().enumerate() {
        if place > 0 {
            text.push(b',');
        }
        append_string(text, name)?;
        text.push(b':');
        append_field(text, name, field)?;
    }
    text.push(b'}');
    Ok(())
}

fn append_string(text: &mut Vec<u8>, string: &str) -> serde_json::Result<()> {
    if has_escapes(string.as_bytes()) {
        return serde_json::to_writer(text, string);
    }
    text.reserve(string.len() + 2);
    text.push(b'"');
    text.extend_from_slice(string.as_bytes());
    text.push(b'"');
    Ok(())
}

/// Returns true if a string has a byte that JSON text must escape.
fn has_escapes(string: &[u8]) -> bool {
    let is_escaped = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    // The inner loop has no branch, so the compiler turns it into vector instructions.
    let has_escape = |bytes: &[u8]| bytes.iter().fold(false, |any, byte| any | is_escaped(*byte));
    string.chunks(COMPARED_BYTES).any(has_escape)
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

    use super::*;

    fn string() -> impl Strategy<Value = String> {
        prop_oneof![any::<String>(), "[a-zü ]{0,200}", r#"[a-z"\\\n\x00-\x7f]{0,200}"#]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            string().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 30, 4, |inner| {
            let fields = btree_map(string(), inner.clone(), 0..4);
            prop_oneof![
                vec(inner, 0..4).prop_map(Value::from),
                fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn appended_text_is_that_of_serde_json(written in value()) {
            let mut text = b"before".to_vec();
            append(&mut text, &written).unwrap();
            prop_assert_eq!(&text[..6], b"before");
            prop_assert_eq!(&text[6..], serde_json::to_vec(&written).unwrap());
        }
    }

    #[test]
    fn every_byte_that_serde_json_escapes_is_found() {
        for byte in 0..0x80_u8 {
            let string = format!("{}{}", "x".repeat(COMPARED_BYTES), char::from(byte));
            let is_escaped = serde_json::to_vec(&string).unwrap().len() > string.len() + 2;
            assert_eq!(has_escapes(string.as_bytes()), is_escaped, "{byte}");
        }
    }
}
