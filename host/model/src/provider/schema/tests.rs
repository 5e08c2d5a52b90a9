//! Unusual schemas, and their adapted forms.

mod notes;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use wattle_graph::schema::Schema;

use super::*;

fn everyone() -> [&'static Requirements; 3] {
    [&OPENAI, &GEMINI, &ANTHROPIC]
}

/// Checks the adapted form of a schema.
fn check(whom: &[&Requirements], schema: &Value, expected: &Value) {
    for requirements in whom {
        let sent = adapt(schema, requirements).schema;
        assert_eq!(*sent, *expected, "{schema} for {requirements:?}");
    }
}

/// Checks the adapted form of the schema of one property, like [`check`].
fn check_property(whom: &[&Requirements], property: &Value, expected: &Value) {
    let whole = |property: &Value| json!({ "type": "object", "properties": { "p": property } });
    check(whom, &whole(property), &whole(expected));
}

#[test]
fn acceptable_schema_is_sent_unchanged() {
    for schema in [
        json!({ "type": "object", "properties": {} }),
        json!({
            "type": "object",
            "title": "Search",
            "properties": {
                "a": { "type": "string", "description": "d", "minLength": 1, "pattern": "^a+$" },
                "b": { "type": ["integer", "null"], "minimum": 0, "default": null },
                "c": { "type": "array", "minItems": 1, "items": {
                    "type": "object",
                    "properties": { "d": { "type": "boolean", "default": false } },
                    "required": ["d"],
                    "additionalProperties": false,
                } },
                "e": { "anyOf": [{ "type": "string", "enum": ["x", "y"] }, { "type": "null" }] },
                "f": { "$ref": "#/$defs/F", "description": "d" },
                "g": { "type": "object", "additionalProperties": { "type": "number" } },
                "type": { "x-own": { "type": 7 }, "examples": [null] },
            },
            "required": ["a", "c"],
            "additionalProperties": false,
            "$defs": { "F": {
                "type": "object", "properties": { "next": { "$ref": "#/$defs/F" } },
            } },
        }),
    ] {
        for requirements in everyone() {
            let sent = adapt(&schema, requirements);
            assert!(
                matches!(sent.schema, Cow::Borrowed(_)),
                "{} for {requirements:?}",
                sent.schema
            );
            assert_eq!(sent.changes.0, Vec::<String>::new());
        }
    }
}

