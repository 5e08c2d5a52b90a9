//! What the model is told: always the same, and everything it needs.

use serde_json::{Value, json};
use wattle_suite::expense::MODEL_PATH;
use wattle_suite::guests;
use wattle_suite::server::Setup;

/// The system prompt as it is written in the graph.
fn written() -> String {
    let file = guests::root().join("plugins/apps/expense/graph.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let start = text.split("system = '''\n").nth(1).unwrap();
    start.split("'''").next().unwrap().to_owned()
}

#[tokio::test]
async fn s2_31_the_system_prompt_is_the_same_bytes_at_any_time() {
    let server = Setup::expense().await.start().await;
    server.tell("昨天打车花了20元").await;
    server.clock().set_now_ms(1_767_196_800_000);
    server.tell("前天买书 59.9 元").await;
    let requests = server.requests_to(MODEL_PATH);
    assert_eq!(requests.len(), 6);
    let bodies: Vec<Value> = requests.into_iter().map(|entry| entry.body.unwrap()).collect();
    for body in &bodies {
        assert_eq!(body["messages"][0]["role"], "system");
        // Long texts are named by their digest in the journal.
        assert_eq!(body["messages"][0], bodies[0]["messages"][0]);
        assert_eq!(body["temperature"].as_f64(), Some(0.0), "S2-36");
        assert_eq!(body["tools"], bodies[0]["tools"]);
    }
    let shown = bodies[0]["messages"][0]["content"].as_str().unwrap();
    let size = format!("... {} bytes", written().len());
    assert!(shown.contains(&size) || shown == written(), "{shown}");
    for word in ["CURRENT_TIME", "2025-01-15", "{{"] {
        assert!(!written().contains(word), "{word}");
    }
}

#[test]
fn s2_32_the_prompt_has_the_five_rules_and_the_emphasis() {
    let prompt = written();
    for rule in [
        r#"昨天 → {"type": "relative", "offset": -1, "unit": "day"}"#,
        r#"前天 → {"type": "relative", "offset": -2, "unit": "day"}"#,
        r#"今天 → {"type": "relative", "offset": 0, "unit": "day"}"#,
        r#"明天 → {"type": "relative", "offset": 1, "unit": "day"}"#,
        r#"1月2日 → {"type": "absolute", "month": 1, "day": 2}"#,
        r#"2025年1月2日 → {"type": "absolute", "year": 2025, "month": 1, "day": 2}"#,
        "调用 parseDateExpression",
        "saveExpenseToLark 的 date 参数",
        "不要传 date",
        "严禁自己计算时间戳，严禁把日期写成文字传给 date",
    ] {
        assert!(prompt.contains(rule), "{rule}");
    }
}

#[test]
fn s2_33_the_prompt_has_a_whole_dialogue() {
    let prompt = written();
    let example = prompt.split("## 完整示例").nth(1).unwrap();
    for part in ["用户：", "parseDateExpression：", "saveExpenseToLark：", "✅ 记账成功！"]
    {
        assert!(example.contains(part), "{part}");
    }
    // What it shows is true: 2024-06-13 in Shanghai.
    assert_eq!(example.matches("1718208000000").count(), 3);
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
    assert!(parse["description"].as_str().unwrap().contains("13 位"), "{parse}");
    let fields = &parse["parameters"]["properties"];
    assert_eq!(fields["type"]["enum"], json!(["relative", "absolute"]));
    assert_eq!(fields["unit"]["enum"], json!(["day"]));
    assert_eq!((&fields["month"]["maximum"], &fields["day"]["maximum"]), (&json!(12), &json!(31)));
    let save = tool("saveExpenseToLark");
    assert_eq!(save["parameters"]["required"], json!(["remark", "category", "amount"]));
    let categories = save["parameters"]["properties"]["category"]["enum"].as_array().unwrap();
    assert_eq!(categories.len(), 15);
}
