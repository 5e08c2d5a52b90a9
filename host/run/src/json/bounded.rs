//! Bounded parsing of JSON from guests, services and clients.
//!
//! A parsed value takes up to 36 times the memory of its text: a number in a list has two bytes of
//! text and takes [`VALUE_BYTES`]. [`Bounded`] wraps a deserializer and counts each value before it
//! is created. At the limits of its [`JsonBudget`] it fails, so that a text of any content takes
//! bounded memory and time.
//!
//! Values that serde buffers (`untagged`, `flatten`, `tag`) count when they are buffered, and not
//! again when they are read from the buffer. Values that are skipped take no memory and do not
//! count. A document with the key by which `serde_json` marks raw values is rejected, and no
//! document can be read as a raw value.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::weight::{NAME_BYTES, VALUE_BYTES, weight};

use crate::limit::{JSON_MESSAGE_DEPTH, JSON_VALUES_BYTES};

/// Bytes by which the values of a document take [memory](JsonBudget::with_memory) while they are
/// read. A document with fewer bytes of values takes none, so most documents ask for nothing.
pub const MEMORY_CHUNK_BYTES: u64 = 64 << 10;

/// The key by which `serde_json` marks raw values. The parser of a [`Value`] parses the text in such
/// a field as a further document, without the budget. So the host makes no object with this key.
pub const RAW_VALUE_KEY: &str = "$serde_json::private::RawValue";

/// The limit that a document exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonLimit {
    /// The values and keys take more than this number of bytes, see [`JSON_VALUES_BYTES`].
    #[error("its values take more than {0} bytes of memory")]
    Values(u64),
    /// See [`JSON_MESSAGE_DEPTH`].
    #[error("it is nested deeper than {} levels", JSON_MESSAGE_DEPTH)]
    Depth,
}

impl JsonLimit {
    /// Returns the failure for a document: `limit` for its values, or `invalid` for its depth, like
    /// [`check_depth`](super::check_depth). `what` names the document, and `hint` says what to do.
    #[must_use]
    pub fn to_failure(self, what: &str, hint: &str) -> Failure {
        let message = format!("{what} cannot be read: {self}; {hint}");
        match self {
            Self::Values(allowed) => Failure::new(code::LIMIT, message)
                .with_details(json!({ "limit": "json_values_bytes", "allowed": allowed })),
            Self::Depth => Failure::new(code::INVALID, message),
        }
    }
}

/// Why a text cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON, or not of the wanted type.
    #[error("it is not JSON: {0}")]
    Syntax(serde_json::Error),
    /// The document exceeds a limit.
    #[error(transparent)]
    Limit(#[from] JsonLimit),
}

/// The memory that the values of documents may take, and the memory that they take so far. Several
/// documents share a budget if they are in memory together.
#[derive(Debug)]
pub struct JsonBudget {
    allowed_bytes: u64,
    used: Cell<Used>,
    /// Levels around the value that is being read.
    depth: Cell<usize>,
    /// True while a key of an object is being read.
    is_key: Cell<bool>,
    /// The limit at which the last document failed.
    exceeded: Cell<Option<JsonLimit>>,
    /// The memory that values take before they are created, if it is limited.
    memory: Option<Memory>,
}

/// The memory that values take before they are created.
struct Memory {
    take: Box<dyn Fn(u64) -> bool + Send>,
    /// Bytes of values that need no further memory.
    covered_bytes: Cell<u64>,
    is_refused: Cell<bool>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("covered_bytes", &self.covered_bytes).finish_non_exhaustive()
    }
}

impl Memory {
    /// Takes memory for `bytes` of values, in chunks, of which there are at most `allowed_bytes`.
    /// Returns false if it was refused, now or before.
    fn try_cover(&self, bytes: u64, allowed_bytes: u64) -> bool {
        let covered = self.covered_bytes.get();
        if bytes > covered && !self.is_refused.get() {
            let chunks = bytes.checked_next_multiple_of(MEMORY_CHUNK_BYTES).unwrap_or(u64::MAX);
            let wanted = chunks.min(allowed_bytes);
            self.is_refused.set(!(self.take)(wanted - covered));
            self.covered_bytes.set(wanted);
        }
        !self.is_refused.get()
    }
}

/// The memory of the values so far, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// Values and keys, without their texts.
    values: u64,
    /// The texts of values and keys.
    texts: u64,
}

impl Default for JsonBudget {
    fn default() -> Self {
        Self::new(JSON_VALUES_BYTES)
    }
}

