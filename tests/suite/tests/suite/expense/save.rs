//! Creating the record in Feishu's table, and its failures.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern, feishu_refusal};
use wattle_suite::expense::RECORDS_PATH;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::world::START_MS;

const SAVE: &str = "saveExpenseToLark";

fn taxi() -> Value {
    json!({ "remark": "打车", "category": "交通", "amount": 20 })
}

fn fault(server: &TestServer, fault: Fault, times: u32) {
    server.standin().fault(FaultRule::new(Pattern::path(RECORDS_PATH), fault).times(times));
}

/// Returns the `client_token`s of all requests.
fn client_tokens(server: &TestServer) -> Vec<String> {
    let entries = server.requests_to(RECORDS_PATH);
    entries.into_iter().map(|entry| entry.query["client_token"].clone()).collect()
}

#[tokio::test]
async fn s2_23_to_26_a_record_has_the_fields_of_the_table() {
    let server = Setup::expense().await.start().await;
    let date = 1_736_784_000_000_i64;
    let mut said = taxi();
    said["date"] = date.into();
    let answer = server.call_tool(SAVE, &said).await;
    let fields =
        json!({ "备注": "打车", "分类": "交通", "金额": 20, "收支": "支出", "日期": date });
    assert_eq!(answer["status"], "success");
    assert!(answer["message"].is_string());
    assert_eq!(answer["data"]["fields"], fields);
    assert_eq!(server.booked(), [fields]);
    let income = json!({ "remark": "年终奖", "category": "工资", "amount": 0.5, "type": "income" });
    server.call_tool(SAVE, &income).await;
    let fields =
        json!({ "备注": "年终奖", "分类": "工资", "金额": 0.5, "收支": "收入", "日期": START_MS });
    assert_eq!(server.booked()[1], fields);
}

#[tokio::test]
async fn s2_26_invalid_arguments_are_an_output_and_no_failure() {
    let server = Setup::expense().await.start().await;
    for (field, value) in [
        ("amount", json!("20")),
        ("amount", json!(-1)),
        ("category", json!("其他")),
        ("remark", json!("")),
        ("date", json!("2025-01-14")),
        ("date", json!(1_736_784_000)),
        ("type", json!("支出")),
    ] {
        let mut said = taxi();
        said[field] = value;
        let answer = server.call_tool(SAVE, &said).await;
        assert_eq!(answer["status"], "error", "{said}");
        assert!(answer["message"].as_str().unwrap().contains(field), "{answer}");
    }
    assert!(server.booked().is_empty());
}

#[tokio::test]
async fn s2_26_missing_settings_are_reported_by_the_tool() {
    let setup = Setup::expense().await.replace("lark_table_id = \"tbl1\"\n", "");
    let server = setup.start().await;
    let answer = server.call_tool(SAVE, &taxi()).await;
    assert_eq!(answer["status"], "error");
    assert!(answer["message"].as_str().unwrap().contains("lark_table_id"), "{answer}");
    assert!(server.requests_to(RECORDS_PATH).is_empty());
}

#[tokio::test]
async fn s2_26_error_codes_of_feishu_are_explained_to_model_and_user() {
    let server = Setup::expense().await.start().await;
    for (code, words) in
        [(1_254_015, "字段类型"), (1_254_064, "日期格式"), (1_254_104, "过多"), (403, "编辑权限")]
    {
        fault(&server, feishu_refusal(code), 1);
        let answer = server.call_tool(SAVE, &taxi()).await;
        assert_eq!((&answer["status"], &answer["data"]["code"]), (&json!("error"), &json!(code)));
        assert!(answer["message"].as_str().unwrap().contains(words), "{answer}");
    }
    fault(&server, feishu_refusal(403), 1);
    let reply = server.tell("打车20元").await;
    assert!(reply.text.starts_with("❌"), "{}", reply.text);
    assert!(server.booked().is_empty());
}

#[tokio::test]
async fn s2_28_a_write_conflict_is_retried_with_the_same_client_token() {
    let server = Setup::expense().await.start().await;
    fault(&server, feishu_refusal(1_254_291), 2);
    let answer = server.call_tool(SAVE, &taxi()).await;
    assert_eq!(answer["status"], "success", "{answer}");
    let tokens = client_tokens(&server);
    assert_eq!(tokens.len(), 3);
    assert!(tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
    assert_eq!(server.booked().len(), 1);
    fault(&server, feishu_refusal(1_254_291), 100);
    let answer = server.call_tool(SAVE, &taxi()).await;
    assert_eq!((&answer["status"], &answer["data"]["code"]), (&json!("error"), &json!(1_254_291)));
    assert_eq!(client_tokens(&server).len(), 3 + 4);
}

#[tokio::test]
async fn s2_28_delays_between_attempts_grow() {
    let server = Setup::expense().await.start().await;
    fault(&server, feishu_refusal(1_254_291), 3);
    let reply = server.tell(&format!("call {SAVE} {}", taxi())).await;
    assert_eq!(reply.calls(SAVE)[0]["result"]["status"], "success");
    let events = server.events(&reply.thread).await;
    let sent = events
        .iter()
        .filter(|message| message.event == "called" && message.data["function"] == "http.send");
    let delays: Vec<_> = sent.map(|message| &message.data["request"]["delay_ms"]).collect();
    assert_eq!(delays, [&Value::Null, &json!(200), &json!(400), &json!(800)]);
    assert_eq!(server.booked().len(), 1);
}

#[tokio::test]
async fn s2_28_a_lost_response_creates_no_second_record() {
    let server = Setup::expense().await.start().await;
    fault(&server, Fault::Cut, 1);
    let answer = server.call_tool(SAVE, &taxi()).await;
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(client_tokens(&server).len(), 2, "sent twice");
    assert_eq!(server.booked().len(), 1, "created once");
}

#[tokio::test]
async fn s2_28_each_call_has_a_different_client_token() {
    let server = Setup::expense().await.start().await;
    let said = taxi();
    // Two equal calls in one turn, and a third in the next message.
    let reply = server.tell(&format!("call {SAVE} {said}\ncall {SAVE} {said}")).await;
    server.tell_on(&reply.thread, &format!("call {SAVE} {said}")).await;
    let mut tokens = client_tokens(&server);
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
    assert_eq!(server.booked().len(), 3);
}

#[tokio::test]
async fn s2_26_an_unavailable_feishu_is_an_output_and_no_failure() {
    let server = Setup::expense().await.start().await;
    let down = Fault::Status { status: 503, retry_after: None, body: None };
    fault(&server, down, 100);
    let answer = server.call_tool(SAVE, &taxi()).await;
    assert_eq!(answer["status"], "error");
    let reply = server.tell("打车20元").await;
    assert!(reply.text.starts_with("❌"), "{}", reply.text);
}
