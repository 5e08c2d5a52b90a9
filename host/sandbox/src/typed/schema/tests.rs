//! Tests of schemas: the form of each type, documentation, and agreement with the conversion.

use serde_json::json;
use wattle_graph::schema::Schema;

use super::*;
use crate::typed::to_val::tests::arguments as convert;

fn named(name: &str, ty: WitType) -> (String, WitType) {
    (name.to_owned(), ty)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn option(ty: WitType) -> WitType {
    WitType::Option(Box::new(ty))
}

/// Returns the schema of a type without documentation.
fn of(ty: WitType) -> Value {
    undocumented(&[named("v", ty)])["properties"]["v"].clone()
}

fn undocumented(params: &[(String, WitType)]) -> Value {
    let none = DocsOfTypes::default();
    of_params(params, &none, &none)
}

fn docs(text: &str, items: &[(&str, &str)]) -> TypeDocs {
    TypeDocs {
        docs: Some(text.to_owned()),
        items: items.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect(),
    }
}

#[test]
fn parameters_are_the_fields_of_an_object() {
    let params = [named("order-id", WitType::String), named("note", option(WitType::String))];
    let expected = json!({
        "type": "object",
        "properties": {
            "order-id": { "type": "string" },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        },
        "required": ["order-id"],
        "additionalProperties": false,
    });
    assert_eq!(undocumented(&params), expected);
}

#[test]
fn number_schemas_have_the_bounds_of_their_type() {
    let byte = json!({ "type": "integer", "minimum": -128, "maximum": 127 });
    assert_eq!(of(WitType::Int(IntType::S8)), byte);
    let wide = of(WitType::Int(IntType::U64));
    assert_eq!((&wide["minimum"], &wide["maximum"]), (&json!(0), &json!(u64::MAX)));
    assert_eq!(wide["type"], json!(["integer", "string"]));
    assert_eq!(of(WitType::Int(IntType::S64))["minimum"], json!(i64::MIN));
    assert_eq!(of(WitType::F32)["maximum"], json!(f64::from(f32::MAX)));
}

#[test]
fn cases_results_and_nested_options_are_alternatives() {
    let cases = vec![
        ("circle".to_owned(), Some(WitType::F64)),
        ("none".to_owned(), None),
        ("all".to_owned(), None),
    ];
    let circle = json!({
        "type": "object", "properties": { "circle": { "type": "number" } },
        "required": ["circle"], "additionalProperties": false,
    });
    let plain = json!({ "type": "string", "enum": ["none", "all"] });
    assert_eq!(of(WitType::Variant(cases.into())), json!({ "anyOf": [plain, circle] }));
    let result = of(WitType::Result { ok: None, err: Some(Box::new(WitType::String)) });
    assert_eq!(result["anyOf"][0]["properties"], json!({ "ok": { "type": "null" } }));
    assert_eq!(result["anyOf"][1]["required"], json!(["err"]));
    let nested = of(option(option(WitType::Bool)));
    assert_eq!(nested["anyOf"][0]["required"], json!(["some"]));
    let flags = of(WitType::Flags(names(&["read", "write"])));
    assert_eq!(flags["items"]["enum"], json!(["read", "write"]));
    assert_eq!(flags["uniqueItems"], json!(true));
}

#[test]
fn documentation_becomes_descriptions() {
    let size = || WitType::Enum(names(&["small", "large"]).into());
    let line = || WitType::Record(vec![named("sku", WitType::String), named("size", size())]);
    let of_line = docs("A line of an order.", &[("sku", "What to pay for.")]);
    let of_size = docs("A size.", &[("small", "Up to 3 kg.")]);
    let mut found = DocsOfTypes::default();
    found.insert(line(), &of_line);
    found.insert(size(), &of_size);
    let schema = of_params(&[named("line", line())], &found, &DocsOfTypes::default());
    let schema = &schema["properties"]["line"];
    assert_eq!(schema["description"], "A line of an order.");
    assert_eq!(schema["properties"]["sku"]["description"], "What to pay for.");
    assert_eq!(schema["properties"]["size"]["description"], "A size.\n\n`small`: Up to 3 kg.");
}

#[test]
fn documentation_of_cases_and_flags_becomes_descriptions() {
    let cases = vec![
        ("circle".to_owned(), Some(WitType::F64)),
        ("none".to_owned(), None),
        ("all".to_owned(), None),
    ];
    let shape = || WitType::Variant(cases.clone().into());
    let rights = || WitType::Flags(names(&["read", "write"]));
    let of_shape = docs("A shape.", &[("circle", "By its radius."), ("all", "The whole plane.")]);
    let of_rights = docs("What is allowed.", &[("write", "Also removes.")]);
    let mut found = DocsOfTypes::default();
    found.insert(shape(), &of_shape);
    found.insert(rights(), &of_rights);
    let params = [named("shape", shape()), named("rights", option(rights()))];
    let schema = of_params(&params, &found, &DocsOfTypes::default());
    let shape = &schema["properties"]["shape"];
    assert_eq!(shape["description"], "A shape.");
    assert_eq!(shape["anyOf"][0]["description"], "`all`: The whole plane.");
    assert_eq!(shape["anyOf"][1]["description"], "By its radius.");
    let rights = &schema["properties"]["rights"]["anyOf"][0];
    assert_eq!(rights["description"], "What is allowed.");
    assert_eq!(rights["items"]["description"], "`write`: Also removes.");
}

#[test]
fn types_without_a_name_in_the_interface_have_the_documentation_of_other_interfaces() {
    let size = || WitType::Enum(names(&["small", "large"]).into());
    let line = || WitType::Record(vec![named("size", size())]);
    let (of_line, of_size) = (docs("A line.", &[]), docs("A size.", &[("small", "Up to 3 kg.")]));
    let (mut own, mut all) = (DocsOfTypes::default(), DocsOfTypes::default());
    own.insert(line(), &of_line);
    all.insert(size(), &of_size);
    let size_in = |own: &DocsOfTypes<'_>| {
        let schema = of_params(&[named("line", line())], own, &all);
        let line = &schema["properties"]["line"];
        assert_eq!(line["description"], "A line.");
        line["properties"]["size"]["description"].clone()
    };
    assert_eq!(size_in(&own), "A size.\n\n`small`: Up to 3 kg.");
    // The interface has its own type of the same structure.
    own.insert_undocumented(size());
    assert_eq!(size_in(&own), Value::Null);
}

