//! `records/search`: the records that match a filter, sorted and paginated.
//!
//! Dates are compared by day in the time zone of the table. A text is returned as an array of
//! segments, a single choice as a string.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::{Map, Value, json};

use super::{COLUMNS, success};
use crate::standin::call::Call;

/// The time zone of the table.
const ZONE: &str = "Asia/Shanghai";

/// Maximum and default number of records in a page.
const PAGE_SIZES: (usize, usize) = (500, 20);

/// Columns that hold free text.
const TEXTS: [&str; 1] = ["备注"];

const VALIDATION: i64 = 99_992_402;
const UNKNOWN_FIELD: i64 = 1_254_045;
const INVALID_FILTER: i64 = 1_254_018;

/// Returns one page of the records.
pub(super) fn search(records: &[Value], call: &Call) -> Result<Value, i64> {
    let body = call.json.as_ref().and_then(Value::as_object).ok_or(VALIDATION)?;
    let names = names(body)?;
    let conditions = conditions(body)?;
    let mut found: Vec<&Value> = Vec::new();
    for record in records {
        let fits = conditions.iter().map(|condition| fits(record, condition));
        if fits.collect::<Result<Vec<bool>, i64>>()?.into_iter().all(|fits| fits) {
            found.push(record);
        }
    }
    sort(&mut found, body)?;
    let size = number(call, "page_size")?.unwrap_or(PAGE_SIZES.1);
    if !(1..=PAGE_SIZES.0).contains(&size) {
        return Err(VALIDATION);
    }
    let start = number(call, "page_token")?.unwrap_or(0);
    let page = found.iter().skip(start).take(size);
    let items: Vec<Value> = page.map(|record| shown(record, names.as_deref())).collect();
    let end = start + items.len();
    let mut data = json!({"items": items, "total": found.len(), "has_more": end < found.len()});
    if end < found.len() {
        data["page_token"] = json!(end.to_string());
    }
    Ok(success(data))
}

fn number(call: &Call, name: &str) -> Result<Option<usize>, i64> {
    call.parameter(name).map(|text| text.parse().map_err(|_| VALIDATION)).transpose()
}

/// Returns the requested columns, or `None` for all.
fn names(body: &Map<String, Value>) -> Result<Option<Vec<String>>, i64> {
    let Some(names) = body.get("field_names") else { return Ok(None) };
    let names = names.as_array().ok_or(VALIDATION)?;
    let name = |name: &Value| column(name.as_str().unwrap_or_default()).map(str::to_owned);
    names.iter().map(name).collect::<Result<_, _>>().map(Some)
}

fn column(name: &str) -> Result<&str, i64> {
    let known = COLUMNS.iter().any(|(column, _)| *column == name);
    known.then_some(name).ok_or(UNKNOWN_FIELD)
}

fn conditions(body: &Map<String, Value>) -> Result<Vec<Value>, i64> {
    let Some(filter) = body.get("filter") else { return Ok(Vec::new()) };
    if filter.get("conjunction") != Some(&json!("and")) {
        return Err(INVALID_FILTER);
    }
    filter.get("conditions").and_then(Value::as_array).cloned().ok_or(INVALID_FILTER)
}

/// Checks a condition. Only conditions on dates are supported.
fn fits(record: &Value, condition: &Value) -> Result<bool, i64> {
    let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = column(text("field_name"))?;
    let [Value::String(kind), Value::String(date_ms)] =
        condition.get("value").and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
    else {
        return Err(INVALID_FILTER);
    };
    if name != "日期" || kind != "ExactDate" {
        return Err(INVALID_FILTER);
    }
    let wanted = day(date_ms.parse().map_err(|_| INVALID_FILTER)?)?;
    let Some(date_ms) = record["fields"][name].as_i64() else { return Ok(false) };
    let date = day(date_ms)?;
    match text("operator") {
        "is" => Ok(date == wanted),
        "isGreater" => Ok(date > wanted),
        "isLess" => Ok(date < wanted),
        // `isGreaterEqual` and `isLessEqual` are invalid for dates.
        _ => Err(INVALID_FILTER),
    }
}

