//! The bookings of a month, which the page shows next to the conversation.

use serde_json::{Value, json};
use wattle_kit::standin::{FaultRule, Pattern, feishu_refusal};
use wattle_suite::expense::{BOOKINGS, SEARCH_PATH};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::world::START_MS;

/// The start of January 2025 in Shanghai, and of February.
const JANUARY_MS: (i64, i64) = (1_735_660_800_000, 1_738_339_200_000);

const DAY_MS: i64 = 86_400_000;

fn record(remark: &str, amount: i64, date_ms: i64) -> Value {
    json!({ "备注": remark, "分类": "餐饮", "金额": amount, "收支": "支出", "日期": date_ms })
}

async fn month(server: &TestServer, month: &str) -> Value {
    server.get(&format!("{BOOKINGS}?month={month}")).await.expect(200)
}

#[tokio::test]
async fn bookings_have_sums_by_day_and_category() {
    let server = Setup::expense().await.start().await;
    let empty = server.get(BOOKINGS).await.expect(200);
    assert_eq!((&empty["month"], &empty["bookings"]), (&json!("2025-01"), &json!([])));
    server.tell("昨天打车20元，午饭35.5元，收到工资8000元").await;
    server.tell("晚饭0.1元").await;
    let body = server.get(BOOKINGS).await.expect(200);
    assert_eq!(
        (&body["today"], &body["timeZone"]),
        (&json!("2025-01-15"), &json!("Asia/Shanghai"))
    );
    assert_eq!(
        body["days"],
        json!([{ "date": "2025-01-14", "consume": 55.5, "income": 8000.0, "count": 3 },
            { "date": "2025-01-15", "consume": 0.1, "income": 0.0, "count": 1 }])
    );
    assert_eq!(
        body["sums"],
        json!({ "consume": 55.6, "income": 8000.0, "count": 4, "categories": [
            { "category": "工资", "kind": "income", "amount": 8000.0, "count": 1 },
            { "category": "餐饮", "kind": "consume", "amount": 35.6, "count": 2 },
            { "category": "交通", "kind": "consume", "amount": 20.0, "count": 1 }] })
    );
    let newest = json!({ "id": "rec4", "date": "2025-01-15", "dateMs": START_MS,
        "remark": "晚饭", "category": "餐饮", "amount": 0.1, "kind": "consume" });
    assert_eq!(body["bookings"][0], newest);
    assert_eq!(month(&server, "2024-12").await["bookings"], json!([]));
}

/// Feishu compares days in the zone of the table. The start and end of the month are in the zone of
/// the app.
#[tokio::test]
async fn a_month_has_its_limits_in_the_configured_zone() {
    let server = Setup::expense().await.start().await;
    let (from, to) = JANUARY_MS;
    let records =
        [from - 1, from, to - 1, to].map(|at| record(&format!("at {}", at - from), 1, at));
    server.fill_table(&records).await;
    let body = month(&server, "2025-01").await;
    let dates: Vec<&Value> =
        body["bookings"].as_array().unwrap().iter().map(|booking| &booking["date"]).collect();
    assert_eq!(dates, ["2025-01-31", "2025-01-01"]);
    assert_eq!(month(&server, "2025-02").await["sums"]["count"], 1);
    let zone = "date_time_zone = \"Asia/Shanghai\"";
    let other = Setup::expense().await.replace(zone, "date_time_zone = \"America/New_York\"");
    let other = other.start().await;
    other.fill_table(&records).await;
    let body = month(&other, "2025-01").await;
    let remarks: Vec<&Value> =
        body["bookings"].as_array().unwrap().iter().map(|booking| &booking["remark"]).collect();
    // Thirteen hours later: the first of February in Shanghai is still January in New York.
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert_eq!(body["bookings"][0]["date"], "2025-01-31");
}

#[tokio::test]
async fn records_are_read_in_pages_up_to_a_limit() {
    let server = Setup::expense().await.start().await;
    let (from, _) = JANUARY_MS;
    let records: Vec<Value> =
        (0..1_200).map(|at| record("午饭", 1, from + at % 31 * DAY_MS)).collect();
    server.fill_table(&records).await;
    let body = month(&server, "2025-01").await;
    assert_eq!((&body["sums"]["count"], &body["truncated"]), (&json!(1_200), &json!(false)));
    assert_eq!(body["sums"]["consume"], 1_200.0);
    let asked = server.requests_to(SEARCH_PATH);
    let tokens: Vec<Option<&String>> = asked.iter().map(|it| it.query.get("page_token")).collect();
    assert_eq!((tokens.len(), tokens[0]), (3, None));
    assert_eq!(asked[0].query["page_size"], "500");
    server.fill_table(&records).await;
    let body = month(&server, "2025-01").await;
    assert_eq!((&body["sums"]["count"], &body["truncated"]), (&json!(2_000), &json!(true)));
}

#[tokio::test]
async fn an_unreadable_table_is_reported() {
    let server = Setup::expense().await.start().await;
    for month in ["2025-1", "2025-13", "x"] {
        let answer = server.get(&format!("{BOOKINGS}?month={month}")).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
    }
    assert!(server.requests_to(SEARCH_PATH).is_empty());
    let refused = FaultRule::new(Pattern::path(SEARCH_PATH), feishu_refusal(403)).times(1);
    server.standin().fault(refused);
    let answer = server.get(BOOKINGS).await;
    assert_eq!(answer.status, 502);
    assert!(answer.body["error"].as_str().unwrap().contains("编辑权限"), "{}", answer.body);
    assert_eq!(server.get(BOOKINGS).await.status, 200);
    let setup = Setup::expense().await.replace("lark_table_id = \"tbl1\"\n", "");
    let answer = setup.start().await.get(BOOKINGS).await;
    assert!(answer.body["error"].as_str().unwrap().contains("lark_table_id"), "{}", answer.body);
}

#[tokio::test]
async fn models_cannot_call_the_tool_that_reads() {
    let server = Setup::expense().await.start().await;
    let reply = server.tell("call listExpensesFromLark {\"from\": 0, \"to\": 1}").await;
    assert_eq!(reply.calls("listExpensesFromLark")[0]["status"], "error");
    assert!(server.requests_to(SEARCH_PATH).is_empty());
}