#[test]
fn root_becomes_an_explicit_object() {
    let nothing = json!({ "type": "object", "properties": {} });
    for schema in [
        json!({}),
        json!({ "type": "object" }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#" }),
        json!({ "type": "OBJECT", "properties": null }),
        json!({ "type": "None" }),
        json!({ "type": ["object", "null"] }),
        json!({ "type": "string", "minLength": 1 }),
        json!({ "type": "array", "items": { "type": "string" } }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
        json!({ "anyOf": [], "required": null }),
        json!(null),
        json!(true),
        json!(false),
        json!("object"),
        json!([]),
    ] {
        check(&everyone(), &schema, &nothing);
    }
    let described = json!({ "type": "object", "properties": {}, "description": "d" });
    check(&everyone(), &json!({ "type": "string", "description": "d" }), &described);
    let schema = json!({ "type": "object", "enum": [{}], "not": { "required": ["a"] } });
    check(&[&OPENAI], &schema, &nothing);
}

#[test]
fn union_at_the_root_becomes_one_object() {
    let kind = |value: &str, field: &str| {
        let mut kind = json!({ "type": "object", "required": ["kind", field] });
        kind["properties"]["kind"] = json!({ "const": value });
        kind["properties"][field] = json!({ "type": "string" });
        kind
    };
    for key in ["anyOf", "oneOf"] {
        let mut schema = json!({ "description": "d" });
        schema[key] = json!([kind("a", "x"), kind("b", "y")]);
        let expected = json!({
            "type": "object",
            "description": "d (needs `x`, or `y`)",
            "properties": {
                "kind": { "enum": ["a", "b"] },
                "x": { "type": "string" },
                "y": { "type": "string" },
            },
            "required": ["kind"],
        });
        check(&everyone(), &schema, &expected);
    }
    let text = json!({ "type": "string" });
    let both = json!({ "properties": { "a": text, "b": text }, "required": ["a"], "allOf": [
        { "properties": { "c": text }, "required": ["c"] },
        { "properties": { "a": { "enum": ["x"] } } },
    ] });
    let expected = json!({
        "type": "object",
        "properties": { "a": { "enum": ["x"] }, "b": text, "c": text },
        "required": ["a", "c"],
    });
    check(&everyone(), &both, &expected);
    let open = json!({ "unevaluatedProperties": false, "oneOf": [
        { "type": "object", "properties": { "a": text, "b": {} }, "required": ["a", "b"] },
        { "type": "object", "properties": { "a": text, "b": text }, "required": ["a", "b"] },
    ] });
    let expected = json!({ "type": "object", "properties": { "a": text, "b": {} },
        "required": ["a", "b"] });
    check(&everyone(), &open, &expected);
    let either = json!({ "type": "object", "properties": { "a": text, "b": text },
        "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    let expected = json!({ "type": "object", "properties": { "a": text, "b": text },
        "description": "needs `a`, or `b`" });
    check(&everyone(), &either, &expected);
    let object = json!({ "type": "object", "properties": { "a": text },
        "required": ["a"], "additionalProperties": false });
    let mut expected = object.clone();
    expected["$defs"] = json!({ "A": object });
    let reference = json!({ "$ref": "#/$defs/A", "$defs": { "A": object } });
    check(&everyone(), &reference, &expected);
}

#[test]
fn references_point_to_definitions() {
    let text = json!({ "type": "string" });
    for nowhere in ["#/$defs/none", "#none", "https://example.com/a.json", "", "#/type", "#/%zz"] {
        let odd = json!({ "$ref": nowhere, "description": "d" });
        check_property(&everyone(), &odd, &json!({ "description": "d" }));
    }
    check_property(&everyone(), &json!({ "$ref": 7 }), &json!({}));
    let places = [("#/properties/a", "a"), ("#/properties/%61", "_61"), ("#anchor", "anchor")];
    for (place, name) in places {
        let schema = json!({ "type": "object", "properties": {
            "a": { "type": "string", "$anchor": "anchor" }, "b": { "$ref": place },
        } });
        let target = format!("#/$defs/{name}");
        let mut expected = json!({
            "type": "object", "properties": { "a": text, "b": { "$ref": target } },
        });
        expected["$defs"][name] = text.clone();
        check(&everyone(), &schema, &expected);
    }
    let schema = json!({
        "$id": "https://example.com/b", "type": "object",
        "properties": { "b": { "$ref": "https://example.com/b#/$defs/B" } }, "$defs": { "B": text },
    });
    let expected = json!({
        "type": "object", "properties": { "b": { "$ref": "#/$defs/B" } }, "$defs": { "B": text },
    });
    check(&everyone(), &schema, &expected);
    let old = json!({
        "type": "object", "properties": { "b": { "$ref": "#/definitions/B" } },
        "definitions": { "B": text },
    });
    check(&[&OPENAI, &ANTHROPIC], &old, &old);
    check(&[&GEMINI], &old, &expected);
}

#[test]
fn reference_loops_are_broken() {
    let tree = |children: &str, required: &Value| {
        let mut tree = json!({ "type": "object", "properties": {
            "children": { "type": "array", "items": { "$ref": children } },
        } });
        if required.is_array() {
            tree["required"] = required.clone();
        }
        tree
    };
    let required = json!(["children"]);
    let schema = tree("#", &required);
    let mut expected = tree("#/$defs/root", &required);
    expected["$defs"] = json!({ "root": tree("#/$defs/root", &required) });
    check(&[&OPENAI, &ANTHROPIC], &schema, &expected);
    expected["$defs"] = json!({ "root": tree("#/$defs/root", &Value::Null) });
    check(&[&GEMINI], &schema, &expected);

    let with = |list: Value| {
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/List" } },
            "$defs": { "List": list } })
    };
    let list = json!({ "type": "array", "items": { "$ref": "#/$defs/List" } });
    check(&[&OPENAI, &ANTHROPIC], &with(list.clone()), &with(list.clone()));
    check(&[&GEMINI], &with(list), &with(json!({ "type": "array", "items": {} })));
    // A direct self-reference.
    let circle = json!({ "$ref": "#" });
    for requirements in everyone() {
        assert_eq!(adapt(&circle, requirements).schema["properties"], json!({}));
    }
}

