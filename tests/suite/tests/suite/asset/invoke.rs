//! From an input to the review: the two paths, refused inputs, and the shape of the graph.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::asset::{INVOKE, picture};
use wattle_suite::server::Setup;

const TRADE: &str = "昨天买入腾讯 100 股 320";

#[tokio::test]
async fn a1_a_sentence_is_stored_as_rows_with_two_model_calls() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("长期").await;
    let review = server.invoke_text(TRADE).await;
    let row = json!({
        "ticker": "0700.HK", "name": "腾讯", "action": "buy", "quantity": 100, "price": 320,
        "currency": "HKD", "tradedAt": "2025-01-14",
    });
    assert_eq!(
        review.payload,
        json!({ "type": "operation", "rows": [row], "missingFields": [], "warnings": [] })
    );
    assert_eq!(server.model_calls(), ["chat", "chat"]);
    let stored = server.resume(&review.thread, &review.rows(), portfolio).await;
    assert_eq!(stored.parts(), (200, &json!({ "storeResult": { "success": true, "ids": [1] } })));
    assert_eq!(
        server.rows("Operation").await,
        [json!({
            "id": 1, "ticker": "0700.HK", "name": "腾讯", "action": "buy", "quantity": 100.0,
            "price": 320.0, "currency": "HKD", "tradedAt": "2025-01-14", "memo": null,
            "riskCategory": "aggressive", "portfolioId": portfolio,
            "createdAt": "2025-01-15T02:30:45Z",
        })]
    );
    assert_eq!(server.counts().await, [1, 0, 1]);
    assert_eq!(server.model_calls(), ["chat", "chat"], "storing calls no model");
    assert!(server.massive_searches().is_empty(), "the app's table has this security");
}

#[tokio::test]
async fn a2_a_picture_of_trades_calls_the_vision_model_twice() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("截图").await;
    let review = server.invoke_image("卖出苹果 10 股 189.5，买入茅台 100 股 1500").await;
    assert_eq!(server.model_calls(), ["vision", "vision"]);
    let rows = review.rows();
    assert_eq!((&rows[0]["ticker"], &rows[0]["action"]), (&json!("AAPL"), &json!("sell")));
    assert_eq!((&rows[1]["ticker"], &rows[1]["currency"]), (&json!("600519.SS"), &json!("CNY")));
    let stored = server.resume(&review.thread, &rows, portfolio).await.expect(200);
    assert_eq!(stored["storeResult"]["ids"], json!([1, 2]));
    assert_eq!(server.counts().await, [2, 0, 1]);
}

#[tokio::test]
async fn s0_01_s0_08_s0_19_s0_20_s0_21_the_graph_has_nine_nodes_and_two_named_branches() {
    let server = Setup::asset().await.start().await;
    let app = server.get("/api/v1/apps/asset").await.expect(200);
    assert_eq!(app["graphs"], json!(["AssetGraph"]), "one graph for both inputs");
    let graph = server.get("/api/v1/apps/asset/graphs/AssetGraph").await.expect(200);
    let definition = &graph["definition"];
    let nodes: BTreeSet<&str> =
        definition["nodes"].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "ingest",
        "img_classify",
        "text_classify",
        "ext_op",
        "ext_hold",
        "enrich",
        "check_missing",
        "present_review",
        "store_db",
    ];
    assert_eq!(nodes, BTreeSet::from(expected));
    let names: Vec<&Value> =
        definition["branches"].as_array().unwrap().iter().map(|branch| &branch["name"]).collect();
    assert_eq!(names, ["routeInput", "routeByTask"]);
    insta::assert_snapshot!("asset_graph", graph["mermaid"].as_str().unwrap());
}

#[tokio::test]
async fn s0_09_s0_13_s0_14_the_state_has_the_named_fields_and_no_others() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("状态").await;
    let review = server.invoke_text(TRADE).await;
    let path = format!("/api/v1/threads/{}/state", review.thread);
    let state = server.get(&path).await.expect(200);
    assert_eq!((&state["inputType"], &state["textInput"]), (&json!("text"), &json!(TRADE)));
    assert_eq!(state["task"], "operation");
    assert_eq!(state["extractedData"], review.rows());
    server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    let state = server.get(&path).await.expect(200);
    let fields: BTreeSet<&str> = state.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "inputType",
        "imageData",
        "textInput",
        "task",
        "extractedData",
        "reviewPayload",
        "confirmedData",
        "storeResult",
    ];
    assert_eq!(fields, BTreeSet::from(expected));
    assert_eq!(state["storeResult"], json!({ "success": true, "ids": [1] }));
    assert_eq!(state["confirmedData"]["portfolioId"], portfolio);
    assert_eq!(state["reviewPayload"], review.payload);
}

#[tokio::test]
async fn s0_16_s0_18_blank_inputs_count_as_absent_and_texts_are_trimmed() {
    let server = Setup::asset().await.start().await;
    for image in [json!(""), json!("  "), json!(null)] {
        let body = json!({ "imageData": image, "textInput": format!("  {TRADE}\n") });
        let review = server.invoke(&body).await;
        let state = server.get(&format!("/api/v1/threads/{}/state", review.thread)).await.body;
        assert_eq!((&state["inputType"], &state["textInput"]), (&json!("text"), &json!(TRADE)));
    }
    assert!(server.model_requests("vision").is_empty());
}

