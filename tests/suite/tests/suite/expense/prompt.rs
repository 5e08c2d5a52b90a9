//! The system prompt, which never changes and has all rules of the model.

use serde_json::{Value, json};
use wattle_kit::standin::redact;
use wattle_suite::expense::MODEL_PATH;
use wattle_suite::guests;
use wattle_suite::server::{Setup, TestServer};

/// Returns the system prompt from its file.
fn written() -> String {
    let file = guests::root().join("plugins/apps/expense/prompts/agent.md");
    std::fs::read_to_string(file).unwrap()
}

/// Returns the system prompt as the journal of the stand-in shows it: long texts are cut, with a
/// digest.
fn journaled() -> String {
    let text = written();
    let start: String = text.chars().take(64).collect();
    let digest = redact(&text);
    let digest = digest.trim_start_matches("redacted:");
    format!("{start}... {} bytes, blake3 {digest}", text.len())
}

/// Returns the requests to the model.
fn requests(server: &TestServer) -> Vec<Value> {
    server.requests_to(MODEL_PATH).into_iter().map(|entry| entry.body.unwrap()).collect()
}

/// Checks that the first message is the prompt, byte for byte.
fn check_system(request: &Value) {
    let system = &request["messages"][0];
    assert_eq!(system["role"], "system");
    let told = system["content"].as_str().unwrap();
    assert!(told.starts_with(&journaled()), "{told}");
}

#[tokio::test]
async fn s2_31_the_system_prompt_is_constant() {
    let server = Setup::expense().await.start().await;
    server.tell("昨天打车花了20元").await;
    server.clock().set_now_ms(1_767_196_800_000);
    server.tell("前天买书 59.9 元").await;
    let requests = requests(&server);
    assert_eq!(requests.len(), 6);
    for request in &requests {
        check_system(request);
        assert_eq!(request["messages"][0], requests[0]["messages"][0]);
        assert_eq!(request["temperature"].as_f64(), Some(0.0), "S2-36");
        assert_eq!(request["tools"], requests[0]["tools"]);
    }
}

/// The prompt has the rule by which the model asks the user. After the user's reply, the request
/// contains the question of the model and the reply.
#[tokio::test]
async fn s2_36_the_prompt_has_the_rule_for_questions_and_requests_have_the_conversation() {
    let server = Setup::expense().await.start().await;
    let asked = server.tell("昨天打车").await;
    assert!(asked.tools().is_empty());
    server.tell_on(&asked.thread, "20元").await;
    let requests = requests(&server);
    for request in &requests {
        check_system(request);
    }
    assert!(written().contains("备注或金额不清楚时，先友好地问用户，不要调用工具，也不要猜"));
    let told = requests[1]["messages"].as_array().unwrap();
    let told: Vec<Value> = told[1..].iter().map(|it| json!([it["role"], it["content"]])).collect();
    assert_eq!(
        told,
        [json!(["user", "昨天打车"]), json!(["assistant", asked.text]), json!(["user", "20元"])]
    );
}

#[tokio::test]
async fn s2_29_the_whole_request_is_as_expected() {
    let server = Setup::expense().await.start().await;
    server.tell("昨天打车花了20元").await;
    let mut request = requests(&server).pop().unwrap();
    check_system(&request);
    request["messages"][0]["content"] = json!("[prompts/agent.md]");
    let mut text = serde_json::to_string_pretty(&request).unwrap();
    for (number, call) in calls(&request).iter().enumerate() {
        text = text.replace(call.as_str(), &format!("[call {number}]"));
    }
    insta::assert_snapshot!(text);
}

/// Returns the ids of the tool calls of a request, in order.
fn calls(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    calls.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn s2_04_05_08_24_models_see_both_tools_by_name_with_their_arguments() {
    let server = Setup::expense().await.start().await;
    server.tell("你好").await;
    let body = server.requests_to(MODEL_PATH).remove(0).body.unwrap();
    let tools = body["tools"].as_array().unwrap();
    let tool = |name: &str| {
        let found = tools.iter().find(|tool| tool["function"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {body}"))["function"].clone()
    };
    assert_eq!(tools.len(), 2);
    let parse = tool("parseDateExpression");
    assert_eq!(
        parse["description"],
        "将结构化的时间语义数据转换为 13 位时间戳。支持相对日期（如昨天、今天）和绝对日期（如1月2日）"
    );
    let fields = &parse["parameters"]["properties"];
    assert_eq!(fields["type"]["enum"], json!(["relative", "absolute"]));
    assert_eq!(fields["unit"]["enum"], json!(["day"]));
    assert_eq!(fields["offset"]["description"], "相对天数偏移：-1=昨天, 0=今天, 1=明天, -2=前天");
    // Providers refuse a union at the top level. The property that distinguishes the kinds
    // describes them instead.
    for union in ["oneOf", "anyOf", "allOf"] {
        assert!(parse["parameters"].get(union).is_none(), "{parse}");
    }
    let kinds = fields["type"]["description"].as_str().unwrap();
    assert_eq!(kinds, "\"relative\" requires offset, unit; \"absolute\" requires month, day");
    assert_eq!((&fields["month"]["maximum"], &fields["day"]["maximum"]), (&json!(12), &json!(31)));
    let save = tool("saveExpenseToLark");
    assert_eq!(save["parameters"]["required"], json!(["remark", "category", "amount"]));
    let categories = save["parameters"]["properties"]["category"]["enum"].as_array().unwrap();
    assert_eq!(categories.len(), 15);
}
