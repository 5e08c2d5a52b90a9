//! Splits an object into its fields while it is serialized.

use std::fmt::Display;

use serde::Serialize;
use serde::ser::{
    Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTupleVariant, Serializer,
};
use serde_json::Value;
use serde_json::value::Serializer as ValueSerializer;

use super::JsonText;

/// The fields of an object in order.
pub(crate) type Fields = Vec<(String, JsonText)>;

/// Returns the fields of an object. `null` has none. Returns `None` for any other value.
pub(crate) fn fields(value: &impl Serialize) -> Result<Option<Fields>, serde_json::Error> {
    match value.serialize(Splitter) {
        Ok(fields) => Ok(Some(fields)),
        Err(SplitError::NotAnObject) => Ok(None),
        Err(SplitError::Json(error)) => Err(error),
    }
}

/// Why a value has no fields.
#[derive(Debug, thiserror::Error)]
enum SplitError {
    #[error("the value is not an object")]
    NotAnObject,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl serde::ser::Error for SplitError {
    fn custom<T: Display>(message: T) -> Self {
        Self::Json(serde_json::Error::custom(message))
    }
}

/// The serializer of the object. It decides as that of a [`Value`] which types are objects.
struct Splitter;

/// Refuses scalars.
macro_rules! refuse {
    ($($method:ident: $scalar:ty),* $(,)?) => {$(
        fn $method(self, _value: $scalar) -> Result<Fields, SplitError> {
            Err(SplitError::NotAnObject)
        }
    )*};
}

impl Serializer for Splitter {
    type Ok = Fields;
    type Error = SplitError;
    type SerializeSeq = Impossible<Fields, SplitError>;
    type SerializeTuple = Impossible<Fields, SplitError>;
    type SerializeTupleStruct = Impossible<Fields, SplitError>;
    type SerializeTupleVariant = Variant<List>;
    type SerializeMap = Collector;
    type SerializeStruct = Collector;
    type SerializeStructVariant = Variant<Object>;

    refuse! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
    }

