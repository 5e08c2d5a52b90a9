//! Rows as types that implement [`Deserialize`].
//!
//! A column is a field. Its value converts as by [`FromValue`], so a type fits rows of both
//! databases. Text is also a JSON document where a type can be nothing else, such as a struct.

use std::fmt;
use std::iter::Zip;
use std::marker::PhantomData;
use std::slice::Iter;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, SeqDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Error;
use serde_json::de::StrRead;

use crate::failure::Failure;
use crate::sql::{Column, FromValue, Row, Rows, Value};

/// Name of the newtype struct that [`json()`] requests from a deserializer.
const JSON: &str = "$wattle_plugin::sql::json";

impl Rows {
    /// Returns the rows as values of a type, see [`Row::read`].
    pub fn read_all<'a, T: Deserialize<'a>>(&'a self) -> Result<Vec<T>, Failure> {
        self.iter().map(Row::read).collect()
    }

    /// Returns the first row as a value of a type, if there is one, see [`Row::read`].
    pub fn read_first<'a, T: Deserialize<'a>>(&'a self) -> Result<Option<T>, Failure> {
        self.first().map(Row::read).transpose()
    }
}

impl<'a> Row<'a> {
    /// Returns the row as a value of a type whose fields have the names of the columns. Other
    /// columns are ignored. A field with a JSON document names [`json()`](crate::sql::json()).
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    ///
    /// #[derive(Debug, PartialEq, Deserialize)]
    /// struct Item {
    ///     id: i64,
    ///     is_sold: bool,
    ///     price: Option<f64>,
    ///     #[serde(deserialize_with = "sql::json")]
    ///     labels: Value,
    /// }
    ///
    /// let columns = ["id", "is_sold", "price", "labels"];
    /// // SQLite has no booleans and stores JSON as text.
    /// let rows = sql::Rows::new(columns, vec![params![7, 1, None::<f64>, r#"["old"]"#]]);
    /// let item: Item = rows.one()?.read()?;
    /// assert_eq!(item, Item { id: 7, is_sold: true, price: None, labels: json!(["old"]) });
    /// # Ok::<_, Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid` if a field has no column, or if the value of a column does not fit its field.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, Failure> {
        let columns = Columns { rest: self.columns.iter().zip(self.values), current: None };
        T::deserialize(MapAccessDeserializer::new(columns))
            .map_err(|error| Failure::invalid(format!("read a row: {error}")))
    }
}

/// Deserializes a column with a JSON document, for `#[serde(deserialize_with = "...")]`. SQLite
/// stores the document as text, which a field of the type [`serde_json::Value`] would contain
/// unparsed.
///
/// # Errors
///
/// An error if the text is no JSON, or if the document does not fit the type.
pub fn json<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_newtype_struct(JSON, Document(PhantomData))
}

/// The visitor of [`json()`].
struct Document<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Document<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON document")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

/// The columns of a row with their values.
struct Columns<'a> {
    rest: Zip<Iter<'a, Column>, Iter<'a, Value>>,
    current: Option<(&'a Column, &'a Value)>,
}

impl<'de> MapAccess<'de> for Columns<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.current = self.rest.next();
        let Some((column, _)) = self.current else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(&column.name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((column, value)) = self.current.take() else {
            return Err(Error::custom("a value was read before its column"));
        };
        let name = &column.name;
        seed.deserialize(Field(value))
            .map_err(|error| Error::custom(format_args!("column `{name}`: {error}")))
    }
}

/// The value of a column.
#[derive(Clone, Copy)]
struct Field<'a>(&'a Value);