/// The host validates arguments against the schema, and models write arguments for the schema.
#[test]
fn schema_and_conversion_accept_the_same_values() {
    let cases = vec![("circle".to_owned(), Some(WitType::F64)), ("none".to_owned(), None)];
    let types = [
        WitType::Bool,
        WitType::Int(IntType::S8),
        WitType::Int(IntType::U64),
        WitType::F32,
        WitType::Char,
        WitType::String,
        WitType::List(Box::new(WitType::Int(IntType::U16))),
        WitType::Tuple(vec![WitType::Bool, WitType::String]),
        WitType::Record(vec![named("a", WitType::Bool), named("b", option(WitType::Bool))]),
        WitType::Variant(cases.into()),
        WitType::Enum(names(&["read", "write"]).into()),
        WitType::Flags(names(&["read", "write"])),
        option(WitType::Bool),
        option(option(WitType::Bool)),
        WitType::Result { ok: Some(Box::new(WitType::Bool)), err: None },
    ];
    let values = [
        json!(null),
        json!(true),
        json!(-128),
        json!(128),
        json!(2.0),
        json!(0.5),
        json!(1e39),
        json!(u64::MAX),
        json!(""),
        json!("a"),
        json!("none"),
        json!("read"),
        json!("12"),
        json!("012"),
        json!([]),
        json!([1, 2]),
        json!([true, "a"]),
        json!(["read", "write"]),
        json!(["read", "read"]),
        json!({}),
        json!({ "a": true }),
        json!({ "a": true, "b": null }),
        json!({ "a": true, "c": 1 }),
        json!({ "circle": 2 }),
        json!({ "none": null }),
        json!({ "some": null }),
        json!({ "some": true }),
        json!({ "ok": true }),
        json!({ "err": null }),
        json!({ "err": 1 }),
    ];
    let mut accepted = 0;
    for ty in types {
        let text = ty.to_string();
        let params = [named("v", ty)];
        let schema = Schema::compile(&undocumented(&params)).unwrap();
        for value in &values {
            let arguments = json!({ "v": value });
            let converted = convert(&params, &arguments);
            let is_valid = schema.violations(&arguments, 1).unwrap().is_empty();
            assert_eq!(converted.is_ok(), is_valid, "{text}, {value}: {converted:?}");
            accepted += u32::from(is_valid);
        }
    }
    assert!(accepted > 30, "{accepted}");
}
