//! JSON Schema. The first line is a schema, the rest a value. All ways to validate agree, and none
//! reports more violations than requested. The message of a violation is short.

use serde_json::Value;
use wattle_graph::limit::SCHEMA_MESSAGE_BYTES;
use wattle_graph::schema::{Misfit, Schema};

use super::lines;

/// The requested number of violations.
const MOST: usize = 3;

/// Validates a value against a schema.
pub fn run(bytes: &[u8]) {
    let Some((schema, value)) = lines(bytes) else { return };
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    let Ok(compiled) = Schema::compile(&schema) else { return };
    let value = serde_json::from_str(value).unwrap_or(Value::Null);
    let violations = compiled.violations(&value, MOST);
    match compiled.validate(&value) {
        Ok(()) => {
            assert_eq!(violations, Ok(Vec::new()));
            let errors = compiled.errors(&value).expect("the work is allowed");
            assert!(errors.is_some_and(|errors| errors.is_empty()));
        }
        Err(Misfit::Invalid(message)) => {
            // The message has a description and a place.
            assert!((1..=2 * (SCHEMA_MESSAGE_BYTES + 8)).contains(&message.len()), "{message}");
            let violations = violations.expect("the work is allowed");
            assert!((1..=MOST).contains(&violations.len()), "{violations:?}");
        }
        Err(limit) => {
            assert_eq!(violations.map_err(Misfit::Limit), Err(limit));
        }
    }
}
