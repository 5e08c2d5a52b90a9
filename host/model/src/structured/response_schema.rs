//! The response schema of a call, and the validation of documents against it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jsonschema::ValidationError;
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::limit::SCHEMA_PATTERNS;
use wattle_graph::llm::ResponseSchema;
use wattle_graph::schema::{Formats, Schema, SchemaError};
use wattle_run::caller_id::CallerId;
use wattle_run::schemas::SchemaCache;

use crate::structured::{coerce, extract};

/// Maximum violations in a message: a model repairs a few at a time.
const MAX_VIOLATIONS: usize = 8;

/// Maximum characters of one violation: some violations repeat the whole document.
const MAX_VIOLATION_CHARS: usize = 240;

/// Maximum rounds of coercion: one violation may hide another.
const MAX_COERCION_ROUNDS: usize = 8;

/// Maximum characters of the name of a schema.
const MAX_NAME_CHARS: usize = 64;

/// Number of bytes from which on a text is long enough for its validation to delay other tasks on
/// the same thread. Such a text may have thousands of values, each of which is validated once per
/// round.
const LONG_TEXT_BYTES: usize = 16 << 10;

/// Keywords whose values are no schemas.
const VALUES: [&str; 4] = ["enum", "const", "default", "examples"];

/// Why a completion has no valid document.
#[derive(Debug, Default)]
pub(crate) struct InvalidDocument {
    /// Sentences for the model.
    pub(crate) reason: String,
    /// The invalid document, if there is one.
    pub(crate) document: Option<Value>,
}

/// A response schema with its validator.
pub(crate) struct CompiledSchema<'a> {
    definition: &'a ResponseSchema,
    schema: Arc<Schema>,
}

impl<'a> CompiledSchema<'a> {
    /// Checks and compiles the response schema of a request, as work of `owner`.
    pub(crate) async fn new(
        owner: CallerId,
        definition: &'a ResponseSchema,
        schemas: &SchemaCache,
    ) -> Result<Self, Failure> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = &definition.name;
        if !(1..=MAX_NAME_CHARS).contains(&name.len()) || !name.chars().all(word) {
            return Err(invalid_schema(format!(
                "the response schema's name `{name}` must have 1 to {MAX_NAME_CHARS} characters of \
                 `[a-zA-Z0-9_-]`"
            )));
        }
        if definition.schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(invalid_schema(format!(
                "the root of the response schema `{name}` must be `\"type\": \"object\"`; put \
                 other values into a property"
            )));
        }
        let schema = compile(owner, definition, schemas).await.map_err(|error| match error {
            SchemaError::Limit(exceeded) => {
                exceeded.of(&format!("the response schema `{name}`")).to_failure()
            }
            error => invalid_schema(format!(
                "the response schema `{name}` is not a JSON Schema: {error}"
            )),
        })?;
        Ok(Self { definition, schema })
    }

    /// Returns the response schema of the guest.
    pub(crate) fn definition(&self) -> &'a ResponseSchema {
        self.definition
    }

    /// Returns whether reading a document from a text is long work.
    pub(crate) fn is_long_read(&self, text: &str) -> bool {
        self.schema.is_expensive() || text.len() >= LONG_TEXT_BYTES
    }

    /// Returns the valid document in the text of a completion, after coercion.
    ///
    /// Of several documents the last valid document counts, because drafts and examples come first.
    /// If a malformed document follows, the text is invalid, because the malformed document may be
    /// the intended one. A document without any property of the schema counts only if no other
    /// document is valid. If no document is valid, the result is the error of the last document.
    /// `cut` means that the text ended at its token limit.
    pub(crate) fn parse(&self, text: &str, cut: bool) -> Result<Value, InvalidDocument> {
        let documents = extract::documents(text, cut).into_iter();
        let (aside, meant): (Vec<_>, Vec<_>) = documents
            .partition(|it| it.as_ref().is_ok_and(|document| self.has_no_known_property(document)));
        let mut last = None;
        for document in aside.into_iter().chain(meant).rev() {
            let wrong = match document.map(|document| self.coerce_and_validate(document)) {
                Ok(Ok(document)) => return Ok(document),
                Ok(Err(wrong)) => wrong,
                Err(reason) => {
                    return Err(last.unwrap_or(InvalidDocument { reason, document: None }));
                }
            };
            last = last.or(Some(wrong));
        }
        Err(last.unwrap_or_default())
    }

    /// Returns whether a document has none of the properties that the schema names.
    fn has_no_known_property(&self, document: &Value) -> bool {
        let Value::Object(fields) = document else { return false };
        let named = self.definition.schema.get("properties").and_then(Value::as_object);
        let named = named.filter(|named| !named.is_empty());
        fields.is_empty()
            || named.is_some_and(|named| !fields.keys().any(|name| named.contains_key(name)))
    }

    /// Returns the document if it is valid after coercion.
    fn coerce_and_validate(&self, mut document: Value) -> Result<Value, InvalidDocument> {
        match self.coerce(&mut document) {
            Ok(()) => Ok(document),
            Err(reason) => Err(InvalidDocument { reason, document: Some(document) }),
        }
    }

    fn coerce(&self, document: &mut Value) -> Result<(), String> {
        for _ in 0..MAX_COERCION_ROUNDS {
            let mends: Vec<_> = self.errors(document)?.iter().flat_map(coerce::for_error).collect();
            if mends.is_empty() {
                return Ok(());
            }
            let mut mended = false;
            for mend in mends {
                mended |= mend.apply(document);
            }
            if !mended {
                break;
            }
        }
        let violations = violations(&self.errors(document)?);
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// Returns the violations of a document.
    ///
    /// # Errors
    ///
    /// Returns a message if the document is too large to be validated, or too large for a report of
    /// its violations.
    fn errors<'d>(&'d self, document: &'d Value) -> Result<Vec<ValidationError<'d>>, String> {
        let errors = self.schema.errors(document).map_err(|exceeded| exceeded.to_string())?;
        errors.ok_or_else(|| "the document is invalid, and too large to report where".to_owned())
    }
}