impl JsonBudget {
    /// Creates a budget of bytes for values and keys. The texts of values and keys do not count
    /// against the budget: they are never longer than the text that is parsed.
    #[must_use]
    pub fn new(allowed_bytes: u64) -> Self {
        Self {
            allowed_bytes,
            used: Cell::default(),
            depth: Cell::default(),
            is_key: Cell::default(),
            exceeded: Cell::default(),
            memory: None,
        }
    }

    /// Calls `take` before values take more memory, with the number of bytes. If it returns false,
    /// the document fails, and so does each further one. Values take memory in chunks of
    /// [`MEMORY_CHUNK_BYTES`], the first of which is free, and never more than the budget. Texts
    /// take none: they are never longer than the text that is parsed. The caller gives back what
    /// was taken.
    #[must_use]
    pub fn with_memory(self, take: impl Fn(u64) -> bool + Send + 'static) -> Self {
        let (covered_bytes, is_refused) = (Cell::new(MEMORY_CHUNK_BYTES), Cell::new(false));
        let memory = Some(Memory { take: Box::new(take), covered_bytes, is_refused });
        Self { memory, ..self }
    }

    /// Returns true if a document failed because its values did not get
    /// [memory](Self::with_memory).
    pub fn is_memory_refused(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.is_refused.get())
    }

    /// Parses a document.
    ///
    /// # Errors
    ///
    /// [`JsonError`]. The values of a document that fails no longer count.
    pub fn parse<'t, T: Deserialize<'t>>(&self, text: &'t str) -> Result<T, JsonError> {
        self.read(serde_json::Deserializer::from_str(text))
    }

    /// Parses a document from bytes.
    ///
    /// # Errors
    ///
    /// See [`parse`](Self::parse).
    pub fn parse_slice<'t, T: Deserialize<'t>>(&self, bytes: &'t [u8]) -> Result<T, JsonError> {
        self.read(serde_json::Deserializer::from_slice(bytes))
    }

    fn read<'t, T, R>(&self, mut text: serde_json::Deserializer<R>) -> Result<T, JsonError>
    where
        T: Deserialize<'t>,
        R: serde_json::de::Read<'t>,
    {
        let before = self.used.get();
        let read = T::deserialize(self.bound(&mut text));
        let read = read.and_then(|value| text.end().map(|()| value));
        read.map_err(|error| {
            let exceeded = self.exceeded();
            self.used.set(before);
            exceeded.map_or(JsonError::Syntax(error), JsonError::Limit)
        })
    }

    /// Charges a value that is already in memory, with its texts, to the budget.
    ///
    /// # Errors
    ///
    /// [`JsonLimit::Values`]. The value is then not charged.
    pub fn count(&self, value: &Value) -> Result<(), JsonLimit> {
        let mut used = self.used.get();
        used.values = used.values.saturating_add(weight(value));
        if used.values > self.allowed_bytes {
            return Err(JsonLimit::Values(self.allowed_bytes));
        }
        self.used.set(used);
        Ok(())
    }

    /// Wraps the deserializer of a document, which counts as a value itself.
    pub fn bound<D>(&self, deserializer: D) -> Bounded<'_, D> {
        self.depth.set(0);
        self.exceeded.set(None);
        let mut used = self.used.get();
        used.values = used.values.saturating_add(VALUE_BYTES);
        self.used.set(used);
        Bounded { inner: deserializer, budget: self }
    }

    /// Returns the limit at which the last document failed, or `None` if it did not fail at a
    /// limit. For errors of other types, such as those of a wrapper around [`Bounded`].
    pub fn exceeded(&self) -> Option<JsonLimit> {
        self.exceeded.get()
    }

    /// Resets the budget. The caller no longer holds any of the documents in memory.
    pub fn clear(&self) {
        self.used.set(Used::default());
        self.exceeded.set(None);
    }

    /// Returns the memory that the documents take, in bytes, as `wattle_graph::weight` counts it.
    pub fn weight(&self) -> u64 {
        let Used { values, texts } = self.used.get();
        values.saturating_add(texts)
    }

    fn fail<E: Error>(&self, exceeded: JsonLimit) -> E {
        self.exceeded.set(Some(exceeded));
        E::custom(exceeded)
    }

    fn add_values<E: Error>(&self, bytes: u64) -> Result<(), E> {
        let mut used = self.used.get();
        used.values = used.values.saturating_add(bytes);
        if used.values > self.allowed_bytes {
            return Err(self.fail(JsonLimit::Values(self.allowed_bytes)));
        }
        let memory = self.memory.as_ref();
        if memory.is_some_and(|memory| !memory.try_cover(used.values, self.allowed_bytes)) {
            return Err(E::custom("there is no memory for its values"));
        }
        self.used.set(used);
        Ok(())
    }

    fn add_text(&self, bytes: usize) {
        let mut used = self.used.get();
        used.texts = used.texts.saturating_add(bytes as u64);
        self.used.set(used);
    }

    /// Rejects a text that is a key and is [`RAW_VALUE_KEY`].
    fn check_key<E: Error>(&self, text: &[u8]) -> Result<(), E> {
        if self.is_key.get() && text == RAW_VALUE_KEY.as_bytes() {
            return Err(E::custom(format_args!("the key `{RAW_VALUE_KEY}` is reserved")));
        }
        Ok(())
    }

    /// Runs a closure one level deeper.
    fn nested<T, E: Error>(&self, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let depth = self.depth.get();
        if depth == JSON_MESSAGE_DEPTH {
            return Err(self.fail(JsonLimit::Depth));
        }
        self.depth.set(depth + 1);
        let read = read();
        self.depth.set(depth);
        read
    }
}

