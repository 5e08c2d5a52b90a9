//! Normalization of numbers.

use serde_json::Number;

/// Converts floats without a fraction into integers, so that a number of shares is shown as `100`
/// and not as `100.0`.
pub(crate) fn normalize(value: Option<Number>) -> Option<Number> {
    let value = value?;
    match value.as_f64() {
        Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
            Some(Number::from(float as i64))
        }
        _ => Some(value),
    }
}
