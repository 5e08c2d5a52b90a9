//! Converts a result to JSON, and detects empty results and metrics of 0.
//!
//! Integers beyond 2^53 and decimals are texts, so that programs that calculate in doubles lose no
//! digit. Dates and times are ISO 8601, and bytes are base64.

use wattle_plugin::prelude::Value;
use wattle_plugin::prompt::head;
use wattle_plugin::sql::{self, Rows};

use crate::state::Row;

/// Largest integer up to which a double is exact.
const EXACT: u64 = 1 << 53;

/// Words in column names that identify a metric.
const METRIC_WORDS: [&str; 9] =
    ["count", "sum", "avg", "total", "num", "cnt", "ratio", "rate", "percent"];

/// Chinese words that identify a metric. They have no separators around them.
const METRIC_CHARACTERS: [&str; 8] = ["数", "额", "率", "占比", "总", "平均", "均价", "合计"];

/// Converts rows to objects. A repeated column name gets a number as suffix.
pub(crate) fn objects(rows: &Rows) -> Vec<Row> {
    let names = names(rows);
    let object = |values: &Vec<sql::Value>| {
        let cells =
            values.iter().zip(&rows.columns).map(|(it, column)| cell(it, &column.type_name));
        names.iter().cloned().zip(cells).collect()
    };
    rows.values.iter().map(object).collect()
}

/// Returns true if there is no row, or only one row of aggregates over nothing.
pub(crate) fn is_empty(rows: &[Row]) -> bool {
    match rows {
        [] => true,
        [row] => row.values().all(Value::is_null),
        _ => false,
    }
}

/// Returns true if the first row has a metric of 0.
pub(crate) fn has_zero_metric(rows: &[Row]) -> bool {
    let first = rows.first().into_iter().flatten();
    first.into_iter().any(|(name, value)| is_metric(name) && is_zero(value))
}

/// Returns the text that shows a value to people.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the first characters of a text, with an ellipsis if there are more.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    let kept = head(text, characters);
    if kept.len() < text.len() { format!("{kept}…") } else { kept.to_owned() }
}

fn names(rows: &Rows) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in &rows.columns {
        let mut name = column.name.clone();
        let mut number = 2;
        while names.contains(&name) {
            name = format!("{}_{number}", column.name);
            number += 1;
        }
        names.push(name);
    }
    names
}

fn cell(value: &sql::Value, kind: &str) -> Value {
    match value {
        sql::Value::Integer(number) if number.unsigned_abs() > EXACT => number.to_string().into(),
        sql::Value::Other(text) if kind.starts_with("timestamp") => {
            text.replacen(' ', "T", 1).into()
        }
        other => other.to_json(),
    }
}

fn is_metric(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|character: char| !character.is_alphanumeric());
    words.any(|word| METRIC_WORDS.contains(&word))
        || METRIC_CHARACTERS.iter().any(|characters| name.contains(characters))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.parse::<f64>().is_ok_and(|number| number == 0.0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json, params, sql};
    use wattle_plugin::sql::{Column, Rows};

    use super::{has_zero_metric, is_empty, objects};
    use crate::state::Row;

    fn row(value: Value) -> Row {
        let Value::Object(row) = value else { panic!("{value}") };
        row
    }

    #[test]
    fn values_keep_every_digit() {
        let column =
            |name: &str, kind: &str| Column { name: name.to_owned(), type_name: kind.to_owned() };
        let rows = Rows {
            columns: vec![
                column("id", "int8"),
                column("id", "int8"),
                column("price", "numeric"),
                column("at", "timestamp"),
                column("raw", "bytea"),
            ],
            values: vec![vec![
                sql::Value::Integer(1 << 60),
                sql::Value::Integer(-7),
                sql::Value::Other("12.50".to_owned()),
                sql::Value::Other("2025-01-15 10:30:45".to_owned()),
                sql::Value::Bytes(vec![255]),
            ]],
            truncated: false,
        };
        assert_eq!(
            Value::Object(objects(&rows).remove(0)),
            json!({"id": "1152921504606846976", "id_2": -7, "price": "12.50",
                   "at": "2025-01-15T10:30:45", "raw": "/w=="})
        );
    }

    #[test]
    fn aggregates_over_nothing_are_empty() {
        let rows = |values| objects(&Rows::new(["a", "b"], values));
        assert!(is_empty(&[]));
        assert!(is_empty(&rows(vec![params![None::<i64>, None::<i64>]])));
        assert!(!is_empty(&rows(vec![params![None::<i64>, 0]])));
        assert!(!is_empty(&rows(vec![params![None::<i64>, None::<i64>]; 2])));
    }

    #[test]
    fn zero_counts_only_in_a_metric() {
        for (name, value, zero) in [
            ("order_count", json!(0), true),
            ("COUNT(*)", json!(0), true),
            ("total_sales", json!("0.00"), true),
            ("avg", json!(0.0), true),
            ("订单数", json!(0), true),
            ("order_count", json!(3), false),
            ("order_count", json!(null), false),
            ("is_deleted", json!(0), false),
            ("country", json!(0), false),
            ("account", json!(0), false),
        ] {
            let row = row(json!({ name: value }));
            assert_eq!(has_zero_metric(&[row]), zero, "{name} {value}");
        }
        assert!(!has_zero_metric(&[]));
        let later = [row(json!({"count": 1})), row(json!({"count": 0}))];
        assert!(!has_zero_metric(&later), "only the first row counts");
    }
}