/// Compiles a schema. Removes patterns that need backtracking; only the provider then enforces
/// these patterns.
async fn compile(
    owner: CallerId,
    wanted: &ResponseSchema,
    schemas: &SchemaCache,
) -> Result<Arc<Schema>, SchemaError> {
    let refused = match schemas.compile(owner, &wanted.schema, Formats::OfDraft).await {
        Err(error @ SchemaError::Broken(_)) => error,
        compiled => return compiled,
    };
    let mut found = BTreeSet::new();
    find_patterns(&wanted.schema, &mut found);
    if found.len() as u64 > SCHEMA_PATTERNS {
        return Err(refused);
    }
    let mut left_out = BTreeSet::new();
    for pattern in found {
        let alone = json!({ "pattern": pattern });
        if schemas.compile(owner, &alone, Formats::OfDraft).await.is_err() {
            left_out.insert(pattern);
        }
    }
    if left_out.is_empty() {
        return Err(refused);
    }
    let mut rest = wanted.schema.clone();
    remove_patterns(&mut rest, &left_out);
    let schema = schemas.compile(owner, &rest, Formats::OfDraft).await?;
    let left_out = Vec::from_iter(left_out).join(", ");
    tracing::warn!(
        schema = %wanted.name,
        "completions are not checked against patterns that need backtracking: {left_out}"
    );
    Ok(schema)
}

fn find_patterns(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| find_patterns(item, found)),
        Value::Object(fields) => {
            found.extend(fields.get("pattern").and_then(Value::as_str).map(str::to_owned));
            for (_, field) in fields.iter().filter(|(key, _)| !VALUES.contains(&key.as_str())) {
                find_patterns(field, found);
            }
        }
        _ => {}
    }
}

