//! Messages of deserializers in the words of a document, without names of Rust types.

/// Returns what a deserializer expects as what an author can write, such as `a table` for
/// `struct HttpRule`.
pub fn in_words(expected: &str) -> String {
    match expected {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number from 0".to_owned(),
        "i8" | "i16" | "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a map" => "a table".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "path string" => "a path".to_owned(),
        _ if expected.starts_with("a nonzero ") => "a whole number above 0".to_owned(),
        _ if expected.starts_with("struct ") => "a table".to_owned(),
        _ => expected.to_owned(),
    }
}

/// Returns the message of a deserializer with its expectation [`in_words`].
pub fn of_message(message: &str) -> String {
    match message.split_once(", expected ") {
        Some((found, expected)) => format!("{found}, expected {}", in_words(expected)),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::path::PathBuf;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Rule {}

    fn message<T: DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
        of_message(&serde_json::from_value::<T>(value).unwrap_err().to_string())
    }

    #[test]
    fn messages_have_no_names_of_rust_types() {
        for (message, expected) in [
            (message::<Rule>(json!("x")), "invalid type: string \"x\", expected a table"),
            (message::<u32>(json!("x")), "expected a whole number from 0 to 4294967295"),
            (
                message::<u64>(json!(-1)),
                "invalid value: integer `-1`, expected a whole number from 0",
            ),
            (message::<NonZeroU64>(json!(0)), "expected a whole number above 0"),
            (message::<f64>(json!("x")), "expected a number"),
            (message::<Vec<u8>>(json!("x")), "expected a list"),
            (message::<bool>(json!("x")), "expected `true` or `false`"),
            (message::<PathBuf>(json!(1)), "expected a path"),
            (message::<String>(json!(1)), "expected a string"),
        ] {
            assert!(message.ends_with(expected), "{message}");
        }
        assert_eq!(of_message("there is no table"), "there is no table");
    }
}
