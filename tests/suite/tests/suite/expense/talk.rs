//! The conversation: two steps, several expenses, questions, memory, limits, and results of tools.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::expense::{CHAT, MODEL_PATH, RECORDS_PATH};
use wattle_suite::server::Setup;
use wattle_suite::world::START_MS;

const PARSE: &str = "parseDateExpression";
const SAVE: &str = "saveExpenseToLark";

/// The beginning of yesterday.
const YESTERDAY_MS: i64 = 1_736_784_000_000;

#[tokio::test]
async fn s2_29_34_35_a_date_is_parsed_and_then_saved() {
    let server = Setup::expense().await.start().await;
    let reply = server.tell("昨天打车花了20元").await;
    assert_eq!(reply.tools(), [PARSE, SAVE]);
    let parse = reply.calls(PARSE)[0];
    let yesterday = json!({ "type": "relative", "offset": -1, "unit": "day" });
    assert_eq!(parse["arguments"], yesterday);
    assert_eq!(parse["result"], json!({ "timestamp": YESTERDAY_MS, "input": yesterday }));
    let save = reply.calls(SAVE)[0];
    let arguments =
        json!({ "remark": "打车", "category": "交通", "amount": 20, "date": YESTERDAY_MS });
    assert_eq!(save["arguments"], arguments);
    assert_eq!(save["result"]["status"], "success");
    assert_eq!(
        reply.text,
        "✅ 记账成功！\n\n💰 打车\n📅 2025-01-14 00:00:00\n🏷️ 交通 | 💵 ¥20 | 📊 支出"
    );
    let kinds: Vec<&str> = reply.steps.iter().filter_map(|step| step["type"].as_str()).collect();
    assert_eq!(kinds, ["model", "tool", "model", "tool", "model"]);
    assert_eq!(server.booked().len(), 1);
}

#[tokio::test]
async fn s2_30_an_expense_without_a_date_is_saved_directly() {
    let server = Setup::expense().await.start().await;
    let reply = server.tell("打车花了20元").await;
    assert_eq!(reply.tools(), [SAVE]);
    assert!(reply.calls(SAVE)[0]["arguments"].get("date").is_none());
    assert_eq!(server.booked()[0]["日期"], START_MS);
    assert!(reply.text.contains("📅 2025-01-15 10:30:45"), "{}", reply.text);
}

#[tokio::test]
async fn s2_15_future_days_are_booked() {
    let server = Setup::expense().await.start().await;
    server.tell("明天房租3000元").await;
    let booked = server.booked();
    assert_eq!(
        (&booked[0]["日期"], &booked[0]["分类"]),
        (&json!(1_736_956_800_000_i64), &json!("房租"))
    );
}

/// A date without a year is in the current year. The reply shows the whole date, so that a user who
/// meant the past year notices.
#[tokio::test]
async fn s2_07_35_the_reply_shows_dates_with_their_year() {
    let server = Setup::expense().await.start().await;
    // 10:30:45.123 on 2 January 2026 in Shanghai.
    server.clock().set_now_ms(1_767_321_045_123);
    let reply = server.tell("12月30日打车花了20元").await;
    let said = json!({ "type": "absolute", "month": 12, "day": 30 });
    assert_eq!(reply.calls(PARSE)[0]["arguments"], said);
    assert_eq!(server.booked()[0]["日期"], 1_798_560_000_000_i64);
    assert!(reply.text.contains("📅 2026-12-30 00:00:00"), "{}", reply.text);
    let reply = server.tell("2025年12月30日打车花了20元").await;
    assert!(reply.text.contains("📅 2025-12-30 00:00:00"), "{}", reply.text);
}

#[tokio::test]
async fn s2_36_missing_details_are_requested_and_the_conversation_is_kept() {
    let server = Setup::expense().await.start().await;
    let asked = server.tell("昨天打车").await;
    assert!(asked.tools().is_empty(), "{asked:?}");
    assert!(asked.text.contains("金额"), "{}", asked.text);
    let stranger = server.tell("20元").await;
    assert!(stranger.text.contains("花在哪里"), "another thread has no memory: {}", stranger.text);
    let server = server.restart().await;
    let reply = server.tell_on(&asked.thread, "20元").await;
    assert_eq!(reply.thread, asked.thread);
    let booked = server.booked();
    assert_eq!((booked.len(), &booked[0]["日期"]), (1, &json!(YESTERDAY_MS)));
    assert_eq!(booked[0]["备注"], "打车");
}