#[test]
fn invalid_keywords_are_converted_or_removed() {
    let text = json!({ "type": "string" });
    for (odd, expected) in [
        (json!(true), json!({})),
        (json!(null), json!({})),
        (json!("string"), json!({})),
        (json!({ "type": "String" }), text.clone()),
        (json!({ "type": ["string", "any"] }), json!({})),
        (json!({ "type": [] }), json!({})),
        (json!({ "type": "string", "required": true }), text.clone()),
        (json!({ "type": "string", "default": null }), text.clone()),
        (json!({ "type": "string", "title": null, "minLength": "1", "pattern": 5 }), text.clone()),
        (json!({ "type": "string", "$comment": "c", "$id": "a b" }), text.clone()),
        (json!({ "enum": [] }), json!({})),
        (json!({ "enum": "a" }), json!({})),
        (json!({ "enum": ["a", "b", "a"] }), json!({ "enum": ["a", "b"] })),
        (
            json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true }),
            json!({ "type": "number", "exclusiveMinimum": 0 }),
        ),
        (json!({ "maximum": 5, "exclusiveMaximum": false }), json!({ "maximum": 5 })),
        (json!({ "type": "string", "nullable": true }), json!({ "type": ["string", "null"] })),
        (json!({ "type": "string", "nullable": false }), text.clone()),
        (
            json!({ "allOf": [{ "type": "string" }], "nullable": true }),
            json!({ "anyOf": [{ "allOf": [{ "type": "string" }] }, { "type": "null" }] }),
        ),
        (json!({ "anyOf": [] }), json!({})),
        (json!({ "anyOf": [true, text] }), json!({ "anyOf": [{}, text] })),
        (json!({ "oneOf": [false, text] }), json!({ "anyOf": [text] })),
        (json!({ "not": { "type": "String" } }), json!({})),
        (json!({ "if": { "type": "String" }, "then": { "minLength": 1 } }), json!({})),
        (json!({ "dependencies": { "a": { "required": ["b"] } } }), json!({})),
        (
            json!({ "type": "object", "properties": { "a": false, "b": text } }),
            json!({ "type": "object", "properties": { "b": text } }),
        ),
        (
            json!({ "type": "object", "properties": { "a": text }, "required": ["a", "a", 7, "b"] }),
            json!({ "type": "object", "properties": { "a": text, "b": {} }, "required": ["a", "b"] }),
        ),
        (
            json!({ "type": "array", "items": [text, {}], "additionalItems": text }),
            json!({ "type": "array", "prefixItems": [text, {}], "items": text }),
        ),
    ] {
        check_property(&everyone(), &odd, &expected);
    }
}

#[test]
fn arrays_without_items_get_items() {
    let (bare, open) = (json!({ "type": "array" }), json!({ "type": "array", "items": {} }));
    check_property(&[&OPENAI, &GEMINI], &bare, &open);
    check_property(&[&ANTHROPIC], &bare, &bare);
    let either = json!({ "type": ["string", "array"] });
    let open = json!({ "type": ["string", "array"], "items": {} });
    check_property(&[&OPENAI, &GEMINI], &either, &open);
}

#[test]
fn unsupported_formats_and_patterns_move_to_the_description() {
    let whom: [&Requirements; 1] = [&OPENAI];
    for (odd, expected) in [
        (
            json!({ "type": "string", "format": "uri" }),
            json!({ "type": "string", "description": "format: uri" }),
        ),
        (json!({ "type": "integer", "format": "int64" }), json!({ "type": "integer" })),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!({ "type": "string", "format": "date-time" }),
        ),
        (
            json!({ "type": "string", "description": "d", "pattern": "^(?!a)" }),
            json!({ "type": "string", "description": "d (pattern: ^(?!a))" }),
        ),
        (
            json!({ "patternProperties": { "^\\p{L}": {}, "^a": {} } }),
            json!({ "patternProperties": { "^a": {} } }),
        ),
        (json!({ "enum": ["a", 1, null] }), json!({ "enum": ["a", 1, null] })),
    ] {
        check_property(&whom, &odd, &expected);
    }
    let look_around = json!({ "type": "string", "pattern": "^(?!a)" });
    check_property(&[&ANTHROPIC], &look_around, &look_around);
    let broken = json!({ "pattern": "[" });
    check_property(&everyone(), &broken, &json!({ "description": "pattern: [" }));
}

#[test]
fn properties_of_a_removed_pattern_remain_permitted() {
    let odd = json!({ "patternProperties": { "^\\p{L}": {} }, "additionalProperties": false });
    check_property(&[&OPENAI], &odd, &json!({}));
}

