//! Tests of schemas that are too expensive, and of ordinary schemas.

use serde_json::{Value, json};

use super::{Misfit, Schema, SchemaError};
use crate::limit::SCHEMA_STEPS;

/// Returns definitions each of which refers twice to the next, so that the first one expands to
/// `2^levels` subschemas at one location.
fn doubling(levels: u32, keyword: &str) -> Value {
    let mut defs = serde_json::Map::new();
    defs.insert("d0".into(), json!({ "type": "object" }));
    for level in 1..=levels {
        let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
        defs.insert(format!("d{level}"), json!({ keyword: [below, below] }));
    }
    json!({ "$defs": defs, "$ref": format!("#/$defs/d{levels}") })
}

fn refused(schema: &Value) -> String {
    match Schema::compile(schema).unwrap_err() {
        SchemaError::Limit(exceeded) => exceeded.limit.to_owned(),
        SchemaError::Broken(message) => message,
    }
}

fn limit(schema: &Value, value: &Value) -> String {
    match Schema::compile(schema).unwrap().validate(value).unwrap_err() {
        Misfit::Limit(exceeded) => format!("{}: {}", exceeded.limit, exceeded.message),
        Misfit::Invalid(message) => panic!("{message}"),
    }
}

#[test]
fn formats_are_enforced_only_on_request() {
    let fields = |format: &str| json!({ "properties": { "a": { "format": format } } });
    for (format, fine, odd) in [
        ("email", "jane@example.com", "jane"),
        ("uri", "https://example.com/a", "no address"),
        ("date", "2025-01-15", "2025-13-15"),
        ("date-time", "2025-01-15T10:30:45Z", "yesterday"),
    ] {
        let strict = Schema::compile_with_formats(&fields(format)).unwrap();
        assert!(strict.validate(&json!({ "a": fine })).is_ok(), "{format}");
        assert!(strict.validate(&json!({ "a": odd })).is_err(), "{format}");
        let loose = Schema::compile(&fields(format)).unwrap();
        assert!(loose.validate(&json!({ "a": odd })).is_ok(), "{format}");
    }
}

/// Drafts 6 and 7 permit checks of the content of a text.
#[test]
fn the_content_of_texts_is_not_checked() {
    for draft in ["draft-06", "draft-07"] {
        for (key, value) in [
            ("contentMediaType", "application/json"),
            ("contentEncoding", "base64"),
            ("contentEncoding", "base64url"),
            ("contentEncoding", "base32"),
            ("contentEncoding", "base32hex"),
            ("contentEncoding", "base16"),
        ] {
            let content = json!({
                "$schema": format!("http://json-schema.org/{draft}/schema#"),
                "type": "string",
                key: value,
            });
            let content = Schema::compile(&content).unwrap();
            assert_eq!(content.validate(&json!("not [ that")), Ok(()), "{draft} {key} {value}");
            assert!(content.validate(&json!(1)).is_err(), "{draft} {key} {value}");
        }
    }
}

#[test]
fn doubling_schemas_are_rejected() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for levels in [14, 24, 31] {
            assert_eq!(refused(&doubling(levels, keyword)), "schema_expanded", "{levels}");
        }
        for levels in [36, 1_000] {
            assert_eq!(refused(&doubling(levels, keyword)), "schema_chain", "{levels}");
        }
    }
    assert!(Schema::compile(&doubling(8, "allOf")).unwrap().validate(&json!({})).is_ok());
}

#[test]
fn schema_size_and_nesting_are_limited() {
    let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({ "not": inner }));
    assert_eq!(refused(&nested(70)), "schema_depth");
    assert_eq!(refused(&json!({ "enum": vec![1; 20_000] })), "schema_nodes");
    assert_eq!(refused(&json!({ "title": "x".repeat(300_000) })), "schema_bytes");
    let many = json!({ "prefixItems": vec![true; 9_000] });
    let below = |name: &str| json!({ "properties": { name: many } });
    assert_eq!(refused(&below(&"x".repeat(1_000))), "schema_paths");
    assert!(Schema::compile(&below("x")).is_ok());
    let chain = |length: usize| {
        let defs: serde_json::Map<String, Value> = (0..length)
            .map(|n| (format!("c{n}"), json!({ "$ref": format!("#/$defs/c{}", n + 1) })))
            .chain([(format!("c{length}"), json!({ "type": "string" }))])
            .collect();
        json!({ "$defs": defs, "$ref": "#/$defs/c0" })
    };
    assert_eq!(refused(&chain(100)), "schema_chain");
    assert!(Schema::compile(&chain(20)).unwrap().validate(&json!("x")).is_ok());
}

