//! Text form of values as in Python's `str`, so that outputs equal those of the same graph in
//! Python.

use wattle_plugin::prelude::Value;

/// Returns a value as text, strings without quotes.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => shown(other),
    }
}

/// Returns a value as text inside of another value, strings with quotes.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => decimal(float),
            None => number.to_string(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let field =
                |(key, value): (&String, &Value)| format!("{}: {}", quoted(key), shown(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// Formats a float as Python does. Rust and Python choose the same digits and use exponents from
/// the same sizes on. Python writes exponents with a sign and at least two digits.
fn decimal(number: f64) -> String {
    let text = format!("{number:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.strip_prefix('-') {
        Some(size) => format!("{digits}e-{size:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

/// Quotes a string with single quotes, or with double quotes if that avoids an escape.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if character == quote => quoted.extend(['\\', quote]),
            _ if is_shown(character) => quoted.push(character),
            _ => quoted.push_str(&escaped(character)),
        }
    }
    quoted.push(quote);
    quoted
}

/// Returns true if Python writes the character without an escape. Python also escapes unassigned
/// characters of Unicode, which this function does not detect.
fn is_shown(character: char) -> bool {
    character == ' ' || !(character.is_control() || character.is_whitespace())
}

fn escaped(character: char) -> String {
    match u32::from(character) {
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::text;

    #[test]
    fn values_read_as_in_python() {
        for (value, expected) in [
            (json!("it's \"so\"\n"), "it's \"so\"\n"),
            (Value::Null, "None"),
            (json!(true), "True"),
            (json!(false), "False"),
            (json!(3), "3"),
            (json!(-7), "-7"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!({}), "{}"),
            (json!({"a": 1}), "{'a': 1}"),
            (
                json!({"a": [1, "x", null], "b": {"c": false}}),
                "{'a': [1, 'x', None], 'b': {'c': False}}",
            ),
            (json!([]), "[]"),
        ] {
            assert_eq!(text(&value), expected);
        }
    }

    #[test]
    fn numbers_have_the_digits_of_python() {
        for (number, expected) in [
            (1.5, "1.5"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (-2.5e120, "-2.5e+120"),
        ] {
            assert_eq!(text(&json!(number)), expected);
        }
    }

    #[test]
    fn strings_inside_of_others_are_quoted() {
        for (string, expected) in [
            ("plain", "['plain']"),
            ("it's", "[\"it's\"]"),
            ("say \"hi\"", "['say \"hi\"']"),
            ("'\"", "['\\'\"']"),
            ("a\\b\n\t\r", "['a\\\\b\\n\\t\\r']"),
            ("\u{7f}\u{a0}\u{2028}", "['\\x7f\\xa0\\u2028']"),
            ("gr\u{fc}n \u{597d}", "['gr\u{fc}n \u{597d}']"),
        ] {
            assert_eq!(text(&json!([string])), expected);
        }
    }
}