/// Wraps a deserializer, and the visitors and accesses that it passes on, so that each value counts
/// against a budget.
#[derive(Debug)]
pub struct Bounded<'b, T> {
    inner: T,
    budget: &'b JsonBudget,
}

macro_rules! as_it_is {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            $($argument: $kind,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            let Self { inner, budget } = self;
            inner.$method($($argument,)* Bounded { inner: visitor, budget })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    as_it_is! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! scalars {
    ($($method:ident: $value:ty,)*) => {$(
        fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

macro_rules! texts {
    ($($method:ident: $value:ty $(, $check:ident)?;)*) => {$(
        fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            $(self.budget.$check::<E>(value.as_bytes())?;)?
            self.budget.add_text(value.len());
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    scalars! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128,
        visit_f64: f64,
    }

    texts! {
        visit_str: &str, check_key; visit_borrowed_str: &'de str, check_key;
        visit_string: String, check_key; visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8]; visit_byte_buf: Vec<u8>;
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        let Self { inner, budget } = self;
        inner.visit_some(Bounded { inner: value, budget })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        let Self { inner, budget } = self;
        inner.visit_newtype_struct(Bounded { inner: value, budget })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        let Self { inner, budget } = self;
        budget.nested(|| inner.visit_seq(Bounded { inner: list, budget }))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<V::Value, A::Error> {
        let Self { inner, budget } = self;
        budget.nested(|| inner.visit_map(Bounded { inner: object, budget }))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, value: A) -> Result<V::Value, A::Error> {
        let Self { inner, budget } = self;
        budget.nested(|| inner.visit_enum(Bounded { inner: value, budget }))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.inner.next_element_seed(Counted { seed, bytes: VALUE_BYTES, budget: self.budget })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(CountedKey { seed, budget: self.budget })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.inner.next_value_seed(Counted { seed, bytes: VALUE_BYTES, budget: self.budget })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'b, A: EnumAccess<'de>> EnumAccess<'de> for Bounded<'b, A> {
    type Error = A::Error;
    type Variant = Bounded<'b, A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self::Variant), A::Error> {
        let Self { inner, budget } = self;
        let (name, variant) = inner.variant_seed(Counted { seed, bytes: NAME_BYTES, budget })?;
        Ok((name, Bounded { inner: variant, budget }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        let Self { inner, budget } = self;
        inner.newtype_variant_seed(Counted { seed, bytes: VALUE_BYTES, budget })
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let Self { inner, budget } = self;
        inner.tuple_variant(length, Bounded { inner: visitor, budget })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let Self { inner, budget } = self;
        inner.struct_variant(fields, Bounded { inner: visitor, budget })
    }
}

/// The seed of a value or of the name of a variant, which takes memory in addition to its text.
struct Counted<'b, T> {
    seed: T,
    bytes: u64,
    budget: &'b JsonBudget,
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Counted<'_, T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<T::Value, D::Error> {
        let Self { seed, bytes, budget } = self;
        budget.add_values::<D::Error>(bytes)?;
        seed.deserialize(Bounded { inner: value, budget })
    }
}

/// The seed of a key of an object, which takes [`NAME_BYTES`] in addition to its text.
struct CountedKey<'b, T> {
    seed: T,
    budget: &'b JsonBudget,
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for CountedKey<'_, T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<T::Value, D::Error> {
        let Self { seed, budget } = self;
        budget.add_values::<D::Error>(NAME_BYTES)?;
        budget.is_key.set(true);
        let read = seed.deserialize(Bounded { inner: key, budget });
        budget.is_key.set(false);
        read
    }
}

#[cfg(test)]
mod tests;
