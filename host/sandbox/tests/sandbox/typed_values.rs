//! Property test of values of typed components. For random types, a function returns JSON that
//! matches the schema unchanged, and JSON with a wrong part is refused with the path of that part.
//!
//! The function has a parameter and a result of one type. Both are passed by their address, so the
//! function returns its argument, whatever the type is.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::Union;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};
use wattle_graph::schema::Schema;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::GuestError;
use wattle_sandbox::WasmSandbox;

use crate::typed::call;
use crate::{guest, load_into, sandbox};

/// Number of random types. The test compiles a component for each type.
const TYPES: u32 = 32;

/// Number of random valid values, and of random invalid values, for each type.
const VALUES: usize = 8;

/// Number of fields that make a parameter so large that it is passed by its address: more than 16.
const PADDING: usize = 17;

/// The largest integer that is a JSON number. Larger integers are strings.
const EXACT_INTEGER: i128 = 1 << 53;

#[derive(Clone, Debug)]
enum Kind {
    Bool,
    Int(&'static str, i128, i128),
    F32,
    F64,
    Char,
    String,
    Bytes,
    List(Box<Kind>),
    Tuple(Vec<Kind>),
    Record(Vec<Kind>),
    Variant(Vec<Option<Kind>>),
    Enum(usize),
    Flags(usize),
    Option(Box<Kind>),
    Result(Option<Box<Kind>>, Option<Box<Kind>>),
}

const INTEGERS: [Kind; 8] = [
    Kind::Int("s8", i8::MIN as i128, i8::MAX as i128),
    Kind::Int("u8", 0, u8::MAX as i128),
    Kind::Int("s16", i16::MIN as i128, i16::MAX as i128),
    Kind::Int("u16", 0, u16::MAX as i128),
    Kind::Int("s32", i32::MIN as i128, i32::MAX as i128),
    Kind::Int("u32", 0, u32::MAX as i128),
    Kind::Int("s64", i64::MIN as i128, i64::MAX as i128),
    Kind::Int("u64", 0, u64::MAX as i128),
];

fn kinds() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        Just(Kind::Bool),
        select(INTEGERS.to_vec()),
        Just(Kind::F32),
        Just(Kind::F64),
        Just(Kind::Char),
        Just(Kind::String),
        Just(Kind::Bytes),
        (1_usize..=4).prop_map(Kind::Enum),
        (1_usize..=32).prop_map(Kind::Flags),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let payload = || prop::option::of(inner.clone());
        prop_oneof![
            inner.clone().prop_map(list_of),
            vec(inner.clone(), 1..4).prop_map(Kind::Tuple),
            vec(inner.clone(), 1..4).prop_map(Kind::Record),
            vec(payload(), 1..4).prop_map(Kind::Variant),
            inner.clone().prop_map(|inner| Kind::Option(Box::new(inner))),
            (payload(), payload())
                .prop_map(|(ok, err)| Kind::Result(ok.map(Box::new), err.map(Box::new))),
        ]
    })
}

fn list_of(item: Kind) -> Kind {
    match item {
        Kind::Int("u8", ..) => Kind::Bytes,
        item => Kind::List(Box::new(item)),
    }
}

