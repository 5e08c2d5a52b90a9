//! A deserializer adapter that accepts only JSON objects for structs.
//!
//! A derived `Deserialize` also accepts an array for a struct and assigns its items in the order of
//! the fields. The OpenAPI document does not allow arrays there, so an array is an error of the
//! client.
//!
//! The adapter covers structs that are deserialized directly. Values that serde buffers first
//! (`untagged`, `flatten`, `tag`) and the content of enum variants bypass the adapter and accept
//! arrays. Such types need a separate `Deserialize` if they must reject arrays.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

/// Accepts only objects for structs, also in lists, maps and other structs, but not in enums and
/// flattened fields.
#[derive(Debug)]
pub struct StructFromMap<T>(pub T);

macro_rules! delegate {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(StructFromMap(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for StructFromMap<D> {
    type Error = D::Error;

    delegate! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(StructFromMap(visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, StructFromMap(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, StructFromMap(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, StructFromMap(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, length, StructFromMap(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, StructFromMap(visitor))
    }
}

macro_rules! visit_values {
    ($($method:ident: $value:ty,)*) => {$(
        fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for StructFromMap<V> {
    type Value = V::Value;

    visit_values! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128,
        visit_f64: f64, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(StructFromMap(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(StructFromMap(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(StructFromMap(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(StructFromMap(object))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, value: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(value)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for StructFromMap<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(StructFromMap(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for StructFromMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(StructFromMap(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for StructFromMap<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(StructFromMap(value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Outer {
        inner: Option<Inner>,
        list: Vec<Inner>,
        pair: (u8, String),
        any: Value,
        named: BTreeMap<String, Inner>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        count: u64,
    }

    fn parse(text: &str) -> Result<Outer, serde_json::Error> {
        Outer::deserialize(StructFromMap(&mut serde_json::Deserializer::from_str(text)))
    }

    #[test]
    fn arrays_are_rejected_for_nested_structs() {
        for text in [
            "[]",
            "[null]",
            r#"{ "inner": [1] }"#,
            r#"{ "list": [[1]] }"#,
            r#"{ "named": { "a": [1] } }"#,
        ] {
            assert!(serde_json::from_str::<Outer>(text).is_ok(), "serde alone accepts {text}");
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains("sequence"), "{text}: {message}");
        }
    }

    #[test]
    fn nested_values_are_deserialized_unchanged() {
        let text = r#"{ "inner": { "count": 1 }, "list": [{ "count": 2 }], "pair": [3, "a"],
            "any": [[1], { "x": [null, 1.5, -2, true, "s"] }], "named": { "b": { "count": 4 } } }"#;
        let parsed = parse(text).unwrap();
        assert_eq!(parsed, serde_json::from_str(text).unwrap());
        assert_eq!(parsed.list, [Inner { count: 2 }]);
        assert_eq!(parse(r#"{ "inner": null }"#).unwrap(), Outer::default());
    }
}
