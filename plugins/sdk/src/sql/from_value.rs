//! Conversion of SQL values to Rust types. The conversions cover differences between the databases:
//! SQLite has no booleans and stores JSON as text, and PostgreSQL returns decimal numbers as values
//! of another type.

use crate::sql::Value;

/// A Rust type to which SQL values convert.
pub trait FromValue: Sized {
    /// Name of the type in error messages.
    const EXPECTED: &'static str;

    /// Converts a value. Returns `None` if the value does not fit the type.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for Value {
    const EXPECTED: &'static str = "anything";

    fn from_value(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl FromValue for bool {
    const EXPECTED: &'static str = "a boolean";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Boolean(value) => Some(*value),
            Value::Integer(0) => Some(false),
            Value::Integer(1) => Some(true),
            _ => None,
        }
    }
}

impl FromValue for i64 {
    const EXPECTED: &'static str = "a whole number";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(value) => Some(*value),
            Value::Other(text) => text.parse().ok(),
            _ => None,
        }
    }
}

macro_rules! narrower {
    ($($kind:ty),*) => {$(
        impl FromValue for $kind {
            const EXPECTED: &'static str = concat!("a whole number that fits in ", stringify!($kind));

            fn from_value(value: &Value) -> Option<Self> {
                i64::from_value(value)?.try_into().ok()
            }
        }
    )*};
}

narrower!(i32, u16, u32, u64, usize);

impl FromValue for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Real(value) => Some(*value),
            Value::Integer(value) => Some(*value as f64),
            Value::Other(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl FromValue for String {
    const EXPECTED: &'static str = "text";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) | Value::Other(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl FromValue for Vec<u8> {
    const EXPECTED: &'static str = "bytes";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }
}

impl FromValue for serde_json::Value {
    const EXPECTED: &'static str = "a JSON document";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Json(value) => Some(value.clone()),
            Value::Text(text) => serde_json::from_str(text).ok(),
            Value::Bytes(_) | Value::Other(_) => None,
            value => Some(value.to_json()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::FromValue;
    use crate::sql::Value;

    #[test]
    fn values_of_both_databases_convert() {
        assert_eq!(bool::from_value(&Value::Integer(1)), Some(true));
        assert_eq!(bool::from_value(&Value::Integer(2)), None);
        assert_eq!(f64::from_value(&Value::Other("1.50".to_owned())), Some(1.5));
        assert_eq!(f64::from_value(&Value::Integer(2)), Some(2.0));
        let text = Value::Text(r#"{"a":1}"#.to_owned());
        assert_eq!(serde_json::Value::from_value(&text), Some(json!({"a": 1})));
    }

    #[test]
    fn values_of_other_types_do_not_convert() {
        assert_eq!(u32::from_value(&Value::Integer(-1)), None);
        assert_eq!(String::from_value(&Value::Null), None);
        assert_eq!(Option::<String>::from_value(&Value::Null), Some(None));
    }
}