/// Defines methods for types to which more than one kind of value converts.
macro_rules! converted {
    ($($method:ident => $kind:ty, $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match <$kind>::from_value(self.0) {
                Some(value) => visitor.$visit(value),
                None => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Real(value) => visitor.visit_f64(*value),
            Value::Text(text) | Value::Other(text) => visitor.visit_borrowed_str(text),
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::Json(document) => document.deserialize_any(visitor),
        }
    }

    converted! {
        deserialize_bool => bool, visit_bool;
        deserialize_i8 => i64, visit_i64;
        deserialize_i16 => i64, visit_i64;
        deserialize_i32 => i64, visit_i64;
        deserialize_i64 => i64, visit_i64;
        deserialize_u8 => i64, visit_i64;
        deserialize_u16 => i64, visit_i64;
        deserialize_u32 => i64, visit_i64;
        deserialize_u64 => i64, visit_i64;
        deserialize_f32 => f64, visit_f64;
        deserialize_f64 => f64, visit_f64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null | Value::Json(serde_json::Value::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Text(text) if name == JSON => {
                parse(text, |reader| visitor.visit_newtype_struct(reader))
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Text(text) => parse(text, |reader| reader.deserialize_seq(visitor)),
            Value::Bytes(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Text(text) => parse(text, |reader| reader.deserialize_map(visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Text(text) | Value::Other(text) => {
                visitor.visit_enum(BorrowedStrDeserializer::new(text))
            }
            Value::Json(document) => document.deserialize_enum(name, variants, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct identifier ignored_any
    }
}

/// Reads a JSON document from text.
fn parse<'de, T>(
    text: &'de str,
    read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'de>>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Deserialize;
    use serde_json::json;

    use crate::failure::Failure;
    use crate::params;
    use crate::sql::{Rows, Value};

    /// The type of the one column in these tests.
    #[derive(Debug, PartialEq, Deserialize)]
    struct One<T> {
        it: T,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Documents {
        #[serde(deserialize_with = "crate::sql::json")]
        it: serde_json::Value,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    enum Status {
        Open,
        Closed,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Place {
        lat: f64,
    }

    fn rows(value: impl Into<Value>) -> Rows {
        Rows::new(["it", "unused"], vec![vec![value.into(), Value::Null]])
    }

    #[track_caller]
    fn check<T: for<'a> Deserialize<'a> + PartialEq + Debug>(value: impl Into<Value>, expected: T) {
        let rows = rows(value);
        assert_eq!(rows.one().unwrap().read::<One<T>>(), Ok(One { it: expected }), "{rows:?}");
    }

    #[test]
    fn values_of_both_databases_fit_a_type() {
        check(true, true);
        check(0, false);
        check(7, 7_u64);
        check(Value::Other("7".to_owned()), 7_i32);
        check(2, 2.0);
        check(Value::Other("1.50".to_owned()), 1.5);
        check("lamp", "lamp".to_owned());
        check(Value::Other("2025-01-15".to_owned()), "2025-01-15".to_owned());
        check("OPEN", Status::Open);
        check(json!("CLOSED"), Status::Closed);
        check(Value::Null, None::<String>);
        check(json!(null), None::<String>);
        check("a", Some("a".to_owned()));
        check(vec![1_u8, 2], vec![1_u8, 2]);
        check(json!([1, 2]), vec![1, 2]);
        check("[1, 2]", (1, 2));
        check(r#"{"lat": 35.5}"#, Place { lat: 35.5 });
        check(json!({"lat": 35}), Some(Place { lat: 35.0 }));
        // Only the type decides, so that text such as `12` stays text.
        check("12", json!("12"));
    }

    #[test]
    fn documents_are_parsed_from_text() {
        for (value, document) in [
            (Value::Text("[1]".to_owned()), json!([1])),
            (Value::Text("null".to_owned()), json!(null)),
            (Value::Json(json!("text")), json!("text")),
            (Value::Null, json!(null)),
        ] {
            let rows = rows(value);
            assert_eq!(rows.read_all(), Ok(vec![Documents { it: document }]), "{rows:?}");
        }
    }

    #[test]
    fn errors_name_the_column() {
        fn message<T: for<'a> Deserialize<'a> + Debug>(rows: &Rows) -> String {
            rows.read_first::<T>().unwrap_err().message
        }
        let expected = "read a row: column `it`: invalid type: string \"x\", expected i64";
        assert_eq!(message::<One<i64>>(&rows("x")), expected);
        let expected = "read a row: column `it`: invalid value: integer `-1`, expected u32";
        assert_eq!(message::<One<u32>>(&rows(-1)), expected);
        assert_eq!(
            message::<One<i64>>(&Rows::new([], vec![vec![]])),
            "read a row: missing field `it`"
        );
        for text in ["[", "[1] 2"] {
            let message = message::<Documents>(&rows(text));
            assert!(message.starts_with("read a row: column `it`: "), "{message}");
        }
    }

    #[test]
    fn all_rows_or_the_first_one_are_read() -> Result<(), Failure> {
        let rows = Rows::new(["it"], vec![params!["a"], params!["b"]]);
        // Texts may be borrowed from the rows.
        assert_eq!(rows.read_all::<One<&str>>()?, [One { it: "a" }, One { it: "b" }]);
        assert_eq!(rows.read_first::<One<&str>>()?, Some(One { it: "a" }));
        assert_eq!(Rows::default().read_first::<One<&str>>()?, None);
        Ok(())
    }
}
