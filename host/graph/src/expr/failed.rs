//! Short and deterministic messages of failed evaluations.
//!
//! The messages of the interpreter contain whole values. Such messages can be large, because the
//! state can be large. They also differ between evaluations, because the interpreter has no fixed
//! order of the keys of an object, but a replay must produce the same failure.

use cel::{ExecutionError, Value};

use crate::limit::CONDITION_MESSAGE_BYTES;

/// Returns the error message for a failed evaluation of an expression.
pub(super) fn told(error: &ExecutionError) -> String {
    use ExecutionError as E;
    let mut text = match error {
        E::UnsupportedTargetType { target } => format!("Invalid argument type: {}", shown(target)),
        E::NotSupportedAsMethod { method, target } => {
            format!("Method '{method}' not supported on {}", shown(target))
        }
        E::UnsupportedKeyType(key) => format!("Unable to use {} as a key", shown(key)),
        E::ValuesNotComparable(one, other) => {
            format!("{} can not be compared to {}", shown(one), shown(other))
        }
        E::UnsupportedBinaryOperator(operator, one, other) => {
            format!("Unsupported binary operator '{operator}': {}, {}", shown(one), shown(other))
        }
        E::UnsupportedIndex(index, value) => {
            format!("Cannot use {} to index {}", shown(index), shown(value))
        }
        E::DivisionByZero(value) => format!("Division by zero of {}", shown(value)),
        E::RemainderByZero(value) => format!("Remainder by zero of {}", shown(value)),
        E::Overflow(operator, one, other) => {
            format!("Overflow from binary operator '{operator}': {}, {}", shown(one), shown(other))
        }
        E::IndexOutOfBounds(index) => format!("Index out of bounds: {}", shown(index)),
        E::DuplicateKey(key) => format!("Failed with repeated key: {}", shown(key)),
        // The messages of all other errors contain no values.
        other => other.to_string(),
    };
    if text.len() > CONDITION_MESSAGE_BYTES {
        text.truncate(text.floor_char_boundary(CONDITION_MESSAGE_BYTES));
        text.push_str("...");
    }
    text
}

/// Formats a scalar; for any other value, which can be large, returns its type.
fn shown(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => format!("{number}u"),
        Value::Float(number) => format!("{number:?}"),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Null => "null".to_owned(),
        other => format!("a value of type {}", other.type_of()),
    }
}
