//! Values of parameters and rows.

/// An SQL value.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value {
    /// SQL `NULL`.
    #[default]
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A JSON value.
    Json(serde_json::Value),
    /// A value of another database type as text, such as a decimal number, a date or a time.
    Other(String),
}

/// Creates a vector of parameters from values that convert to [`sql::Value`].
///
/// ```
/// use wattle_plugin::{params, sql::Value};
///
/// let values = params!["lamp", 7, 2.5, None::<String>];
/// assert_eq!(values[0], Value::Text("lamp".to_owned()));
/// assert_eq!(values[3], Value::Null);
/// ```
///
/// [`sql::Value`]: crate::sql::Value
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        ::std::vec![$($crate::sql::Value::from($value)),*]
    };
}

macro_rules! from {
    ($($source:ty => $make:expr;)*) => {$(
        impl From<$source> for Value {
            fn from(value: $source) -> Self {
                $make(value)
            }
        }
    )*};
}

from! {
    bool => Value::Boolean;
    i64 => Value::Integer;
    i32 => |value| Value::Integer(i64::from(value));
    u32 => |value| Value::Integer(i64::from(value));
    u16 => |value| Value::Integer(i64::from(value));
    f64 => Value::Real;
    String => Value::Text;
    &str => |value: &str| Value::Text(value.to_owned());
    &String => |value: &String| Value::Text(value.clone());
    Vec<u8> => Value::Bytes;
    &[u8] => |value: &[u8]| Value::Bytes(value.to_vec());
    serde_json::Value => Value::Json;
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Value {
    /// Returns the value as JSON. Bytes become base64.
    pub fn to_json(&self) -> serde_json::Value {
        use base64::Engine as _;
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Boolean(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Real(value) => (*value).into(),
            Self::Text(value) | Self::Other(value) => value.as_str().into(),
            Self::Bytes(value) => base64::engine::general_purpose::STANDARD.encode(value).into(),
            Self::Json(value) => value.clone(),
        }
    }

    /// Returns a phrase for the type of the value, for error messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Real(_) => "a real number",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Json(_) => "JSON",
            Self::Other(_) => "a value of the database's own type",
        }
    }
}