impl Kind {
    /// Returns the type in WIT, and adds definitions for types with names.
    fn wit(&self, definitions: &mut Vec<String>) -> String {
        match self {
            Self::Bool => "bool".to_owned(),
            Self::Int(name, ..) => (*name).to_owned(),
            Self::F32 => "f32".to_owned(),
            Self::F64 => "f64".to_owned(),
            Self::Char => "char".to_owned(),
            Self::String => "string".to_owned(),
            Self::Bytes => "list<u8>".to_owned(),
            Self::List(item) => format!("list<{}>", item.wit(definitions)),
            Self::Tuple(items) => {
                let items: Vec<String> = items.iter().map(|it| it.wit(definitions)).collect();
                format!("tuple<{}>", items.join(", "))
            }
            Self::Record(fields) => {
                let field = |(number, kind): (usize, &Self)| {
                    format!("f{number}: {}", kind.wit(definitions))
                };
                let fields: Vec<String> = fields.iter().enumerate().map(field).collect();
                define("record", &fields, definitions)
            }
            Self::Variant(cases) => {
                let case = |(number, kind): (usize, &Option<Self>)| match kind {
                    Some(kind) => format!("c{number}({})", kind.wit(definitions)),
                    None => format!("c{number}"),
                };
                let cases: Vec<String> = cases.iter().enumerate().map(case).collect();
                define("variant", &cases, definitions)
            }
            Self::Enum(cases) => define("enum", &names("e", *cases), definitions),
            Self::Flags(flags) => define("flags", &names("b", *flags), definitions),
            Self::Option(inner) => format!("option<{}>", inner.wit(definitions)),
            Self::Result(ok, err) => {
                let mut of =
                    |kind: &Option<Box<Self>>| kind.as_ref().map(|kind| kind.wit(definitions));
                match (of(ok), of(err)) {
                    (Some(ok), Some(err)) => format!("result<{ok}, {err}>"),
                    (Some(ok), None) => format!("result<{ok}>"),
                    (None, Some(err)) => format!("result<_, {err}>"),
                    (None, None) => "result".to_owned(),
                }
            }
        }
    }

    fn is_option(&self) -> bool {
        matches!(self, Self::Option(_))
    }

    /// Returns values of the type, in the form in which the host writes them.
    fn values(&self) -> BoxedStrategy<Value> {
        match self {
            Self::Bool => any::<bool>().prop_map(Value::from).boxed(),
            Self::Int(_, least, most) => {
                prop_oneof![Just(*least), Just(*most), *least..=*most].prop_map(integer).boxed()
            }
            // Multiples of one eighth are exact as `f32` and have few digits.
            Self::F32 => {
                any::<i16>().prop_map(|number| Value::from(f64::from(number) / 8.0)).boxed()
            }
            Self::F64 => {
                (prop::num::f64::NORMAL | prop::num::f64::ZERO).prop_map(Value::from).boxed()
            }
            Self::Char => any::<char>().prop_map(|only| Value::from(only.to_string())).boxed(),
            Self::String => any::<String>().prop_map(Value::from).boxed(),
            Self::Bytes => {
                vec(any::<u8>(), 0..8).prop_map(|bytes| Value::from(STANDARD.encode(bytes))).boxed()
            }
            Self::List(item) => vec(item.values(), 0..4).prop_map(Value::from).boxed(),
            Self::Tuple(items) => all(items).prop_map(Value::from).boxed(),
            Self::Record(fields) => {
                let optional: Vec<bool> = fields.iter().map(Self::is_option).collect();
                all(fields).prop_map(move |values| record(&optional, values)).boxed()
            }
            Self::Variant(cases) => {
                let case = |(number, kind): (usize, &Option<Self>)| {
                    payload(&format!("c{number}"), kind.as_ref())
                };
                let cases: Vec<_> = cases.iter().enumerate().map(case).collect();
                Union::new(cases).boxed()
            }
            Self::Enum(cases) => select(names("e", *cases)).prop_map(Value::from).boxed(),
            Self::Flags(flags) => {
                subsequence(names("b", *flags), 0..=*flags).prop_map(Value::from).boxed()
            }
            Self::Option(inner) => {
                let is_nested = inner.is_option();
                let some = inner
                    .values()
                    .prop_map(move |value| if is_nested { object("some", value) } else { value });
                prop_oneof![Just(Value::Null), some].boxed()
            }
            Self::Result(ok, err) => {
                prop_oneof![result("ok", ok.as_deref()), result("err", err.as_deref())].boxed()
            }
        }
    }