#[tokio::test]
async fn s2_37_several_expenses_are_separate_records_in_the_order_of_the_calls() {
    let server = Setup::expense().await.start().await;
    // The first response takes the longest.
    let slow = Pattern { body_contains: Some("打车".to_owned()), ..Pattern::path(RECORDS_PATH) };
    server.standin().fault(FaultRule::new(slow, Fault::Slow { ms: 300 }));
    let reply = server.tell("昨天打车20元，午饭35元，收到工资8000元").await;
    assert_eq!(reply.tools(), [PARSE, PARSE, PARSE, SAVE, SAVE, SAVE]);
    let asked: Vec<&Value> = reply
        .steps
        .iter()
        .filter(|step| step["type"] == "model")
        .flat_map(|step| step["toolCalls"].as_array().unwrap())
        .map(|call| &call["id"])
        .collect();
    let answered: Vec<&Value> =
        reply.steps.iter().filter(|it| it["type"] == "tool").map(|it| &it["callId"]).collect();
    assert_eq!(asked, answered);
    let mut booked = server.booked();
    booked.sort_by_key(|fields| fields["金额"].as_i64());
    let rows: Vec<Value> = booked
        .iter()
        .map(|fields| json!([fields["备注"], fields["金额"], fields["收支"]]))
        .collect();
    assert_eq!(
        rows,
        [json!(["打车", 20, "支出"]), json!(["午饭", 35, "支出"]), json!(["工资", 8000, "收入"])]
    );
    assert_eq!(reply.text.matches("✅ 记账成功！").count(), 3);
}

#[tokio::test]
async fn s2_38_an_agent_fails_at_its_turn_limit_and_the_thread_continues() {
    let server = Setup::expense().await.start().await;
    let script =
        format!("call {PARSE} {{\"type\":\"relative\",\"offset\":0,\"unit\":\"day\"}}\nagain");
    let answer = server.post(CHAT, &json!({ "message": script })).await;
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert!(answer.body["error"].as_str().unwrap().contains("步骤过多"), "{}", answer.body);
    assert_eq!(server.requests_to(MODEL_PATH).len(), 10);
    let thread = answer.body["threadId"].as_str().unwrap();
    let run = server.get(&format!("/api/v1/threads/{thread}")).await.expect(200);
    assert!(run.to_string().contains("max_turns"), "the failure names the limit: {run}");
    let reply = server.tell_on(thread, "打车20元").await;
    assert!(reply.text.contains("✅"), "{}", reply.text);
}

#[tokio::test]
async fn s2_38_failures_of_tools_are_returned_to_the_model() {
    let server = Setup::expense().await.start().await;
    let reply = server.tell("call fly {}").await;
    let step = reply.calls("fly")[0];
    assert_eq!(step["status"], "error");
    assert!(step["result"].as_str().unwrap().contains(SAVE), "it names the tools: {step}");
    let requests = server.requests_to(MODEL_PATH);
    let last = requests[1].body.clone().unwrap();
    assert_eq!(last["messages"].as_array().unwrap().last().unwrap()["role"], "tool");
}

#[tokio::test]
async fn s2_39_the_date_tool_can_be_removed_by_configuration() {
    let grants = "[grants.std]\nllm = [\"chat\"]\ntools = [\"lark/saveExpenseToLark\"]\n";
    let server = Setup::expense().await.with(grants).start().await;
    let reply = server.tell("昨天打车花了20元").await;
    assert_eq!(reply.tools(), [SAVE]);
    let body = server.requests_to(MODEL_PATH).remove(0).body.unwrap();
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    let script = format!("call {PARSE} {{}}");
    let refused = server.tell(&script).await;
    assert_eq!(refused.calls(PARSE)[0]["status"], "error");
}