fn day(date_ms: i64) -> Result<Date, i64> {
    let instant = Timestamp::from_millisecond(date_ms).map_err(|_| INVALID_FILTER)?;
    let zone = TimeZone::get(ZONE).map_err(|_| INVALID_FILTER)?;
    Ok(instant.to_zoned(zone).date())
}

fn sort(found: &mut [&Value], body: &Map<String, Value>) -> Result<(), i64> {
    let Some(sorts) = body.get("sort").and_then(Value::as_array) else { return Ok(()) };
    for sort in sorts.iter().rev() {
        let name = column(sort.get("field_name").and_then(Value::as_str).unwrap_or_default())?;
        let key = |record: &&Value| record["fields"][name].as_i64().unwrap_or_default();
        if sort.get("desc") == Some(&Value::Bool(true)) {
            found.sort_by_key(|record| std::cmp::Reverse(key(record)));
        } else {
            found.sort_by_key(key);
        }
    }
    Ok(())
}

fn shown(record: &Value, names: Option<&[String]>) -> Value {
    let mut fields = record["fields"].as_object().cloned().unwrap_or_default();
    fields.retain(|name, _| names.is_none_or(|names| names.contains(name)));
    for (name, value) in &mut fields {
        if TEXTS.contains(&name.as_str()) {
            *value = json!([{"text": value, "type": "text"}]);
        }
    }
    json!({"record_id": record["record_id"], "fields": fields})
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Call, search};

    /// 2025-01-14, 00:00 in Shanghai.
    const DAY_MS: i64 = 1_736_784_000_000;

    fn records() -> Vec<Value> {
        let record = |at: i64| {
            let fields = json!({"备注": "打车", "分类": "交通", "日期": DAY_MS + at * 3_600_000});
            json!({"record_id": format!("rec{at}"), "fields": fields})
        };
        [-1, 0, 23, 24].map(record).to_vec()
    }

    fn ask(body: &Value, query: &[(&str, &str)]) -> Result<Value, i64> {
        let mut call = Call::sample("POST", "/", body);
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        call.query.extend(query);
        search(&records(), &call).map(|answer| answer["data"].clone())
    }

    fn filter(operator: &str, value: &Value) -> Value {
        let condition = json!({"field_name": "日期", "operator": operator, "value": value});
        json!({"filter": {"conjunction": "and", "conditions": [condition]},
            "sort": [{"field_name": "日期", "desc": true}]})
    }

    fn ids(data: &Value) -> Vec<&str> {
        data["items"].as_array().unwrap().iter().filter_map(|it| it["record_id"].as_str()).collect()
    }

    #[test]
    fn dates_are_compared_by_day() {
        // Noon of the day.
        let noon = json!(["ExactDate", (DAY_MS + 43_200_000).to_string()]);
        for (operator, expected) in
            [("is", vec!["rec23", "rec0"]), ("isGreater", vec!["rec24"]), ("isLess", vec!["rec-1"])]
        {
            assert_eq!(ids(&ask(&filter(operator, &noon), &[]).unwrap()), expected, "{operator}");
        }
        assert_eq!(ask(&filter("isGreaterEqual", &noon), &[]), Err(1_254_018));
        assert_eq!(ask(&filter("is", &json!([DAY_MS])), &[]), Err(1_254_018));
    }

    #[test]
    fn pages_follow_one_another() {
        let first = ask(&json!({"field_names": ["备注"]}), &[("page_size", "3")]).unwrap();
        assert_eq!((ids(&first).len(), &first["has_more"]), (3, &json!(true)));
        let text = json!([{"text": "打车", "type": "text"}]);
        assert_eq!(first["items"][0]["fields"], json!({ "备注": text }));
        let token = first["page_token"].as_str().unwrap();
        let last = ask(&json!({}), &[("page_size", "3"), ("page_token", token)]).unwrap();
        assert_eq!((ids(&last), &last["has_more"]), (vec!["rec24"], &json!(false)));
        assert_eq!(ask(&json!({}), &[("page_size", "501")]), Err(99_992_402));
        assert_eq!(ask(&json!({"field_names": ["其他"]}), &[]), Err(1_254_045));
    }
}
