//! Search for the records of a period, in pages.
//!
//! Feishu compares dates by the day, in the time zone of the table, which the plugin does not know.
//! The search therefore covers more than the period, and records outside the period are dropped
//! here.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_plugin::http::Response;
use wattle_plugin::prelude::Failure;

use super::{Refusal, Table, persist};
use crate::expense::Kind;

/// Number of records in a page, the maximum of Feishu.
const PAGE_SIZE: u32 = 500;

/// Maximum number of pages, far more than a person books in a month.
const PAGES: usize = 4;

/// Margin of the search on either side of the period, in milliseconds: a day for the comparison by
/// days, and a day for a different time zone.
const MARGIN_MS: i64 = 2 * 24 * 3_600_000;

/// Delays before retries, in milliseconds. A person waits for the result and can repeat the
/// request.
const PAUSES_MS: [u32; 1] = [200];

/// Columns of the result.
const COLUMNS: [&str; 5] = ["备注", "分类", "金额", "收支", "日期"];

/// A record of the table, in which a person may have left cells empty. Its JSON is a booking in the
/// output of `listExpensesFromLark`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) remark: String,
    pub(crate) category: String,
    pub(crate) amount: Option<f64>,
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    #[serde(rename = "date")]
    pub(crate) date_ms: i64,
}

/// The records of a period.
#[derive(Debug, PartialEq)]
pub(crate) struct Records {
    /// Records, newest first.
    pub(crate) records: Vec<Record>,
    /// True if there are more records.
    pub(crate) truncated: bool,
}

#[derive(Debug, Deserialize)]
struct Page {
    #[serde(default)]
    items: Vec<Item>,
    #[serde(default)]
    has_more: bool,
    #[serde(default)]
    page_token: String,
}

#[derive(Debug, Deserialize)]
struct Item {
    #[serde(default)]
    record_id: String,
    #[serde(default)]
    fields: Value,
}

impl Table {
    /// Returns the records of a period, which excludes `to_ms`.
    pub(crate) fn search(&self, from_ms: i64, to_ms: i64) -> Result<Records, Refusal> {
        let question = question(from_ms, to_ms);
        let mut found = Records { records: Vec::new(), truncated: false };
        let mut token = String::new();
        for _ in 0..PAGES {
            let data = persist(&PAUSES_MS, |pause_ms| self.page(&question, &token, pause_ms))?;
            let page = Page::deserialize(&data).map_err(|error| Refusal {
                message: format!("飞书返回的记录无法识别：{error}"),
                code: None,
            })?;
            let records = page.items.iter().filter_map(record);
            found.records.extend(records.filter(|it| (from_ms..to_ms).contains(&it.date_ms)));
            found.truncated = page.has_more && !page.page_token.is_empty();
            if !found.truncated {
                break;
            }
            token = page.page_token;
        }
        found.records.sort_by_key(|record| std::cmp::Reverse(record.date_ms));
        Ok(found)
    }

    fn page(&self, question: &Value, token: &str, pause_ms: u32) -> Result<Response, Failure> {
        let request = self.post("records/search").query("page_size", &PAGE_SIZE.to_string());
        let request = if token.is_empty() { request } else { request.query("page_token", token) };
        request.delay_ms(pause_ms).json(question)?.send()
    }
}

fn question(from_ms: i64, to_ms: i64) -> Value {
    let condition = |operator: &str, date_ms: i64| {
        json!({
            "field_name": "日期",
            "operator": operator,
            "value": ["ExactDate", date_ms.to_string()],
        })
    };
    let after = condition("isGreater", from_ms.saturating_sub(MARGIN_MS));
    let before = condition("isLess", to_ms.saturating_add(MARGIN_MS));
    json!({
        "field_names": COLUMNS,
        "sort": [{ "field_name": "日期", "desc": true }],
        "filter": { "conjunction": "and", "conditions": [after, before] },
    })
}

/// Converts an item to a record. Returns `None` if it has no date.
fn record(item: &Item) -> Option<Record> {
    let cell = |name: &str| item.fields.get(name).unwrap_or(&Value::Null);
    let is_income = text(cell("收支")) == Kind::Income.label();
    Some(Record {
        id: item.record_id.clone(),
        remark: text(cell("备注")),
        category: text(cell("分类")),
        amount: cell("金额").as_f64(),
        kind: if is_income { Kind::Income } else { Kind::Consume },
        date_ms: cell("日期").as_i64()?,
    })
}

