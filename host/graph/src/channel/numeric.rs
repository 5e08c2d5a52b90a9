//! The reducers `sum`, `min` and `max`, for numbers. The sum of integers stays an integer while it
//! fits into 64 bits.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Returns the number in a value.
pub(super) fn parse(value: &Value) -> Result<&Number, String> {
    match value {
        Value::Number(number) => Ok(number),
        _ => Err("the value is not a number".to_owned()),
    }
}

/// Returns the sum of the old value and all writes.
pub(super) fn sum(current: Option<&Value>, writes: &[&Value]) -> Result<Value, String> {
    let numbers = numbers(current, writes)?;
    let whole: Option<i128> =
        numbers.iter().try_fold(0_i128, |sum, number| sum.checked_add(as_integer(number)?));
    if let Some(number) = whole.and_then(Number::from_i128) {
        return Ok(Value::Number(number));
    }
    // The sum of floats depends on the order of the additions. Sorting makes it independent of the
    // order of the writes.
    let mut floats: Vec<f64> = numbers.iter().filter_map(|number| number.as_f64()).collect();
    floats.sort_by(f64::total_cmp);
    let sum = Number::from_f64(floats.iter().sum());
    sum.map(Value::Number).ok_or_else(|| "the sum is too large".to_owned())
}

/// Returns the smallest of the old value and all writes.
pub(super) fn min(current: Option<&Value>, writes: &[&Value]) -> Result<Value, String> {
    pick(current, writes, Ordering::Less)
}

/// Returns the largest of the old value and all writes.
pub(super) fn max(current: Option<&Value>, writes: &[&Value]) -> Result<Value, String> {
    pick(current, writes, Ordering::Greater)
}

fn pick(current: Option<&Value>, writes: &[&Value], wanted: Ordering) -> Result<Value, String> {
    let mut numbers = numbers(current, writes)?.into_iter();
    let first = numbers.next();
    let picked = first.map(|first| {
        numbers.fold(first, |best, next| if compare(next, best) == wanted { next } else { best })
    });
    Ok(picked.map_or(Value::Null, |number| Value::Number(number.clone())))
}

fn numbers<'v>(
    current: Option<&'v Value>,
    writes: &[&'v Value],
) -> Result<Vec<&'v Number>, String> {
    let current = current.filter(|value| !value.is_null());
    current.into_iter().chain(writes.iter().copied()).map(parse).collect()
}

fn as_integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn compare(one: &Number, other: &Number) -> Ordering {
    match (as_integer(one), as_integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
            float(one).total_cmp(&float(other))
        }
    }
}
