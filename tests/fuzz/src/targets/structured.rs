//! Structured output in the text of a completion. The first line of the input is a response schema,
//! the rest is the text.
//!
//! A document is valid under the schema, its names and strings are in the text, and the same
//! document is read from a code block.

use std::sync::OnceLock;

use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, FinishReason, Part, ResponseSchema, Usage};
use wattle_graph::schema::Schema;
use wattle_model::read_structured;
use wattle_run::caller_id::CallerId;
use wattle_run::schemas::SchemaCache;

use super::lines;

/// The first of the private-use characters that stand for surrogates while JSON is parsed.
const FIRST_SURROGATE: char = '\u{10f800}';

/// Maximum number of strings of a document that are searched for in the text.
const STRINGS: usize = 1_000;

/// Reads a document, from a complete text and from a truncated one.
pub fn run(bytes: &[u8]) {
    let Some((schema, text)) = lines(bytes) else { return };
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    let wanted = ResponseSchema { name: "output".to_owned(), schema };
    for finish_reason in [FinishReason::Stop, FinishReason::Length] {
        match read(&wanted, text, finish_reason) {
            Ok(document) => check(&wanted, text, &document),
            Err(failure) => {
                let expected = [code::INVALID, code::LIMIT];
                assert!(expected.contains(&failure.code.as_str()), "{failure}");
                assert!(!failure.message.is_empty());
            }
        }
    }
}

fn read(
    wanted: &ResponseSchema,
    text: &str,
    finish_reason: FinishReason,
) -> Result<Value, Failure> {
    static SCHEMAS: OnceLock<SchemaCache> = OnceLock::new();
    let completion = Completion {
        id: None,
        parts: vec![Part::Text(text.to_owned())],
        structured: None,
        finish_reason,
        usage: Usage::default(),
        model: "model".to_owned(),
        attempts: Vec::new(),
    };
    let schemas = SCHEMAS.get_or_init(SchemaCache::default);
    let read = read_structured(CallerId::default(), schemas, "route", wanted, completion);
    let completion = crate::wait(read)?;
    Ok(completion.structured.expect("a text that is accepted has a document"))
}

fn check(wanted: &ResponseSchema, text: &str, document: &Value) {
    // A schema whose patterns only the provider enforces cannot be compiled as a whole.
    if let Ok(schema) = Schema::compile(&wanted.schema) {
        assert_eq!(schema.validate(document), Ok(()), "{document}");
    }
    let has_surrogates = |text: &str| text.contains(|sign: char| sign >= FIRST_SURROGATE);
    // Escapes can stand for any character.
    if !text.contains('\\') && !has_surrogates(text) {
        // A value of an enumeration can be in another case.
        let text = text.to_ascii_lowercase();
        let mut strings = Vec::new();
        collect(document, &mut strings);
        for string in strings {
            assert!(text.contains(&string.to_ascii_lowercase()), "{string:?} is not in the text");
        }
    }
    // A surrogate in a value of the schema is not the value in a text.
    let written = document.to_string();
    if !has_surrogates(&written) {
        let block = format!("Here it is:\n```json\n{written}\n```\nDone.");
        assert_eq!(read(wanted, &block, FinishReason::Stop).as_ref(), Ok(document));
    }
}

/// Collects the first names and strings of a document.
fn collect<'d>(value: &'d Value, strings: &mut Vec<&'d str>) {
    if strings.len() >= STRINGS {
        return;
    }
    match value {
        Value::String(text) => strings.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        Value::Object(fields) => {
            for (name, field) in fields {
                strings.push(name);
                collect(field, strings);
            }
        }
        _ => {}
    }
}