/// Returns the text of a cell. A choice is a string, and a text is a list of parts.
fn text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => {
            pieces.iter().filter_map(|piece| piece.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_plugin::http::{Body, Response};
    use wattle_plugin::testing::FakeHost;

    use super::{Kind, PAGES, Record, Records, Refusal, Table};

    const DAY_MS: i64 = 86_400_000;
    const FROM_MS: i64 = 1_735_660_800_000;

    fn host(answer: impl Fn(&str) -> Value + 'static) -> FakeHost {
        FakeHost::new()
            .setting("lark_app_token", "app1")
            .setting("lark_table_id", "tbl1")
            .http(move |request| Ok(Response::new(200, answer(&request.url).to_string())))
    }

    fn search(host: &FakeHost) -> Result<Records, Refusal> {
        let table = || Table::of_settings().unwrap().unwrap();
        host.run(|| table().search(FROM_MS, FROM_MS + 31 * DAY_MS))
    }

    fn item(id: &str, date_ms: i64) -> Value {
        let remark = json!([{"text": "打", "type": "text"}, {"text": "车", "type": "text"}]);
        json!({"record_id": id, "fields": {"备注": remark, "分类": "交通", "金额": 20.5,
            "收支": "支出", "日期": date_ms}})
    }

    fn ids(found: &Records) -> Vec<&str> {
        found.records.iter().map(|record| record.id.as_str()).collect()
    }

    #[test]
    fn records_of_all_pages_are_sorted_newest_first() {
        let host = host(|url| {
            let is_first = !url.contains("page_token=next");
            let (id, date_ms) =
                if is_first { ("rec1", FROM_MS) } else { ("rec2", FROM_MS + DAY_MS) };
            json!({"code": 0, "data": {"items": [item(id, date_ms)], "has_more": is_first,
                "page_token": "next"}})
        });
        let found = search(&host).unwrap();
        assert_eq!((ids(&found), found.truncated), (vec!["rec2", "rec1"], false));
        let record = Record {
            id: "rec1".to_owned(),
            remark: "打车".to_owned(),
            category: "交通".to_owned(),
            amount: Some(20.5),
            kind: Kind::Consume,
            date_ms: FROM_MS,
        };
        assert_eq!(found.records[1], record);
        let request = &host.http_requests()[0];
        assert!(request.url.ends_with("/tables/tbl1/records/search?page_size=500"), "{request:?}");
        let Body::Text(sent) = &request.body else { panic!("no text") };
        let sent: Value = serde_json::from_str(sent).unwrap();
        let after = json!({"field_name": "日期", "operator": "isGreater",
            "value": ["ExactDate", (FROM_MS - 2 * DAY_MS).to_string()]});
        assert_eq!(sent["filter"]["conditions"][0], after);
        assert_eq!(sent["filter"]["conditions"][1]["operator"], "isLess");
    }

    #[test]
    fn records_outside_the_period_or_without_a_date_are_dropped() {
        let host = host(|_| {
            let mut undated = item("rec9", 0);
            undated["fields"]["日期"] = Value::Null;
            let items = json!([item("rec1", FROM_MS - 1), item("rec2", FROM_MS),
                item("rec3", FROM_MS + 31 * DAY_MS), undated, {"record_id": "rec5"}]);
            json!({"code": 0, "data": {"items": items, "has_more": false}})
        });
        assert_eq!(ids(&search(&host).unwrap()), ["rec2"]);
    }

    #[test]
    fn number_of_pages_is_limited() {
        let host = host(|_| {
            let page = json!({"items": [item("r", FROM_MS)], "has_more": true, "page_token": "x"});
            json!({"code": 0, "data": page})
        });
        let found = search(&host).unwrap();
        assert_eq!((found.records.len(), found.truncated), (PAGES, true));
        // Without a token the next page cannot be requested.
        let host = self::host(|_| json!({"code": 0, "data": {"has_more": true}}));
        assert_eq!(search(&host), Ok(Records { records: Vec::new(), truncated: false }));
    }

    #[test]
    fn errors_are_returned() {
        let host = host(|_| json!({"code": 1_254_015, "msg": "odd"}));
        assert_eq!(search(&host).unwrap_err().code, Some(1_254_015));
        let host = self::host(|_| json!({"code": 0, "data": {"items": 7}}));
        assert!(search(&host).unwrap_err().message.contains("无法识别"));
    }
}
