//! The tools for queries: filters, groups, order and pages of the rows of a class.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value, json};

use super::classes::{Class, class};
use super::rows;

/// Default number of rows per page.
const PAGE_SIZE: usize = 20;

/// Operators of conditions.
pub(super) const OPERATORS: &[&str] =
    &["eq", "ne", "like", "in", "not_in", "gt", "gte", "lt", "lte"];

/// Calls a tool.
pub(super) fn call(name: &str, arguments: &Value) -> Result<Value, String> {
    let class_id = arguments["class_id"].as_str().ok_or("`class_id` is missing")?;
    let class = class(class_id).ok_or_else(|| format!("there is no class `{class_id}`"))?;
    let rows = filtered(class, arguments)?;
    match name {
        "mcp.data.query" => query(class, rows, arguments),
        "mcp.data.group-analysis" => group(class, &rows, arguments),
        _ => Err(format!("there is no tool `{name}`")),
    }
}

fn query(class: &Class, mut rows: Vec<Value>, arguments: &Value) -> Result<Value, String> {
    if let Some(field) = arguments["sort_field"].as_str() {
        known(class, field)?;
        sort(&mut rows, field, arguments);
    }
    Ok(page(&rows, arguments))
}

fn group(class: &Class, rows: &[Value], arguments: &Value) -> Result<Value, String> {
    let fields = texts(&arguments["group_by"]);
    for field in &fields {
        known(class, field)?;
    }
    let mut groups: Vec<(Vec<Value>, Vec<&Value>)> = Vec::new();
    for row in rows {
        let key: Vec<Value> = fields.iter().map(|field| row[field].clone()).collect();
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    let metrics = arguments["metrics"].as_array().cloned().unwrap_or_default();
    let mut results = Vec::new();
    for (key, members) in groups {
        let mut result: Map<String, Value> = fields.iter().cloned().zip(key).collect();
        for metric in &metrics {
            let alias = metric["alias"].as_str().unwrap_or("count");
            result.insert(alias.to_owned(), measure(class, &members, metric)?);
        }
        results.push(Value::Object(result));
    }
    if let Some(field) = arguments["sort_by"].as_str() {
        sort(&mut results, field, arguments);
    }
    Ok(page(&results, arguments))
}

fn measure(class: &Class, rows: &[&Value], metric: &Value) -> Result<Value, String> {
    let agg = metric["agg"].as_str().unwrap_or("count");
    if agg == "count" {
        return Ok(json!(rows.len()));
    }
    let field = metric["field"].as_str().ok_or_else(|| format!("`{agg}` needs a field"))?;
    known(class, field)?;
    let numbers: Vec<f64> = rows.iter().filter_map(|row| row[field].as_f64()).collect();
    let sum: f64 = numbers.iter().sum();
    let value = match agg {
        "sum" => sum,
        "avg" => sum / numbers.len().max(1) as f64,
        "min" => numbers.iter().copied().fold(f64::INFINITY, f64::min),
        "max" => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        other => return Err(format!("there is no aggregate `{other}`")),
    };
    Ok(number(value))
}

/// Formats a number. Integers have no fraction; values that are not finite are null.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return json!(value as i64);
    }
    Number::from_f64((value * 100.0).round() / 100.0).map_or(Value::Null, Value::Number)
}

fn filtered(class: &Class, arguments: &Value) -> Result<Vec<Value>, String> {
    let filters = arguments["filters"].as_array().cloned().unwrap_or_default();
    for filter in &filters {
        known(class, filter["field"].as_str().unwrap_or_default())?;
    }
    let fits = |row: &Value| filters.iter().all(|filter| passes(row, filter));
    Ok(rows::of(class.code).into_iter().filter(fits).collect())
}

fn passes(row: &Value, filter: &Value) -> bool {
    let own = &row[filter["field"].as_str().unwrap_or_default()];
    let (there, wanted) = (text(own), &filter["value"]);
    let is_among = || wanted.as_array().into_iter().flatten().any(|value| text(value) == there);
    match filter["op"].as_str().unwrap_or("eq") {
        "like" => there.contains(text(wanted).trim_matches('%')),
        "in" => is_among(),
        "not_in" => !is_among(),
        "ne" => text(wanted) != there,
        "gt" => compare(own, wanted).is_gt(),
        "gte" => compare(own, wanted).is_ge(),
        "lt" => compare(own, wanted).is_lt(),
        "lte" => compare(own, wanted).is_le(),
        _ => text(wanted) == there,
    }
}

/// Returns a value as text, so that numbers equal strings of the same digits.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn known(class: &Class, field: &str) -> Result<(), String> {
    if class.fields.iter().any(|(_, known)| *known == field) {
        return Ok(());
    }
    Err(format!("class `{}` has no field `{field}`", class.code))
}