fn remove_patterns(schema: &mut Value, patterns: &BTreeSet<String>) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| remove_patterns(item, patterns)),
        Value::Object(fields) => {
            let pattern = fields.get("pattern").and_then(Value::as_str);
            if pattern.is_some_and(|pattern| patterns.contains(pattern)) {
                fields.remove("pattern");
            }
            let fields = fields.iter_mut().filter(|(key, _)| !VALUES.contains(&key.as_str()));
            for (_, field) in fields {
                remove_patterns(field, patterns);
            }
        }
        _ => {}
    }
}

fn violations(errors: &[ValidationError<'_>]) -> String {
    let lines = errors.iter().take(MAX_VIOLATIONS).map(|error| {
        let place = error.instance_path().as_str();
        let text: String = error.to_string().chars().take(MAX_VIOLATION_CHARS).collect();
        format!("at `{}`: {text}", if place.is_empty() { "/" } else { place })
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn invalid_schema(message: String) -> Failure {
    Failure::new(code::INVALID, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use wattle_kit::oddity::{change_one, wire};

    use super::*;

    fn wanted(schema: Value) -> ResponseSchema {
        ResponseSchema { name: "answer".into(), schema }
    }

    async fn shape_of(wanted: &ResponseSchema) -> CompiledSchema<'_> {
        CompiledSchema::new(CallerId::default(), wanted, &SchemaCache::default()).await.unwrap()
    }

    #[tokio::test]
    async fn invalid_nulls_are_dropped() {
        let schema = wanted(json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "note": { "type": "string" },
                "maybe": { "type": ["string", "null"] },
                "either": { "anyOf": [
                    { "type": "object", "properties": { "a": { "type": "integer" } } },
                    { "type": "string" },
                ] },
                "list": { "type": "array", "items": { "type": "integer" } },
                "a/b": { "type": "string" },
            },
            "required": ["name"],
        }));
        let shape = shape_of(&schema).await;
        let cases = [
            (json!({"name": "x"}), Some(json!({"name": "x"}))),
            (
                json!({"name": "x", "note": null, "maybe": null, "a/b": null}),
                Some(json!({"name": "x", "maybe": null})),
            ),
            (json!({"name": "x", "either": {"a": null}}), Some(json!({"name": "x", "either": {}}))),
            (json!({"name": null}), None),
            (json!({"note": "x"}), None),
            (json!({"name": "x", "list": [1, null]}), None),
            (json!(["x"]), None),
        ];
        for (document, expected) in cases {
            assert_eq!(shape.parse(&document.to_string(), false).ok(), expected, "{document}");
        }
        let wrong = shape.parse(r#"{"name": 1}"#, false).unwrap_err();
        assert!(wrong.reason.contains("at `/name`"), "{wrong:?}");
        assert_eq!(wrong.document, Some(json!({"name": 1})));
    }

    #[tokio::test]
    async fn last_valid_document_is_the_result() {
        let schema = wanted(json!({
            "type": "object",
            "properties": { "total": { "type": "number" } },
            "required": ["total"],
        }));
        let shape = shape_of(&schema).await;
        let cases = [
            ("Draft: {\"sum\": \"?\"}\nFinal: {\"total\": 3}", true),
            ("As in {\"total\": 1}.\n```json\n{\"total\": \"3\"}\n```\nDone {}", true),
            ("{\"total\": 3}\nhow sure: {\"value\": 1}", true),
            ("The form is {\"total\": <number>}. {\"total\": 3}", true),
            ("[{\"total\": 3}]", true),
            ("\"{\\\"total\\\": 3}\"", true),
            ("{\"total\": 3}\n{\"total\": 3}\n{\"total\":", true),
            // It is not clear which document the model means.
            ("{\"total\": 2}\nno: {\"total\": 3, oops}", false),
            ("{\"total\": 2}\nno: {\"total\": 3, \"no", false),
            ("[{\"total\": 2}, {\"total\": 3}]", false),
            ("{\"of\": {\"total\": 3}, \"no", false),
            ("{\"of\": {\"total\": 3}, oops}", false),
            ("{\"total\": 3,000}", false),
        ];
        for (text, is_taken) in cases {
            let expected = is_taken.then(|| json!(3));
            let total = shape.parse(text, false).ok().map(|document| document["total"].clone());
            assert_eq!(total, expected, "{text}");
        }
        let wrong = shape.parse("{\"a\": 1} {\"b\": 1}", false).unwrap_err();
        assert_eq!(wrong.document, Some(json!({"b": 1})));
        for begun in ["{\"tot", "{", "{\"total\": "] {
            let text = format!("Draft: {{\"total\": 2}}\nFinal: {begun}");
            assert!(shape.parse(&text, true).is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn document_without_any_known_property_is_the_last_choice() {
        let schema = wanted(json!({
            "type": "object",
            "properties": { "city": { "type": "string" } },
        }));
        let shape = shape_of(&schema).await;
        for text in [
            "{\"city\": \"Rome\"}\nhow sure: {\"value\": 0.9}",
            "{\"city\": \"Rome\"} [{\"source\": 1}]",
            "{\"city\": \"Rome\"} {}",
        ] {
            assert_eq!(shape.parse(text, false).unwrap(), json!({"city": "Rome"}), "{text}");
        }
        assert_eq!(shape.parse("so: {\"value\": 1}", false).unwrap(), json!({"value": 1}));
    }

    #[tokio::test]
    async fn unambiguous_violations_are_coerced() {
        let schema = wanted(json!({
            "type": "object",
            "properties": {
                "price": { "type": ["number", "null"] },
                "count": { "type": "integer" },
                "sure": { "type": "boolean" },
                "action": { "$ref": "#/$defs/Action" },
                "maybe": { "anyOf": [{ "$ref": "#/$defs/Action" }, { "type": "null" }] },
                "code": { "type": "string" },
            },
            "$defs": { "Action": { "type": "string", "enum": ["buy", "sell", "Other", "other"] } },
        }));
        let shape = shape_of(&schema).await;
        let cases = [
            (json!({"price": "189.5", "count": " 3 "}), Some(json!({"price": 189.5, "count": 3}))),
            (json!({"sure": "true", "code": "007"}), Some(json!({"sure": true, "code": "007"}))),
            (
                json!({"action": "BUY", "maybe": "Sell"}),
                Some(json!({"action": "buy", "maybe": "sell"})),
            ),
            (json!({"price": "1,200"}), None),
            (json!({"price": "about 3"}), None),
            (json!({"count": "3.5"}), None),
            (json!({"action": "purchase"}), None),
            (json!({"action": "OTHER"}), None),
            (json!({"code": 7}), None),
        ];
        for (document, expected) in cases {
            assert_eq!(shape.parse(&document.to_string(), false).ok(), expected, "{document}");
        }
    }

    /// Returns a schema and a valid document.
    fn trip() -> (ResponseSchema, Value) {
        let stop = json!({ "type": "object", "properties": { "name": { "type": "string" },
            "km": { "type": "number" } }, "required": ["name"] });
        let schema = wanted(json!({
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "count": { "type": "integer" },
                "price": { "type": "number" },
                "sure": { "type": "boolean" },
                "class": { "type": "string", "enum": ["first", "second"] },
                "stops": { "type": "array", "items": stop },
                "note": { "type": ["string", "null"] },
            },
            "required": ["city", "count"],
        }));
        let document = json!({ "city": "Rome", "count": 3, "price": 189.5, "sure": true,
            "class": "first", "stops": [{ "name": "é\u{1f600}", "km": 2 }, { "name": "{b}" }],
            "note": "a [b] \"c\"" });
        (schema, document)
    }

    /// A document with one changed value is invalid, or it is valid and its other fields are kept.
    #[tokio::test]
    async fn changing_one_value_keeps_the_other_fields() {
        let (schema, document) = trip();
        let shape = shape_of(&schema).await;
        proptest!(|((place, variant) in any::<(usize, usize)>(), is_in_prose in any::<bool>())| {
            let mut changed = document.clone();
            let place = change_one(&mut changed, place, variant);
            let mut text = wire(&changed);
            if is_in_prose {
                text = format!("Here it is:\n```json\n{text}\n```\nDone.");
            }
            if let Ok(found) = shape.parse(&text, false) {
                prop_assert!(found["city"].is_string() && found["count"].is_i64(), "{found}");
                let field = place.split('/').nth(1).unwrap_or_default();
                for (name, value) in document.as_object().unwrap() {
                    if name != field {
                        prop_assert_eq!(found.get(name), Some(value), "{} in {}", name, found);
                    }
                }
            }
        });
    }

    #[tokio::test]
    async fn truncated_document_is_invalid() {
        let (schema, document) = trip();
        let shape = shape_of(&schema).await;
        for prose in ["", "Here it is: "] {
            let text = format!("{prose}{document}");
            assert_eq!(shape.parse(&text, true).unwrap(), document);
            for (end, _) in text.char_indices() {
                for cut in [true, false] {
                    let found = shape.parse(&text[..end], cut);
                    assert!(found.is_err(), "{found:?} up to byte {end}");
                }
            }
        }
    }

    #[tokio::test]
    async fn patterns_with_lookahead_are_checked_if_convertible() {
        // Pydantic writes this pattern for decimal numbers.
        let schema = wanted(json!({
            "type": "object",
            "properties": { "p": { "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$" } },
        }));
        let shape = shape_of(&schema).await;
        assert!(shape.parse(r#"{"p": "-1.50"}"#, false).is_ok());
        let wrong = shape.parse(r#"{"p": "-."}"#, false).unwrap_err();
        assert!(wrong.reason.starts_with("at `/p`"), "{wrong:?}");
        // Only the provider enforces a pattern that cannot be converted.
        let schema = wanted(json!({
            "type": "object",
            "properties": { "p": { "type": "string", "pattern": r"(?=.*\d)(?=.*[A-Z]).{8,}" } },
        }));
        let shape = shape_of(&schema).await;
        assert!(shape.parse(r#"{"p": "any"}"#, false).is_ok());
        assert!(shape.parse(r#"{"p": 1}"#, false).is_err());
    }

    #[tokio::test]
    async fn equal_schemas_are_compiled_once() {
        let (owner, schemas) = (CallerId::default(), SchemaCache::default());
        for pattern in ["^a+$", r"(?=.*\d)a"] {
            let property = json!({ "pattern": pattern });
            let schema = wanted(json!({ "type": "object", "properties": { "p": property } }));
            let one = CompiledSchema::new(owner, &schema, &schemas).await.unwrap();
            let other = CompiledSchema::new(owner, &schema, &schemas).await.unwrap();
            assert!(Arc::ptr_eq(&one.schema, &other.schema), "{pattern}");
        }
    }

    #[tokio::test]
    async fn unusable_schemas_are_refused() {
        let refuse = async |name: &str, schema: Value| {
            let schema = ResponseSchema { name: name.into(), schema };
            let schemas = SchemaCache::default();
            let refused = CompiledSchema::new(CallerId::default(), &schema, &schemas).await.err();
            refused.map(|failure| failure.message).unwrap_or_default()
        };
        assert!(refuse("a b", json!({"type": "object"})).await.contains("name `a b`"));
        assert!(refuse("", json!({"type": "object"})).await.contains("1 to 64"));
        assert!(refuse("a", json!({"type": "array"})).await.contains("root"));
        let odd = json!({"type": "object", "properties": 1});
        assert!(refuse("a", odd).await.contains("JSON Schema"));
    }
}
