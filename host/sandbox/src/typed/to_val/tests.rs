//! Tests of the conversion from JSON: values of each type, and errors with their paths.

use serde_json::json;
use wattle_run::memory_budget::DEFAULT_BUDGET;

use super::*;
use crate::guest_pool::tests::memory_of;
use crate::memory_meter::MemoryMeter;
use crate::typed::value_error::ValueFault;

/// Converts arguments with as much memory as the guests of a host have by default.
pub(in crate::typed) fn arguments(
    params: &[(String, WitType)],
    arguments: &Value,
) -> Result<Vec<Val>, ValueError> {
    let mut meter = MemoryMeter::new(0, memory_of(DEFAULT_BUDGET.guests_bytes));
    super::arguments(params, arguments, &mut ValuesMemory::new(&mut meter, 1))
}

fn named(name: &str, ty: WitType) -> (String, WitType) {
    (name.to_owned(), ty)
}

fn option(ty: WitType) -> WitType {
    WitType::Option(Box::new(ty))
}

fn list(ty: WitType) -> WitType {
    WitType::List(Box::new(ty))
}

/// Converts a value as the only argument, `v`.
fn convert(ty: WitType, value: Value) -> Result<Val, String> {
    let converted = arguments(&[named("v", ty)], &json!({ "v": value }));
    let values = converted.map_err(|error| error.to_string())?;
    assert_eq!(values.len(), 1);
    values.into_iter().next().ok_or_else(String::new)
}

fn error(ty: WitType, value: Value) -> String {
    convert(ty, value).unwrap_err()
}

#[test]
fn arguments_are_in_the_order_of_the_parameters() {
    let params = [named("sku", WitType::String), named("count", WitType::Int(IntType::U8))];
    let values = arguments(&params, &json!({ "count": 2, "sku": "a" })).unwrap();
    assert_eq!(values, [Val::String("a".to_owned()), Val::U8(2)]);
    let error = |value: Value| arguments(&params, &value).unwrap_err().to_string();
    assert_eq!(error(json!([])), "at $: expected an object, got an array");
    assert_eq!(error(json!({ "sku": "a" })), "at $: the field `count` is missing");
    let unknown = error(json!({ "sku": "a", "count": 1, "skus": [] }));
    let meant = "at $: unknown field `skus`; did you mean `sku`? the fields are `sku`, `count`";
    assert_eq!(unknown, meant);
    let unknown = error(json!({ "sku": "a", "count": 1, "color": [] }));
    assert_eq!(unknown, "at $: unknown field `color`; the fields are `sku`, `count`");
    assert_eq!(arguments(&[], &json!({})), Ok(Vec::new()));
}

#[test]
fn whole_numbers_are_within_the_bounds_of_their_type() {
    let byte = |value| convert(WitType::Int(IntType::S8), value);
    assert_eq!(byte(json!(-128)), Ok(Val::S8(-128)));
    assert_eq!(byte(json!(2.0)), Ok(Val::S8(2)));
    for value in [json!(128), json!(1e3), json!(0.5)] {
        let text = byte(value.clone()).unwrap_err();
        let expected = "at $.v: expected a whole number from -128 to 127, got";
        assert_eq!(text, format!("{expected} `{value}`"));
    }
    let text = byte(json!("1")).unwrap_err();
    assert_eq!(text, "at $.v: expected a whole number, got a string");
}

#[test]
fn wide_numbers_may_be_text() {
    let wide = |value| convert(WitType::Int(IntType::U64), value);
    assert_eq!(wide(json!(u64::MAX)), Ok(Val::U64(u64::MAX)));
    assert_eq!(wide(json!("18446744073709551615")), Ok(Val::U64(u64::MAX)));
    for text in ["18446744073709551616", "-1", "01", "+1", "", "1.0", " 1"] {
        assert!(wide(json!(text)).is_err(), "{text}");
    }
    let signed = |value| convert(WitType::Int(IntType::S64), value);
    assert_eq!(signed(json!("-9223372036854775808")), Ok(Val::S64(i64::MIN)));
}

#[test]
fn floats_accept_whole_numbers() {
    assert_eq!(convert(WitType::F64, json!(3)), Ok(Val::Float64(3.0)));
    assert_eq!(convert(WitType::F32, json!(0.1)), Ok(Val::Float32(0.1)));
    let text = error(WitType::F32, json!(1e39));
    assert_eq!(text, "at $.v: expected a number from -3.4028235e38 to 3.4028235e38");
}

#[test]
fn characters_strings_and_bytes_are_converted() {
    assert_eq!(convert(WitType::Char, json!("é")), Ok(Val::Char('é')));
    assert_eq!(error(WitType::Char, json!("ab")), "at $.v: expected a string of one character");
    let bytes = convert(WitType::Bytes, json!("aGk="));
    assert_eq!(bytes, Ok(Val::List(vec![Val::U8(b'h'), Val::U8(b'i')])));
    assert!(error(WitType::Bytes, json!("a GI")).contains("expected bytes in base64"));
    let text = error(WitType::String, json!(null));
    assert_eq!(text, "at $.v: expected a string, got null");
}

#[test]
fn errors_have_the_path_of_the_value() {
    let line = WitType::Record(vec![named("price", WitType::F64)]);
    let order = WitType::Record(vec![named("lines", list(line))]);
    let lines = json!([{ "price": 1 }, { "price": 2.5 }, { "price": "3" }]);
    let text = error(order, json!({ "lines": lines }));
    assert_eq!(text, "at $.v.lines[2].price: expected a number, got a string");
}

