//! The meaning of dates: the vectors of the requirements, and days on which clocks change.

use serde_json::{Value, json};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::world::START_MS;

const PARSE: &str = "parseDateExpression";

fn relative(days: i64) -> Value {
    json!({ "type": "relative", "offset": days, "unit": "day" })
}

fn absolute(year: i64, month: i64, day: i64) -> Value {
    json!({ "type": "absolute", "year": year, "month": month, "day": day })
}

async fn check(server: &TestServer, vectors: &[(Value, i64)]) {
    for (input, timestamp) in vectors {
        let answer = server.call_tool(PARSE, input).await;
        assert_eq!(answer, json!({ "timestamp": timestamp, "input": input }), "{input}");
    }
}

#[tokio::test]
async fn s2_06_07_09_to_15_dates_follow_the_calendar() {
    let server = Setup::expense().await.start().await;
    let year_absent = json!({ "type": "absolute", "month": 1, "day": 2 });
    let today = json!({ "type": "absolute", "month": 1, "day": 15 });
    let vectors = [
        // Decision 5: the word "today" is this moment. The date of today is its midnight.
        (relative(0), START_MS),
        (today, 1_736_870_400_000),
        (relative(-1), 1_736_784_000_000),
        (relative(-2), 1_736_697_600_000),
        (relative(1), 1_736_956_800_000),
        (relative(-15), 1_735_574_400_000),
        (year_absent, 1_735_747_200_000),
        (absolute(2024, 2, 29), 1_709_136_000_000),
        (absolute(2026, 1, 1), 1_767_196_800_000),
    ];
    check(&server, &vectors).await;
}

#[tokio::test]
async fn s2_16_to_18_22_27_an_invalid_date_is_now_with_a_warning_and_an_event() {
    let server = Setup::expense().await.start().await;
    for input in [
        json!({ "type": "week" }),
        json!({ "type": "absolute", "month": 13, "day": 1 }),
        json!({ "type": "absolute", "month": 1, "day": 0 }),
        json!({ "type": "absolute", "month": 2, "day": 30 }),
        json!({ "type": "absolute", "year": 2025, "month": 2, "day": 29 }),
        json!({ "type": "absolute", "year": 1969, "month": 1, "day": 1 }),
        json!({ "type": "absolute", "month": 1, "day": 1.5 }),
        json!({ "type": "relative", "offset": 0.5, "unit": "day" }),
        json!({ "type": "relative", "offset": -1, "unit": "week" }),
        json!({}),
    ] {
        let reply = server.tell(&format!("call {PARSE} {input}")).await;
        let call = reply.calls(PARSE)[0];
        assert_eq!(call["status"], "success", "the tool handles invalid arguments itself: {call}");
        assert_eq!(call["result"]["timestamp"], START_MS, "{input}");
        assert_eq!(call["result"]["input"], input);
        let warning = call["result"]["warning"].as_str().unwrap();
        assert!(warning.contains("已使用当前时间"), "{warning}");
        let events = server.events(&reply.thread).await;
        let noted = events.iter().filter(|event| event.data["name"] == "date_parse_failed");
        let noted: Vec<&Value> = noted.map(|event| &event.data["data"]).collect();
        assert_eq!(noted, [&input]);
    }
}

#[tokio::test]
async fn s2_22_an_unsupported_expression_is_logged_and_the_expense_is_booked() {
    let server = Setup::expense().await.start().await;
    let reply = server.tell("本周一打车花了20元").await;
    assert_eq!(reply.tools(), [PARSE, "saveExpenseToLark"]);
    let events = server.events(&reply.thread).await;
    let logged = events.iter().filter(|event| event.event == "log").count();
    assert_eq!(logged, 1, "the operator log has it");
    assert_eq!(server.booked()[0]["日期"], START_MS);
}

#[tokio::test]
async fn s2_10_a_date_needs_only_the_clock() {
    let server = Setup::expense().await.start().await;
    let reply = server.tell(&format!("call {PARSE} {}", relative(-1))).await;
    let events = server.events(&reply.thread).await;
    let inside: Vec<&str> = events
        .iter()
        .filter(|event| event.event == "called" && event.data["scope"].is_array())
        .filter_map(|event| event.data["function"].as_str())
        .collect();
    assert!(!inside.is_empty());
    assert!(inside.iter().all(|function| function.starts_with("clock.")), "{inside:?}");
}

/// Starts a server in another time zone.
async fn server_in(zone: &str) -> TestServer {
    let other = format!("date_time_zone = \"{zone}\"");
    let setup = Setup::expense().await;
    setup.replace("date_time_zone = \"Asia/Shanghai\"", &other).start().await
}

#[tokio::test]
async fn s2_19_a_day_without_midnight_starts_at_its_first_instant() {
    for (zone, date, first) in [
        ("America/Sao_Paulo", (2018, 11, 4), 1_541_300_400_000),
        ("Africa/Cairo", (2025, 4, 25), 1_745_532_000_000),
        ("Asia/Beirut", (2025, 3, 30), 1_743_285_600_000),
        // A day that was skipped: the first instant after it.
        ("Pacific/Apia", (2011, 12, 30), 1_325_239_200_000),
        // Midnight occurs twice: the first one.
        ("America/Havana", (2025, 11, 2), 1_762_056_000_000),
        ("Europe/Berlin", (2025, 3, 30), 1_743_289_200_000),
    ] {
        let server = server_in(zone).await;
        let (year, month, day) = date;
        check(&server, &[(absolute(year, month, day), first)]).await;
    }
}

#[tokio::test]
async fn s2_19_days_are_not_86_400_seconds() {
    let server = server_in("Europe/Berlin").await;
    // Noon of the day after clocks were put forward.
    server.clock().set_now_ms(1_743_415_200_000);
    let vectors = [
        (relative(-1), 1_743_289_200_000),
        (relative(-2), 1_743_202_800_000),
        (relative(0), 1_743_415_200_000),
    ];
    check(&server, &vectors).await;
}
