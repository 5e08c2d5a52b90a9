//! Values of every form that a type can have for a serializer, for tests.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use serde::{Serialize, Serializer};

/// A value of any form.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Shape {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Wide(i128),
    Single(f32),
    Double(f64),
    Char(char),
    Text(String),
    Bytes(Bytes),
    Unit(()),
    Optional(Option<Box<Shape>>),
    List(Vec<Shape>),
    Pair(Box<Shape>, Box<Shape>),
    Named(BTreeMap<String, Shape>),
    Numbered(BTreeMap<u64, Shape>),
    Variant(Box<Variant>),
    Record(Box<Record>),
}

/// A variant with its name.
#[derive(Debug, Clone, Serialize)]
pub(crate) enum Variant {
    Unit,
    Newtype(Shape),
    Tuple(Shape, Shape),
    Struct { first: Shape, second: Shape },
}

/// A struct with a field that may be left out.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    first: Shape,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<Shape>,
    rest: Rest,
}

/// A struct whose fields include those of a map.
#[derive(Debug, Clone, Serialize)]
struct Rest {
    first: Shape,
    #[serde(flatten)]
    more: BTreeMap<String, Shape>,
}

/// Bytes as a type of their own.
#[derive(Debug, Clone)]
pub(crate) struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// Names of fields, with characters that JSON escapes. None is a name in [`Record`].
const NAMES: &str = "[a-z\"\\\\\n\u{4f60}]{0,3}";

/// Returns values of any form.
pub(crate) fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Shape::Bool),
        any::<i64>().prop_map(Shape::Signed),
        any::<u64>().prop_map(Shape::Unsigned),
        any::<i64>().prop_map(|number| Shape::Wide(number.into())),
        any::<f32>().prop_map(Shape::Single),
        any::<f64>().prop_map(Shape::Double),
        any::<char>().prop_map(Shape::Char),
        ".{0,8}".prop_map(Shape::Text),
        vec(any::<u8>(), 0..4).prop_map(|bytes| Shape::Bytes(Bytes(bytes))),
        Just(Shape::Unit(())),
    ];
    leaf.prop_recursive(3, 32, 4, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            option::of(inner.clone()).prop_map(|shape| Shape::Optional(shape.map(Box::new))),
            vec(inner.clone(), 0..4).prop_map(Shape::List),
            pair.prop_map(|(a, b)| Shape::Pair(Box::new(a), Box::new(b))),
            btree_map(NAMES, inner.clone(), 0..4).prop_map(Shape::Named),
            btree_map(any::<u64>(), inner.clone(), 0..4).prop_map(Shape::Numbered),
            variant(inner.clone()).prop_map(|variant| Shape::Variant(Box::new(variant))),
            record(inner).prop_map(|record| Shape::Record(Box::new(record))),
        ]
    })
}

fn variant(inner: BoxedStrategy<Shape>) -> impl Strategy<Value = Variant> {
    let pair = (inner.clone(), inner.clone());
    prop_oneof![
        Just(Variant::Unit),
        inner.prop_map(Variant::Newtype),
        pair.clone().prop_map(|(first, second)| Variant::Tuple(first, second)),
        pair.prop_map(|(first, second)| Variant::Struct { first, second }),
    ]
}

fn record(inner: BoxedStrategy<Shape>) -> impl Strategy<Value = Record> {
    let more = btree_map(NAMES, inner.clone(), 0..4);
    (inner.clone(), option::of(inner.clone()), inner, more).prop_map(
        |(first, second, inner, more)| Record { first, second, rest: Rest { first: inner, more } },
    )
}

/// Returns the text of a value, or the message of its error, with a `Value` between.
pub(crate) fn through_value(value: &impl Serialize) -> Result<String, String> {
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    Ok(value.to_string())
}