#[test]
fn arrays_for_tuples_must_have_the_length_of_the_tuple() {
    let pair = || WitType::Tuple(vec![WitType::Bool, WitType::String]);
    let made = Val::Tuple(vec![Val::Bool(true), Val::String("a".to_owned())]);
    assert_eq!(convert(pair(), json!([true, "a"])), Ok(made));
    let text = error(pair(), json!([true]));
    assert_eq!(text, "at $.v: expected an array of length 2, got one of length 1");
    assert_eq!(error(pair(), json!([true, 1])), "at $.v[1]: expected a string, got a number");
}

#[test]
fn cases_are_strings_or_objects_with_one_key() {
    let shape = || {
        let cases = vec![("circle".to_owned(), Some(WitType::F64)), ("none".to_owned(), None)];
        WitType::Variant(cases.into())
    };
    let circle = Val::Variant("circle".to_owned(), Some(Box::new(Val::Float64(2.0))));
    assert_eq!(convert(shape(), json!({ "circle": 2 })), Ok(circle));
    assert_eq!(convert(shape(), json!("none")), Ok(Val::Variant("none".to_owned(), None)));
    for (value, expected) in [
        (json!("square"), "at $.v: unknown case `square`; the cases are `circle`, `none`"),
        (
            json!("circle"),
            "at $.v: the case `circle` has a value: pass an object with the key `circle`",
        ),
        (json!({ "none": 1 }), "at $.v: the case `none` has no value: pass the string `none`"),
        (json!({ "circle": "x" }), "at $.v.circle: expected a number, got a string"),
        (json!({}), "at $.v: expected an object with one key, the name of a case"),
        (json!(1), "at $.v: expected a case: a string or an object, got a number"),
    ] {
        assert_eq!(error(shape(), value), expected);
    }
    let names = || vec!["read".to_owned(), "write".to_owned()];
    assert_eq!(
        convert(WitType::Enum(names().into()), json!("read")),
        Ok(Val::Enum("read".to_owned()))
    );
    let text = error(WitType::Enum(names().into()), json!("run"));
    assert_eq!(text, "at $.v: unknown case `run`; the cases are `read`, `write`");
    let flags = Val::Flags(vec!["write".to_owned()]);
    assert_eq!(convert(WitType::Flags(names()), json!(["write"])), Ok(flags));
    let text = error(WitType::Flags(names()), json!(["read", "read"]));
    assert_eq!(text, "at $.v[1]: the flag `read` is given twice");
    let text = error(WitType::Flags(names()), json!(["run"]));
    assert_eq!(text, "at $.v[0]: unknown flag `run`; the flags are `read`, `write`");
}

#[test]
fn absent_fields_and_null_are_options_without_a_value() {
    let record = || WitType::Record(vec![named("note", option(WitType::Bool))]);
    let none = || Ok(Val::Record(vec![("note".to_owned(), Val::Option(None))]));
    assert_eq!(convert(record(), json!({})), none());
    assert_eq!(convert(record(), json!({ "note": null })), none());
    let text = error(record(), json!({ "note": 1 }));
    assert_eq!(text, "at $.v.note: expected a boolean, got a number");
    let nested = || option(option(WitType::Bool));
    let some = |value| Val::Option(Some(Box::new(value)));
    assert_eq!(convert(nested(), json!(null)), Ok(Val::Option(None)));
    assert_eq!(convert(nested(), json!({ "some": null })), Ok(some(Val::Option(None))));
    assert_eq!(convert(nested(), json!({ "some": true })), Ok(some(some(Val::Bool(true)))));
    let text = error(nested(), json!(true));
    assert_eq!(text, "at $.v: expected null or an object with the key `some`");
}

#[test]
fn results_are_objects_with_ok_or_err() {
    let result = || WitType::Result { ok: None, err: Some(Box::new(WitType::String)) };
    assert_eq!(convert(result(), json!({ "ok": null })), Ok(Val::Result(Ok(None))));
    let failed = Val::Result(Err(Some(Box::new(Val::String("no".to_owned())))));
    assert_eq!(convert(result(), json!({ "err": "no" })), Ok(failed));
    let text = error(result(), json!({ "ok": 1 }));
    assert_eq!(text, "at $.v.ok: expected null, got a number");
    for value in [json!({}), json!({ "value": 1 }), json!("ok")] {
        let text = error(result(), value);
        assert_eq!(text, "at $.v: expected an object with the key `ok` or `err`");
    }
}

/// 100,000 empty objects are 300 KB of JSON. Converted to records with 100 absent fields, these
/// objects would take half a gigabyte.
#[test]
fn absent_record_fields_count_toward_the_memory_limit_of_arguments() {
    let fields: Vec<(String, WitType)> =
        (0..100).map(|number| named(&format!("f{number}"), option(WitType::Bool))).collect();
    let params = [named("v", list(WitType::Record(fields)))];
    let error = arguments(&params, &json!({ "v": vec![json!({}); 100_000] })).unwrap_err();
    assert_eq!(error.fault(), ValueFault::Limit, "{error}");
    assert!(arguments(&params, &json!({ "v": vec![json!({}); 100] })).is_ok());
}