#[test]
fn references_must_stay_within_the_schema() {
    for reference in ["https://example.invalid/s.json", "other.json", "file:///etc/passwd"] {
        assert!(refused(&json!({ "$ref": reference })).contains("not a part of it"));
    }
    assert!(refused(&json!({ "$ref": "#/$defs/x" })).contains("which does not exist"));
    assert!(refused(&json!({ "allOf": [{ "$ref": "#" }] })).contains("refers to itself"));
    assert!(refused(&json!({ "$dynamicRef": "#x" })).contains("`$dynamicRef`"));
    let embedded = json!({ "properties": { "a": { "$id": "urn:a", "$ref": "#/$defs/b" } } });
    assert!(refused(&embedded).contains("`urn:a`"));
    let named = json!({
        "$id": "urn:root",
        "properties": { "a": { "$ref": "#name" }, "b": { "$ref": "#/$defs/x%20y~1z" } },
        "$defs": { "n": { "$anchor": "name", "type": "string" }, "x y/z": { "type": "null" } },
    });
    let named = Schema::compile(&named).unwrap();
    assert!(named.validate(&json!({ "a": "x", "b": null })).is_ok());
    assert!(named.validate(&json!({ "a": 1 })).is_err());
    assert!(named.validate(&json!({ "b": 1 })).is_err());
}

#[test]
fn patterns_match_in_linear_time() {
    for pattern in ["(?=a)b", r"(a)\1", "(", r"\w{500}{500}"] {
        let message = refused(&json!({ "pattern": pattern }));
        assert!(message.contains("backtracking"), "{message}");
        let keys = json!({ "patternProperties": { pattern: true } });
        assert!(refused(&keys).contains("backtracking"), "{pattern}");
    }
    assert_eq!(refused(&json!({ "pattern": "a".repeat(1_001) })), "pattern_bytes");
    let many: serde_json::Map<String, Value> =
        (0..101).map(|n| (format!("^a{n}"), json!(true))).collect();
    assert_eq!(refused(&json!({ "patternProperties": many })), "schema_patterns");
    let pattern = |escapes: usize| json!({ "pattern": format!("^a{}", r"\d".repeat(escapes)) });
    assert_eq!(refused(&pattern(51)), "pattern_escapes");
    assert!(Schema::compile(&pattern(50)).is_ok());
    let large: serde_json::Map<String, Value> =
        (0..20).map(|n| (format!("^{n}(?:[ab]{{100}}){{130}}"), json!(true))).collect();
    assert_eq!(refused(&json!({ "patternProperties": large })), "schema_patterns_compiled");

    let evil = Schema::compile(&json!({ "pattern": "^(a+)+$" })).unwrap();
    assert!(evil.validate(&json!(format!("{}b", "a".repeat(50_000)))).is_err());
    let large = json!({ "pattern": "^[ab]*a[ab]{900}c" });
    assert!(limit(&large, &json!("ab".repeat(2_000_000))).starts_with("schema_steps"));
    let small = Schema::compile(&large).unwrap().validate(&json!("ab".repeat(500)));
    assert!(matches!(small, Err(Misfit::Invalid(_))), "{small:?}");
}

/// The validator checks them in drafts 4 to 7.
#[test]
fn patterns_of_definitions_that_nothing_refers_to_are_limited() {
    let long = "a".repeat(1_001);
    for unused in [
        json!({ "pattern": long }),
        json!({ "items": [{ "patternProperties": { long.clone(): true } }] }),
    ] {
        assert_eq!(refused(&json!({ "definitions": { "unused": unused } })), "pattern_bytes");
        assert_eq!(
            refused(&json!({ "items": { "$defs": { "unused": unused } } })),
            "pattern_bytes"
        );
    }
    let unused = json!({ "properties": { "pattern": { "default": long } }, "pattern": "^a" });
    assert!(Schema::compile(&json!({ "definitions": { "unused": unused } })).is_ok());
}

#[test]
fn texts_with_the_format_regex_have_a_limited_length_and_count_its_square() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": { "format": "regex" },
    });
    let enforced = Schema::compile(&schema).unwrap();
    for (text, fits) in [
        ("(?<year>[0-9]{4})".to_owned(), true),
        ("(".to_owned(), false),
        ("a".repeat(1_000), true),
        ("a".repeat(1_001), false),
    ] {
        assert_eq!(enforced.validate(&json!([text])).is_ok(), fits, "{text}");
    }
    let texts = |number: usize| json!(vec!["a".repeat(1_000); number]);
    assert!(enforced.validate(&texts(1_000)).is_ok());
    assert!(limit(&schema, &texts(2_000)).starts_with("schema_steps"));

    // Most drafts do not enforce formats.
    let annotation = Schema::compile(&json!({ "format": "regex" })).unwrap();
    assert!(annotation.validate(&json!("a".repeat(1_001))).is_ok());
}