#[tokio::test]
async fn s0_17_s0_25_a_picture_takes_precedence_and_the_text_is_its_context() {
    let server = Setup::asset().await.start().await;
    let body = json!({ "imageData": picture(TRADE, 0), "textInput": "这是富途的截图" });
    let review = server.invoke(&body).await;
    assert_eq!(review.payload["type"], "operation");
    assert_eq!(server.model_calls(), ["vision", "vision"]);
    for request in server.model_requests("vision") {
        let body = request.body.unwrap().to_string();
        assert!(body.contains("这是富途的截图"), "{body}");
        assert!(body.contains("\"image_url\"") && body.contains("data:image/png;base64,"));
    }
}

#[tokio::test]
async fn a9_s0_72_a_request_without_an_input_is_400() {
    let server = Setup::asset().await.start().await;
    for body in [
        json!({}),
        json!({ "imageData": "", "textInput": "   " }),
        json!({ "imageData": null, "textInput": null }),
    ] {
        let refused = server.post(INVOKE, &body).await;
        assert_eq!(refused.parts(), (400, &json!({ "error": "缺少输入参数" })), "{body}");
    }
    assert!(server.model_calls().is_empty());
    assert_eq!(server.get("/api/v1/threads").await.body["items"], json!([]));
}

#[tokio::test]
async fn s0_78_an_invalid_picture_or_body_is_400() {
    let server = Setup::asset().await.start().await;
    for image in [
        "https://example.com/a.png",
        "data:text/plain;base64,aGk=",
        "data:image/png;base64,@@@",
        "data:image/png;base64,",
        "iVBORw0KGgo=",
    ] {
        let refused = server.post(INVOKE, &json!({ "imageData": image })).await;
        let error = json!({ "error": "imageData 必须是图片的 data URL" });
        assert_eq!(refused.parts(), (400, &error), "{image}");
    }
    for body in ["", "买入", "[1]", "{\"textInput\": 5}"] {
        let request = server.request("POST", INVOKE).header("content-type", "application/json");
        let refused = Answer::of(request.body(body)).await;
        assert_eq!(refused.parts(), (400, &json!({ "error": "请求格式不正确" })), "{body}");
    }
    assert!(server.model_calls().is_empty());
}

#[tokio::test]
async fn s0_78_a_picture_of_more_than_10_mib_is_413() {
    let server = Setup::asset().await.start().await;
    let body = json!({ "imageData": picture("买入腾讯", (10 << 20) + 1) });
    let refused = server.post(INVOKE, &body).await;
    assert_eq!(refused.status, 413, "{}", refused.body);
    assert!(refused.body["error"].is_string());
    assert!(server.model_calls().is_empty());
}

#[tokio::test]
async fn s0_78_a_model_failure_is_502_and_leaves_no_interrupted_thread() {
    let server = Setup::asset().await.start().await;
    let broken = Fault::Status { status: 500, retry_after: Some("0".into()), body: None };
    // First the classification fails, then the extraction.
    for (calls, fault) in [(0, broken.clone()), (1, broken), (1, Fault::InvalidJsonContent)] {
        server.standin().clear_faults();
        server.standin().fault(FaultRule::new(Pattern::model("chat"), fault).skip(calls));
        let failed = server.post(INVOKE, &json!({ "textInput": TRADE })).await;
        assert_eq!(failed.status, 502, "{}", failed.body);
        let error = failed.body["error"].as_str().unwrap();
        assert!(error.starts_with("AI 解析失败: "), "{error}");
        let open = server.get("/api/v1/threads?status=interrupted").await.expect(200);
        assert_eq!(open["items"], json!([]));
    }
    server.standin().clear_faults();
    assert_eq!(server.invoke_text(TRADE).await.payload["type"], "operation");
}

#[tokio::test]
async fn s0_70_s0_80_each_invoke_creates_a_thread() {
    let server = Setup::asset().await.start().await;
    let (one, two) = tokio::join!(server.invoke_text(TRADE), server.invoke_text(TRADE));
    assert_ne!(one.thread, two.thread);
    for thread in [one.thread, two.thread] {
        let groups: Vec<usize> = thread.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{thread} is a UUID");
    }
}

#[tokio::test]
async fn s0_02_s0_07_each_model_node_makes_one_call_with_its_own_prompt() {
    let server = Setup::asset().await.start().await;
    for text in [TRADE, "持有腾讯 100 股，成本 320"] {
        server.invoke_text(text).await;
        server.invoke_image(text).await;
    }
    let mut prompts = BTreeSet::new();
    for request in server.model_requests("chat").iter().chain(&server.model_requests("vision")) {
        let messages = &request.body.as_ref().unwrap()["messages"];
        assert_eq!(messages[0]["role"], "system");
        prompts.insert(messages[0]["content"].to_string());
    }
    assert_eq!(prompts.len(), 6, "two classifiers, two extractors per input: {prompts:#?}");
    assert_eq!(server.model_calls().len(), 8);
}