    /// Returns values with one part of another type, each with the path of that part.
    fn wrong_values(&self) -> BoxedStrategy<Wrong> {
        let here = |value: Value| Just(Wrong { value, path: String::new() });
        match self {
            Self::Bool | Self::String => here(json!(7)).boxed(),
            Self::Int(_, least, most) => {
                let outside = [integer(least - 1), integer(most + 1)].map(here);
                prop_oneof![here(json!(true)), here(json!(0.5)), Union::new(outside)].boxed()
            }
            Self::F32 | Self::F64 | Self::Bytes => here(json!({})).boxed(),
            Self::Char => prop_oneof![here(json!("")), here(json!("ab"))].boxed(),
            Self::Enum(_) | Self::Variant(_) => {
                let own = here(json!("other"));
                let Self::Variant(cases) = self else { return own.boxed() };
                let inner: Vec<_> = cases
                    .iter()
                    .enumerate()
                    .filter_map(|(number, kind)| Some((format!("c{number}"), kind.as_ref()?)))
                    .map(|(name, kind)| within(&name, kind))
                    .collect();
                Union::new([own.boxed()].into_iter().chain(inner)).boxed()
            }
            Self::Flags(_) => {
                let other = Wrong { value: json!(["other"]), path: "[0]".to_owned() };
                prop_oneof![here(json!("b0")), Just(other)].boxed()
            }
            Self::List(item) => {
                let inner =
                    (vec(item.values(), 0..3), item.wrong_values()).prop_map(|(good, bad)| {
                        let path = format!("[{}]{}", good.len(), bad.path);
                        let value = good.into_iter().chain([bad.value]).collect();
                        Wrong { value, path }
                    });
                prop_oneof![here(json!({})), inner].boxed()
            }
            Self::Tuple(items) => {
                let inner = one_wrong(items).prop_map(|(values, index, path)| Wrong {
                    value: values.into(),
                    path: format!("[{index}]{path}"),
                });
                prop_oneof![here(json!([])), inner].boxed()
            }
            Self::Record(fields) => {
                let inner = one_wrong(fields).prop_map(|(values, index, path)| Wrong {
                    value: record(&[], values),
                    path: format!(".f{index}{path}"),
                });
                prop_oneof![here(json!([])), here(json!({ "other": 1 })), inner].boxed()
            }
            Self::Option(inner) if inner.is_option() => {
                prop_oneof![here(json!(1)), within("some", inner)].boxed()
            }
            Self::Option(inner) => inner.wrong_values(),
            Self::Result(ok, err) => {
                let own = prop_oneof![here(json!({})), here(json!("ok"))].boxed();
                let inner = [("ok", ok), ("err", err)]
                    .into_iter()
                    .filter_map(|(key, kind)| Some(within(key, kind.as_deref()?)));
                Union::new([own].into_iter().chain(inner)).boxed()
            }
        }
    }
}

/// A value with one wrong part.
#[derive(Clone)]
struct Wrong {
    value: Value,
    path: String,
}

impl fmt::Debug for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is wrong at `{}`", self.value, self.path)
    }
}