#[test]
fn look_around_at_a_known_position_is_supported() {
    for (pattern, fits, fails) in [
        ("^(?=.*[A-Z])(?=.*[0-9]).{4,}$", "aB3d", "ab3d"),
        (r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", "-1.5", "-."),
        ("^[a-z](?!.*--)[a-z-]*$", "a-b", "a--b"),
        (r"^[A-Z]{2}(?!000)\d{3}$", "AB001", "AB000"),
        ("^(?!draft|test)", "final", "testing"),
        ("^(?:(?!--).)+$", "a-b", "a--b"),
        (r"^\w+(?=@)", "me@home", "me"),
        ("^[a-z]+(?<!b)$", "bca", "cab"),
    ] {
        let schema = Schema::compile(&json!({
            "properties": { "p": { "pattern": pattern }, "q": { "pattern": "^a" } },
            "propertyNames": { "not": { "pattern": "^(?!p|q)" } },
        }))
        .unwrap();
        assert_eq!(schema.validate(&json!({ "p": fits, "q": "a" })), Ok(()), "{pattern}");
        assert_eq!(schema.validate(&json!({ "p": 7 })), Ok(()), "only strings are matched");
        let told = schema.validate(&json!({ "p": fails })).unwrap_err().to_string();
        assert!(told.ends_with(&format!("does not match \"{pattern}\" at `/p`")), "{told}");
        assert!(schema.validate(&json!({ "q": "b" })).is_err());
        assert!(schema.validate(&json!({ "r": "a" })).is_err());
    }
    for pattern in ["^(?=a)b|c", "^a*(?=b)c", r"^(?=(a))\1", "^(?=a)*b", "^(?<=a)b", "^(?=(?!a)b)"]
    {
        let message = refused(&json!({ "pattern": pattern }));
        assert!(message.contains("backtracking"), "{message}");
    }
    let keys = json!({ "patternProperties": { "^(?=a)b": true } });
    assert!(refused(&keys).contains("backtracking"));
    let long = format!("^(?=a){}", "b".repeat(1_000));
    assert_eq!(refused(&json!({ "pattern": long })), "pattern_bytes");
    let many: String = (0..101).map(|n| format!("(?={n})")).collect();
    assert!(refused(&json!({ "pattern": format!("^{many}") })).contains("at most 16 times"));

    let evil = Schema::compile(&json!({ "pattern": "^(?=(a+)+$)(?!(.*b)*c)" })).unwrap();
    assert!(evil.validate(&json!(format!("{}b", "a".repeat(50_000)))).is_err());
    let large = json!({ "pattern": "^(?![ab]*a[ab]{900}c)" });
    assert!(limit(&large, &json!("ab".repeat(2_000_000))).starts_with("schema_steps"));
}

#[test]
fn schemas_that_take_many_steps_for_a_small_value_count_as_expensive() {
    let is_expensive = |schema: &Value| Schema::compile(schema).unwrap().is_expensive();
    let optional = json!({ "anyOf": [{ "$ref": "#/$defs/date" }, { "type": "null" }] });
    let ordinary = json!({
        "$defs": { "date": { "type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$" } },
        "properties": { "from": optional, "to": optional, "kind": { "enum": ["a", "b", "c"] } },
    });
    assert!(!is_expensive(&ordinary));
    assert!(is_expensive(&doubling(8, "allOf")));
    assert!(is_expensive(&json!({ "items": { "enum": (0..100).collect::<Vec<_>>() } })));
    assert!(is_expensive(&json!({ "items": { "pattern": "^[ab]*a[ab]{900}c" } })));
    assert!(is_expensive(&json!({ "patternProperties": { "^[ab]*a[ab]{900}c": true } })));
    assert!(is_expensive(&json!({ "items": { "format": "regex" } })));
}

#[test]
fn memory_of_a_compiled_schema_counts_values_paths_and_patterns() {
    let memory = |schema: &Value| Schema::compile(schema).unwrap().memory();
    let smallest = memory(&json!({}));
    assert!(memory(&json!({ "enum": (0..1_000).collect::<Vec<_>>() })) > smallest + 100_000);
    let named = |name: &str| memory(&json!({ "properties": { name: { "type": "null" } } }));
    assert!(named(&"x".repeat(10_000)) > named("x") + 30_000);
    assert!(memory(&json!({ "pattern": "^a+b+$" })) > smallest + (1 << 20));
}

#[test]
fn recursion_over_deep_values_is_bounded() {
    let schema = json!({ "properties": { "x": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
    let deep = |levels| (0..levels).fold(json!({}), |inner, _| json!({ "x": inner }));
    // The validator caches the results of references, so validation takes few steps.
    assert!(Schema::compile(&schema).unwrap().validate(&deep(90)).is_ok());
    // Describing the violations would take many steps, because the validator then caches no
    // results. The error therefore has no description.
    let typed = json!({
        "type": "object",
        "properties": { "x": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } },
    });
    let wrong = (0..60).fold(json!(1), |inner, _| json!({ "x": inner }));
    let error = Schema::compile(&typed).unwrap().validate(&wrong).unwrap_err();
    assert!(error.to_string().contains("too large to say where"), "{error}");

    // The validator caches neither results for strings nor the results that `unevaluatedProperties`
    // needs.
    let names = json!({
        "additionalProperties": { "$ref": "#" },
        "allOf": [{ "additionalProperties": { "$ref": "#" } }],
    });
    assert!(Schema::compile(&names).unwrap().validate(&deep(90)).is_ok());
    assert!(limit(&schema, &deep(600)).starts_with("schema_recursion"));
}

#[test]
fn steps_of_large_values_are_limited() {
    let items = json!({ "items": { "anyOf": [{ "type": "integer" }, { "type": "string" }] } });
    let list = |length: u64| json!((0..length).collect::<Vec<_>>());
    assert!(Schema::compile(&items).unwrap().validate(&list(100_000)).is_ok());
    let text = limit(&items, &list(SCHEMA_STEPS));
    assert!(text.starts_with("schema_steps") && text.contains("reached at `/"), "{text}");

    let unique = json!({ "uniqueItems": true });
    let schema = Schema::compile(&unique).unwrap();
    assert!(schema.validate(&list(100_000)).is_ok());
    // All of these numbers have the same hash if numbers are hashed as floats.
    let twins: Vec<u64> = (0..1_000).map(|n| (1 << 63) + n).collect();
    assert!(schema.validate(&json!(twins)).is_ok());
    let error = schema.validate(&json!(["a", "b", "a"])).unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");
    let with_items =
        json!({ "type": "array", "items": { "type": "integer" }, "uniqueItems": true });
    assert!(Schema::compile(&with_items).unwrap().validate(&json!([1, 1])).is_err());
    assert!(Schema::compile(&with_items).unwrap().validate(&json!([1, 2])).is_ok());
}

#[test]
fn violations_are_described() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": { "n": { "type": "integer" }, "u": { "anyOf": [{ "type": "null" }] } },
        "required": ["n"],
    }))
    .unwrap();
    let misfit = schema.validate(&json!({ "n": "x" })).unwrap_err().to_string();
    assert_eq!(misfit, "\"x\" is not of type \"integer\" at `/n`");
    let both = schema.violations(&json!({ "u": 1, "n": "x" }), 8).unwrap();
    assert_eq!(both.len(), 2, "{both:?}");
    assert_eq!(schema.violations(&json!({ "u": 1, "n": "x" }), 1).unwrap().len(), 1);
    assert_eq!(schema.violations(&json!({ "n": 1 }), 8), Ok(Vec::new()));
    let long = schema.validate(&json!({ "n": "x".repeat(100_000) })).unwrap_err().to_string();
    assert!(long.len() < 3_000, "{}", long.len());
}

#[test]
fn a_wrong_type_of_a_schema_is_described() {
    let types =
        "the types are: `array`, `boolean`, `integer`, `null`, `number`, `object`, `string`";
    let neither = "is neither a type nor a list of different types; ";
    for (schema, expected) in [
        (
            json!({ "type": "strin" }),
            format!("`strin` at `/type` is not a type; did you mean `string`? {types}"),
        ),
        (
            json!({ "properties": { "a": { "type": ["string", "text"] } } }),
            format!("`text` at `/properties/a/type` is not a type; {types}"),
        ),
        (json!({ "type": 1 }), format!("`type` at `/type` {neither}{types}")),
        (json!({ "type": [] }), format!("`type` at `/type` {neither}{types}")),
        (json!({ "type": ["null", "null"] }), format!("`type` at `/type` {neither}{types}")),
    ] {
        assert_eq!(refused(&schema), expected, "{schema}");
    }
    let other = refused(&json!({ "properties": { "a": { "minLength": "3" } } }));
    assert!(other.contains("`/properties/a/minLength`"), "{other}");
}
