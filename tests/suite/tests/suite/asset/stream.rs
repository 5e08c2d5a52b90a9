//! `POST /api/ai/asset-graph/stream`: the progress of every node, then the response of `invoke`.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::asset::STREAM;
use wattle_suite::event_stream::{Message, messages};
use wattle_suite::server::{Setup, TestServer};

async fn stream(server: &TestServer, body: &Value) -> Vec<Message> {
    let answer = server.post(STREAM, body).await;
    assert!(answer.header("content-type").starts_with("text/event-stream"));
    messages(answer.expect(200).as_str().unwrap())
}

fn nodes<'a>(messages: &'a [Message], event: &str) -> Vec<&'a str> {
    let of_event = messages.iter().filter(|it| it.event == event);
    of_event.map(|it| it.data["node"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn s0_70_s0_86_events_of_nodes_are_in_order_and_the_review_is_last() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("流").await;
    let messages = stream(&server, &json!({ "textInput": "昨天买入腾讯 100 股 320" })).await;
    let path = ["ingest", "text_classify", "ext_op", "enrich", "check_missing", "present_review"];
    assert_eq!(messages[0].event, "start");
    assert_eq!(nodes(&messages, "node_start"), path);
    assert_eq!(nodes(&messages, "node_end"), path[..5], "the interrupt ends the last one");
    for message in messages.iter().filter(|it| it.event.starts_with("node_")) {
        assert!(!message.data["message"].as_str().unwrap().is_empty(), "{message:?}");
    }
    let review = messages.last().unwrap();
    assert_eq!(review.event, "review");
    assert_eq!(review.data["threadId"], messages[0].data["threadId"]);
    assert_eq!(review.data["reviewPayload"]["rows"][0]["ticker"], "0700.HK");
    let thread = review.data["threadId"].as_str().unwrap();
    let rows = &review.data["reviewPayload"]["rows"];
    server.resume(thread, rows, portfolio).await.expect(200);
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn s0_78_a_model_failure_ends_the_stream_with_the_error_of_invoke() {
    let server = Setup::asset().await.start().await;
    let down = Fault::Status { status: 500, retry_after: Some("0".into()), body: None };
    server.standin().fault(FaultRule::new(Pattern::model("chat"), down));
    let body = json!({ "textInput": "买入腾讯 100 股 320" });
    let messages = stream(&server, &body).await;
    let last = messages.last().unwrap();
    assert_eq!((last.event.as_str(), &last.data["status"]), ("error", &json!(502)));
    let plain = server.post(wattle_suite::asset::INVOKE, &body).await;
    assert_eq!(plain.status, 502);
    assert_eq!(last.data["error"], plain.body["error"]);
}

#[tokio::test]
async fn s0_72_s0_78_the_stream_refuses_the_same_requests_as_invoke() {
    let server = Setup::asset().await.start().await;
    let refused = server.post(STREAM, &json!({})).await;
    assert_eq!(refused.parts(), (400, &json!({ "error": "缺少输入参数" })));
    let body = json!({ "imageData": "data:text/plain;base64,aGk=" });
    let refused = server.post(STREAM, &body).await;
    assert_eq!(refused.parts(), (400, &json!({ "error": "imageData 必须是图片的 data URL" })));
    assert!(server.model_calls().is_empty());
}