    fn serialize_none(self) -> Result<Fields, SplitError> {
        Ok(Fields::new())
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<Fields, SplitError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Fields, SplitError> {
        Ok(Fields::new())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Fields, SplitError> {
        Ok(Fields::new())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
    ) -> Result<Fields, SplitError> {
        Err(SplitError::NotAnObject)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Fields, SplitError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Fields, SplitError> {
        Ok(vec![(variant.to_owned(), JsonText::of(value)?)])
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Self::SerializeSeq, SplitError> {
        Err(SplitError::NotAnObject)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Self::SerializeTuple, SplitError> {
        Err(SplitError::NotAnObject)
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeTupleStruct, SplitError> {
        Err(SplitError::NotAnObject)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Variant<List>, SplitError> {
        Ok(Variant { name: variant, value: ValueSerializer.serialize_seq(Some(len))? })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Collector, SplitError> {
        Ok(Collector::default())
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Collector, SplitError> {
        Ok(Collector::default())
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Variant<Object>, SplitError> {
        Ok(Variant { name: variant, value: ValueSerializer.serialize_struct(name, len)? })
    }
}

/// The fields so far, and the name of the next one if the object is a map.
#[derive(Default)]
struct Collector {
    fields: Fields,
    name: Option<String>,
}

impl Collector {
    fn insert<T: ?Sized + Serialize>(&mut self, name: String, value: &T) -> Result<(), SplitError> {
        let text = JsonText::of(value)?;
        let known = self.fields.iter_mut().find(|(known, _)| *known == name);
        match known {
            // As in a `Value`, the last value of a repeated field counts.
            Some((_, known)) => *known = text,
            None => self.fields.push((name, text)),
        }
        Ok(())
    }
}

impl SerializeMap for Collector {
    type Ok = Fields;
    type Error = SplitError;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), SplitError> {
        self.name = Some(match serde_json::to_value(key)? {
            Value::String(name) => name,
            name @ (Value::Bool(_) | Value::Number(_)) => name.to_string(),
            _ => return Err(SplitError::custom("key must be a string")),
        });
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), SplitError> {
        let name = self.name.take();
        let name = name.ok_or_else(|| SplitError::custom("a value of a map has no key"))?;
        self.insert(name, value)
    }

    fn end(self) -> Result<Fields, SplitError> {
        Ok(self.fields)
    }
}

impl SerializeStruct for Collector {
    type Ok = Fields;
    type Error = SplitError;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), SplitError> {
        self.insert(name.to_owned(), value)
    }

    fn end(self) -> Result<Fields, SplitError> {
        Ok(self.fields)
    }
}

/// An enum variant: its name is the only field, and its values are the value of the field.
struct Variant<S> {
    name: &'static str,
    value: S,
}

/// The values of a tuple variant.
type List = <ValueSerializer as Serializer>::SerializeSeq;

/// The values of a struct variant.
type Object = <ValueSerializer as Serializer>::SerializeStruct;

impl SerializeTupleVariant for Variant<List> {
    type Ok = Fields;
    type Error = SplitError;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), SplitError> {
        Ok(SerializeSeq::serialize_element(&mut self.value, value)?)
    }

    fn end(self) -> Result<Fields, SplitError> {
        let list = SerializeSeq::end(self.value)?;
        Ok(vec![(self.name.to_owned(), list.into())])
    }
}

impl SerializeStructVariant for Variant<Object> {
    type Ok = Fields;
    type Error = SplitError;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), SplitError> {
        Ok(SerializeStruct::serialize_field(&mut self.value, name, value)?)
    }

    fn end(self) -> Result<Fields, SplitError> {
        let object = SerializeStruct::end(self.value)?;
        Ok(vec![(self.name.to_owned(), object.into())])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::{prop_assert_eq, proptest};
    use serde::Serialize;
    use serde_json::Value;

    use super::{Fields, fields};
    use crate::json::shapes::shape;

    /// Returns the fields of the `Value` to which a value converts.
    fn fields_of_value(value: &impl Serialize) -> Option<Fields> {
        match serde_json::to_value(value).unwrap() {
            Value::Null => Some(Fields::new()),
            Value::Object(object) => {
                Some(object.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
            _ => None,
        }
    }

    #[derive(Serialize)]
    struct Repeated {
        first: u8,
        second: u8,
        #[serde(flatten)]
        more: BTreeMap<&'static str, u8>,
    }

    #[test]
    fn last_value_of_a_repeated_field_counts() {
        let value = Repeated { first: 1, second: 2, more: BTreeMap::from([("first", 3)]) };
        let found = fields(&value).unwrap();
        assert_eq!(found, fields_of_value(&value));
        let texts: Vec<_> = found.iter().flatten().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["3", "2"]);
    }

    #[test]
    fn keys_of_a_map_are_names() {
        let flags = BTreeMap::from([(true, 1)]);
        assert_eq!(fields(&flags).unwrap(), fields_of_value(&flags));
        let letters = BTreeMap::from([('a', 1), ('b', 2)]);
        assert_eq!(fields(&letters).unwrap(), fields_of_value(&letters));
        let error = fields(&BTreeMap::from([([1], 1)])).unwrap_err();
        assert_eq!(error.to_string(), "key must be a string");
    }

    #[test]
    fn error_of_a_field_is_that_of_a_value() {
        let value = BTreeMap::from([("a", u128::MAX)]);
        let expected = serde_json::to_value(&value).unwrap_err();
        assert_eq!(fields(&value).unwrap_err().to_string(), expected.to_string());
    }

    proptest! {
        #[test]
        fn fields_are_those_of_a_value(shape in shape()) {
            prop_assert_eq!(fields(&shape).unwrap(), fields_of_value(&shape));
        }
    }
}