fn define(kind: &str, items: &[String], definitions: &mut Vec<String>) -> String {
    let name = format!("t{}", definitions.len());
    definitions.push(format!("{kind} {name} {{ {} }}", items.join(", ")));
    name
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

fn integer(number: i128) -> Value {
    if number.abs() > EXACT_INTEGER {
        return number.to_string().into();
    }
    i64::try_from(number).expect("the number is exact").into()
}

fn object(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

/// Returns a record. An option without a value has no field.
fn record(optional: &[bool], values: Vec<Value>) -> Value {
    let is_absent = |number: usize, value: &Value| {
        value.is_null() && optional.get(number).copied().unwrap_or_default()
    };
    let fields = values.into_iter().enumerate();
    let fields = fields.filter(|(number, value)| !is_absent(*number, value));
    Value::Object(fields.map(|(number, value)| (format!("f{number}"), value)).collect())
}

fn all(kinds: &[Kind]) -> BoxedStrategy<Vec<Value>> {
    kinds.iter().map(Kind::values).collect::<Vec<_>>().boxed()
}

fn payload(case: &str, kind: Option<&Kind>) -> BoxedStrategy<Value> {
    let case = case.to_owned();
    match kind {
        Some(kind) => kind.values().prop_map(move |value| object(&case, value)).boxed(),
        None => Just(Value::from(case)).boxed(),
    }
}

fn result(key: &'static str, kind: Option<&Kind>) -> BoxedStrategy<Value> {
    match kind {
        Some(kind) => kind.values().prop_map(move |value| object(key, value)).boxed(),
        None => Just(object(key, Value::Null)).boxed(),
    }
}

/// Returns wrong values of a type within an object with one key.
fn within(key: &str, kind: &Kind) -> BoxedStrategy<Wrong> {
    let key = key.to_owned();
    let wrap = move |wrong: Wrong| Wrong {
        value: object(&key, wrong.value),
        path: format!(".{key}{}", wrong.path),
    };
    kind.wrong_values().prop_map(wrap).boxed()
}

/// Returns values of types, one of them wrong, with its index and the path within it.
fn one_wrong(kinds: &[Kind]) -> BoxedStrategy<(Vec<Value>, usize, String)> {
    let indexes = 0..kinds.len();
    let kinds = kinds.to_vec();
    let choose = move |index: usize| {
        (all(&kinds), kinds[index].wrong_values()).prop_map(move |(mut values, wrong)| {
            values[index] = wrong.value;
            (values, index, wrong.path)
        })
    };
    indexes.prop_flat_map(choose).boxed()
}

/// Returns the argument with a value of the type.
fn argument(kind: &Kind, value: &Value) -> Value {
    let mut argument = json!({ "padding": vec![0; PADDING] });
    if !(kind.is_option() && value.is_null()) {
        argument["v"] = value.clone();
    }
    argument
}

async fn check(sandbox: &WasmSandbox, kind: &Kind, good: Vec<Value>, bad: Vec<Wrong>) {
    let mut definitions = Vec::new();
    let ty = kind.wit(&mut definitions);
    let wit = format!(
        "package test:typed;
        interface ops {{
            {}
            record all {{ padding: tuple<{}>, v: {ty} }}
            same: func(x: all) -> all;
        }}
        world tools {{ export ops; }}",
        definitions.join(" "),
        ["u64"; PADDING].join(", ")
    );
    let same = r#"(func (export "test:typed/ops#same") (param i32) (result i32) (local.get 0))"#;
    let plugin = load_into(sandbox, guest::typed(&wit, same)).await.unwrap();
    let schema = Schema::compile(&plugin.info().tools[0].arguments_schema).unwrap();
    for value in good {
        let all = argument(kind, &value);
        let arguments = json!({ "x": all });
        assert_eq!(schema.validate(&arguments), Ok(()), "{ty}: {value}");
        let output = call(plugin.as_ref(), "ops_same", arguments, Limits::default()).await;
        assert_eq!(output.unwrap().structured, Some(all), "{ty}");
    }
    for wrong in bad {
        let arguments = json!({ "x": argument(kind, &wrong.value) });
        match call(plugin.as_ref(), "ops_same", arguments, Limits::default()).await {
            Err(GuestError::Failure(failure)) => {
                let place = format!("at $.x.v{}: ", wrong.path);
                assert!(failure.message.contains(&place), "{ty}: {wrong:?}: {failure}");
            }
            other => panic!("{ty}: {wrong:?}: {other:?}"),
        }
    }
}

/// The random numbers have a fixed seed, so each execution of the test has the same types.
#[test]
fn valid_json_is_returned_unchanged_and_wrong_parts_are_refused_with_their_path() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sandbox = sandbox();
    let cases = kinds().prop_flat_map(|kind| {
        let values = (vec(kind.values(), VALUES), vec(kind.wrong_values(), VALUES));
        (Just(kind), values)
    });
    let config = Config { cases: TYPES, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let run = |(kind, (good, bad)): (Kind, (Vec<Value>, Vec<Wrong>))| {
        runtime.block_on(check(&sandbox, &kind, good, bad));
        Ok(())
    };
    if let Err(failure) = TestRunner::new_with_rng(config, rng).run(&cases, run) {
        panic!("{failure}");
    }
}
