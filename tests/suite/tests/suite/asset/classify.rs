//! The classification of pictures and texts as one of two kinds.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::asset::picture;
use wattle_suite::server::{Setup, TestServer};

const FALLBACK: &str = "图片无效，已按文字内容处理";

/// The warning for an input that is neither a trade nor a holding.
const NOT_RECOGNIZED: &str = "无法识别为交易或持仓信息";

/// Returns the response schema of the first model request of a route.
fn schema(server: &TestServer, route: &str) -> Value {
    let request = server.model_requests(route).remove(0);
    request.body.unwrap()["response_format"]["json_schema"].clone()
}

#[tokio::test]
async fn s0_32_s0_33_s0_24_texts_are_classified_without_extraction() {
    let server = Setup::asset().await.start().await;
    for (text, task) in [
        ("买入腾讯 100 股 320", "operation"),
        ("卖出苹果 10 股 189.5", "operation"),
        ("已成交：0700.HK 100 股 320", "operation"),
        ("持有贵州茅台 10 股，成本 1500", "holding"),
        ("我的持仓：腾讯 100 股，成本价 300", "holding"),
        ("今天天气很好", "unknown"),
    ] {
        let review = server.invoke_text(text).await;
        assert_eq!(review.payload["type"], task, "{text}");
    }
    let properties = schema(&server, "chat")["schema"]["properties"].clone();
    let fields: Vec<&String> = properties.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["type", "confidence", "reason"]);
    assert_eq!(properties["type"]["enum"], json!(["operation", "holding", "unknown"]));
}

#[tokio::test]
async fn s0_22_s0_92_pictures_are_classified_with_the_current_labels() {
    let server = Setup::asset().await.start().await;
    for (text, task) in
        [("买入腾讯 100 股 320", "operation"), ("持仓：腾讯 100 股，成本 320", "holding")]
    {
        let review = server.invoke_image(text).await;
        assert_eq!(review.payload["type"], task, "{text}");
        assert_eq!(review.rows()[0]["ticker"], "0700.HK", "{}", review.payload);
    }
    let labels = &schema(&server, "vision")["schema"]["properties"]["type"]["enum"];
    assert_eq!(*labels, json!(["operation", "holding", "unknown"]));
    let request = server.model_requests("vision").remove(0).body.unwrap().to_string();
    assert!(!request.contains("trade_record") && !request.contains("position"), "{request}");
    assert!(server.model_requests("chat").is_empty());
}

#[tokio::test]
async fn a3_s0_26_s0_27_s0_29_s0_30_an_unknown_picture_falls_back_to_the_text() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("文字").await;
    let text = "买入腾讯 100 股 320";
    let body = json!({ "imageData": picture("一只猫", 0), "textInput": text });
    let review = server.invoke(&body).await;
    // Classification makes exactly one vision and one chat call. The second chat call extracts.
    assert_eq!(server.model_calls(), ["vision", "chat", "chat"]);
    assert_eq!(review.payload["warnings"], json!([FALLBACK]));
    assert_eq!(review.payload["type"], "operation");
    assert_eq!(review.rows()[0]["ticker"], "0700.HK");
    let state = server.get(&format!("/api/v1/threads/{}/state", review.thread)).await.expect(200);
    assert_eq!(state["inputType"], "text");
    let trace = server.get(&format!("/api/v1/threads/{}/trace", review.thread)).await.expect(200);
    let tasks = trace["runs"][0]["steps"].as_array().unwrap();
    let classify = tasks.iter().flat_map(|step| step["tasks"].as_array().unwrap());
    let classify = classify.filter(|task| task["node"] == "img_classify").collect::<Vec<_>>();
    let calls = classify[0]["attempts"][0]["calls"].as_array().unwrap();
    let models = calls.iter().filter(|call| call["function"] == "llm.complete").count();
    assert_eq!(models, 2, "both calls belong to the node: {calls:?}");
    server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn s0_28_an_unknown_picture_without_a_text_makes_no_further_calls() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_image("一只猫").await;
    assert_eq!(server.model_calls(), ["vision"]);
    let payload =
        json!({ "type": "unknown", "rows": [], "missingFields": [], "warnings": [NOT_RECOGNIZED] });
    assert_eq!(review.payload, payload);
}

#[tokio::test]
async fn s0_58_s0_88_an_unknown_text_is_reported_in_the_payload() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("今天天气很好").await;
    assert_eq!(review.payload["warnings"], json!([NOT_RECOGNIZED]));
    assert_eq!((&review.payload["type"], review.rows()), (&json!("unknown"), json!([])));
}

#[tokio::test]
async fn s0_23_former_labels_are_accepted() {
    for (former, task) in [("trade_record", "operation"), ("position", "holding")] {
        let server = Setup::asset().await.start().await;
        let label = json!({ "type": former, "confidence": 0.9, "reason": "" }).to_string();
        // The completion, and the repair that the host requests.
        let rule = FaultRule::new(Pattern::model("vision"), Fault::Content { text: label });
        server.standin().fault(rule.times(2));
        let review = server.invoke_image("买入腾讯 100 股 320").await;
        assert_eq!(review.payload["type"], task, "{}", review.payload);
    }
}

#[tokio::test]
async fn s0_15_s0_31_the_warning_is_kept_if_the_text_is_unknown_too() {
    let server = Setup::asset().await.start().await;
    let body = json!({ "imageData": picture("一只猫", 0), "textInput": "今天天气很好" });
    let review = server.invoke(&body).await;
    assert_eq!(server.model_calls(), ["vision", "chat"]);
    let payload = json!({ "type": "unknown", "rows": [], "missingFields": [],
                "warnings": [FALLBACK, NOT_RECOGNIZED] });
    assert_eq!(review.payload, payload);
}

#[tokio::test]
async fn s0_15_warnings_of_several_nodes_are_combined() {
    let server = Setup::asset().await.start().await;
    let body = json!({ "imageData": picture("一只猫", 0), "textInput": "买入青杉玩偶 100 股 200" });
    let review = server.invoke(&body).await;
    assert_eq!(review.payload["warnings"], json!([FALLBACK, "UNKNOWN ticker: 青杉玩偶"]));
}

#[tokio::test]
async fn s0_23_an_unknown_label_is_repaired_or_becomes_unknown() {
    let server = Setup::asset().await.start().await;
    let odd = json!({ "type": "receipt", "confidence": 0.9, "reason": "" }).to_string();
    let rule = FaultRule::new(Pattern::model("vision"), Fault::Content { text: odd });
    server.standin().fault(rule.clone().times(1));
    let review = server.invoke_image("买入腾讯 100 股 320").await;
    assert_eq!(review.payload["type"], "operation", "the host requested a repair");
    assert_eq!(server.model_calls(), ["vision", "vision", "vision"]);
    server.standin().fault(rule);
    let review = server.invoke_image("买入腾讯 100 股 320").await;
    assert_eq!(review.payload["type"], "unknown", "the repair was invalid, too");
}