#[test]
fn gemini_gets_documented_keywords_only() {
    let whom: [&Requirements; 1] = [&GEMINI];
    for (odd, expected) in [
        (json!({ "const": "a" }), json!({ "enum": ["a"] })),
        (json!({ "const": true }), json!({ "type": "boolean", "description": "one of [true]" })),
        (json!({ "const": null }), json!({ "type": "null" })),
        (
            json!({ "enum": ["a", 1, null] }),
            json!({ "anyOf": [
                { "type": "string", "enum": ["a"] },
                { "type": "number", "enum": [1] },
                { "type": "null" },
            ] }),
        ),
        (
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
            json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] }),
        ),
        (
            json!({ "type": "string", "properties": {}, "required": ["a"], "items": {} }),
            json!({ "type": "string" }),
        ),
        (
            json!({ "type": "object", "required": ["a"] }),
            json!({ "type": "object", "required": ["a"], "properties": { "a": {} } }),
        ),
        (json!({ "format": "uri" }), json!({ "format": "uri" })),
        (
            json!({ "type": "string", "enum": ["", "a"] }),
            json!({ "type": "string", "description": "one of [\"\",\"a\"]" }),
        ),
        (
            json!({ "properties": { "a": {} } }),
            json!({ "type": "object", "properties": { "a": {} } }),
        ),
        (json!({ "items": {} }), json!({ "type": "array", "items": {} })),
        (
            json!({ "type": ["string", "null"], "properties": {} }),
            json!({ "type": ["string", "null"] }),
        ),
    ] {
        check_property(&whom, &odd, &expected);
    }
    let with = |property: Value| json!({ "type": "object", "properties": { "a": property }, "$defs": { "A": {} } });
    let odd = json!({ "$ref": "#/$defs/A", "title": "t", "description": "d", "default": 1 });
    let expected = json!({ "$ref": "#/$defs/A", "description": "d", "default": 1 });
    check(&whom, &with(odd), &with(expected));
}

#[test]
fn property_names_that_anthropic_refuses_become_patterns() {
    let text = json!({ "type": "string" });
    let long = "x".repeat(65);
    let mut schema = json!({
        "type": "object",
        "properties": { "filter[id]": text, "ok.1_a-b": text },
        "required": ["filter[id]"],
        "additionalProperties": false,
    });
    schema["properties"][long.as_str()] = json!({});
    let mut expected = json!({
        "type": "object",
        "properties": { "ok.1_a-b": text },
        "required": ["filter[id]"],
        "additionalProperties": false,
        "patternProperties": { "^filter\\[id\\]$": text },
    });
    expected["patternProperties"][format!("^{long}$")] = json!({});
    check(&[&ANTHROPIC], &schema, &expected);
    check(&[&OPENAI, &GEMINI], &schema, &schema);
}

#[test]
fn size_and_depth_of_adapted_schemas_are_bounded() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "object", "properties": { "x": deep } });
    }
    let mut wide = json!({ "type": "object", "properties": {} });
    for index in 0..25_000 {
        wide["properties"][format!("p{index}")] = json!({ "type": "string" });
    }
    for requirements in everyone() {
        let sent = adapt(&deep, requirements).schema.into_owned();
        let levels = std::iter::successors(Some(&sent), |schema| schema.pointer("/properties/x"));
        assert_eq!(levels.count(), requirements.max_depth + 2);
        assert!(matches!(adapt(&sent, requirements).schema, Cow::Borrowed(_)));
        let sent = adapt(&wide, requirements).schema.into_owned();
        assert_eq!(sent["properties"]["p0"], json!({ "type": "string" }));
        assert_eq!(sent["properties"]["p24999"], json!({}));
    }
}