fn sort(rows: &mut [Value], field: &str, arguments: &Value) {
    rows.sort_by(|one, two| compare(&one[field], &two[field]));
    if arguments["sort_order"] == "desc" {
        rows.reverse();
    }
}

fn compare(one: &Value, two: &Value) -> Ordering {
    match (one.as_f64(), two.as_f64()) {
        (Some(one), Some(two)) => one.total_cmp(&two),
        _ => text(one).cmp(&text(two)),
    }
}

fn page(rows: &[Value], arguments: &Value) -> Value {
    let number = |name: &str, default: usize| {
        arguments[name].as_u64().map_or(default, |number| number as usize).max(1)
    };
    let (page, size) = (number("page", 1), number("page_size", PAGE_SIZE));
    let items: Vec<&Value> = rows.iter().skip((page - 1) * size).take(size).collect();
    json!({ "total": rows.len(), "items": items })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::call;

    fn query(arguments: Value) -> Value {
        call("mcp.data.query", &arguments).unwrap()
    }

    #[test]
    fn filters_select_rows() {
        let by = |op: &str, field: &str, value: Value| {
            let filters = json!([{"field": field, "op": op, "value": value}]);
            query(json!({"class_id": "customer", "filters": filters}))
        };
        let one = by("eq", "phone", json!("13800138000"));
        assert_eq!((&one["total"], &one["items"][0]["name"]), (&json!(1), &json!("张伟")));
        assert_eq!(by("eq", "phone", json!(13_800_138_000_u64))["total"], 1);
        assert_eq!(by("like", "name", json!("%张%"))["total"], 5);
        let level = |name: &str| by("eq", "level", json!(name))["total"].as_u64().unwrap();
        let both = by("in", "level", json!(["金牌", "银牌"]))["total"].as_u64().unwrap();
        assert_eq!(both, level("金牌") + level("银牌"));
        assert_eq!(both + level("普通"), 40);
        assert_eq!(by("ne", "phone", json!("13800138000"))["total"], 39);
        assert_eq!(by("not_in", "level", json!(["金牌", "银牌"]))["total"], level("普通"));
        let after = |op: &str| by(op, "registered_on", json!("2024-06-01"))["total"].as_u64();
        assert_eq!(after("gte").unwrap() + after("lt").unwrap(), 40);
    }

    #[test]
    fn rows_are_sorted_and_paginated() {
        let first = query(json!({"class_id": "order", "page_size": 3, "sort_field": "amount",
                                 "sort_order": "desc"}));
        assert_eq!(
            (first["total"].as_u64(), first["items"].as_array().map(Vec::len)),
            (Some(120), Some(3))
        );
        let amounts: Vec<u64> = first["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|row| row["amount"].as_u64())
            .collect();
        assert!(amounts.is_sorted_by(|one, two| one >= two), "{amounts:?}");
        let last = query(json!({"class_id": "order", "page": 7}));
        assert_eq!(last["items"], json!([]));
    }

    #[test]
    fn groups_have_counts_and_sums() {
        let analysis = |group_by: Value, metrics: Value| {
            call(
                "mcp.data.group-analysis",
                &json!({"class_id": "order", "group_by": group_by,
                "metrics": metrics, "sort_by": "count", "sort_order": "desc", "page_size": 100}),
            )
            .unwrap()
        };
        let metrics = json!([{"agg": "count", "alias": "count"},
                             {"agg": "sum", "field": "amount", "alias": "sum"},
                             {"agg": "avg", "field": "amount", "alias": "avg"}]);
        let groups = analysis(json!(["status"]), metrics.clone());
        assert_eq!(groups["total"], 4);
        let items = groups["items"].as_array().unwrap();
        let total: u64 = items.iter().filter_map(|group| group["count"].as_u64()).sum();
        assert_eq!(total, 120);
        assert!(items.is_sorted_by(|one, two| one["count"].as_u64() >= two["count"].as_u64()));
        let whole = analysis(json!([]), metrics);
        let sum: i64 = items.iter().filter_map(|group| group["sum"].as_i64()).sum();
        assert_eq!(whole["items"][0]["sum"], sum);
    }

    #[test]
    fn errors_name_the_class_and_the_field() {
        let error = |arguments: Value| call("mcp.data.query", &arguments).unwrap_err();
        assert_eq!(error(json!({"class_id": "ship"})), "there is no class `ship`");
        let filters = json!([{"field": "color", "op": "eq", "value": 1}]);
        assert_eq!(
            error(json!({"class_id": "order", "filters": filters})),
            "class `order` has no field `color`"
        );
    }
}