#[test]
fn valid_arguments_remain_valid() {
    let text = json!({ "type": "string" });
    for (schema, arguments) in [
        (json!({ "required": ["a"] }), json!({ "a": 1, "b": 2 })),
        (json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }), json!({ "b": [1] })),
        (
            json!({ "oneOf": [
                { "properties": { "a": text }, "required": ["a"], "additionalProperties": false },
                { "properties": { "b": text }, "required": ["b"], "additionalProperties": false },
            ] }),
            json!({ "b": "x" }),
        ),
        (
            json!({ "properties": { "a": { "oneOf": [
                { "type": "string", "pattern": "^(?:a|\\p{Lu})$" }, { "enum": ["b", 1] },
            ] } } }),
            json!({ "a": "b" }),
        ),
        (json!({ "properties": { "a": { "not": { "enum": ["a", "a"] } } } }), json!({ "a": "b" })),
        (
            json!({ "properties": { "a": { "type": "string", "format": "uri" } } }),
            json!({ "a": "https://example.com" }),
        ),
        (
            json!({ "properties": { "a b": text }, "additionalProperties": false }),
            json!({ "a b": "x" }),
        ),
        (
            json!({ "properties": { "a": { "items": [text, text], "type": "array" } } }),
            json!({ "a": ["x", "y", 3] }),
        ),
        (json!({ "properties": { "a": { "const": { "b": 1 } } } }), json!({ "a": { "b": 1 } })),
    ] {
        for requirements in everyone() {
            let sent = adapt(&schema, requirements).schema.into_owned();
            let fits = Schema::compile(&sent).unwrap().validate(&arguments);
            assert_eq!(fits, Ok(()), "{arguments} for {sent}");
        }
    }
}

#[test]
fn changes_name_the_paths_of_the_changed_schemas() {
    let list = json!({ "type": "array" });
    let schema = json!({ "properties": { "a": list, "b\n": list }, "required": [] });
    let told = adapt(&schema, &OPENAI).changes.0;
    let expected = [
        "an array without `items` accepts any items at `/properties/a`",
        "an array without `items` accepts any items at `/properties/b `",
        "`type` is set to `object` at the root",
    ];
    assert_eq!(told, expected);
}

/// Keywords and names.
const KEYS: [&str; 38] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "maxContains",
    "enum",
    "const",
    "default",
    "nullable",
    "format",
    "pattern",
    "description",
    "minimum",
    "exclusiveMinimum",
    "minItems",
    "$ref",
    "$dynamicRef",
    "$defs",
    "definitions",
    "$id",
    "$anchor",
    "$schema",
    "dependencies",
    "a",
    "b[]",
    "^\\p{L}",
];

/// Strings with a meaning in a schema.
const TEXTS: [&str; 18] = [
    "object",
    "array",
    "string",
    "number",
    "null",
    "any",
    "a",
    "b[]",
    "uri",
    "date",
    "^(?!a)",
    "(",
    "#",
    "#a",
    "#/$defs/a",
    "#/definitions/a",
    "#/properties/a",
    "#/$defs/a/items",
];

fn odd_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        select(TEXTS.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 5, |inner| {
        let fields = vec((select(KEYS.to_vec()), inner.clone()), 0..6).prop_map(|fields| {
            Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        });
        prop_oneof![1 => vec(inner, 0..4).prop_map(Value::from), 3 => fields]
    })
}

proptest! {
    #[test]
    fn adapting_the_schema_of_any_value_twice_changes_nothing(schema in odd_schema()) {
        for requirements in everyone() {
            let sent = adapt(&schema, requirements).schema.into_owned();
            prop_assert_eq!(&sent["type"], "object");
            prop_assert!(sent["properties"].is_object(), "{}", sent);
            let again = adapt(&sent, requirements);
            prop_assert!(matches!(again.schema, Cow::Borrowed(_)), "{}", again.schema);
        }
    }
}

#[test]
fn subschema_with_several_references_is_copied_once() {
    let mut schema = json!({ "type": "object", "properties": { "big": { "title": "t" } } });
    for (number, spelling) in ["big", "b%69g", "%62ig", "bi%67"].into_iter().enumerate() {
        let reference = json!({ "$ref": format!("#/properties/{spelling}") });
        schema["properties"][format!("a{number}")] = reference;
    }
    for requirements in everyone() {
        let sent = adapt(&schema, requirements).schema.into_owned();
        assert_eq!(sent["$defs"].as_object().unwrap().len(), 1, "{sent}");
    }
    // The subschemas are nested, and a reference leads to each of them.
    let mut inner = json!({ "description": "x".repeat(10_000) });
    for _ in 0..20 {
        inner = json!({ "type": "object", "properties": { "a": inner } });
    }
    let mut nested = json!({ "type": "object", "properties": { "a": inner } });
    for depth in 1..200 {
        let reference = json!({ "$ref": format!("#{}", "/properties/a".repeat(depth)) });
        nested["properties"][format!("r{depth}")] = reference;
    }
    for requirements in everyone() {
        let sent = adapt(&nested, requirements).schema.to_string();
        assert!(sent.len() < 500_000, "{}", sent.len());
    }
}
