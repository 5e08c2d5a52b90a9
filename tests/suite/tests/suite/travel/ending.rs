//! Tests of how runs end, and of the session afterwards.

use std::collections::VecDeque;

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::server::Setup;
use wattle_suite::travel::{CHAT_MODEL, IMAGEN, TOKYO, UNSPLASH};

fn talk() -> Pattern {
    Pattern::path(CHAT_MODEL)
}

/// Returns a completion in which the model calls a tool.
fn asks(tool: &str, arguments: &Value) -> Value {
    json!({"tool_calls": [{"name": tool, "arguments": arguments}]})
}

fn script(answers: impl IntoIterator<Item = Value>) -> FaultRule {
    FaultRule::new(talk(), Fault::Script { contents: VecDeque::from_iter(answers) })
}

#[tokio::test]
async fn s3_06_s3_13_after_nine_model_calls_the_run_ends_without_an_error() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let again = asks("parse_youtube_input", &json!({"userText": TOKYO}));
    server.standin().fault(script(std::iter::repeat_n(again, 12)));
    let (session, said) = travel.make(TOKYO).await;
    assert_eq!(server.requests_on(CHAT_MODEL).len(), 9);
    assert_eq!(said.tools().len(), 9);
    assert!(said.is_done && said.errors().is_empty() && said.of("finish").len() == 1);
    let shown = travel.session(&session).await;
    assert_eq!((&shown["status"], &shown["lastError"]), (&json!("COMPLETED"), &Value::Null));
    server.standin().clear_faults();
    let said = travel.chat(&session, "go on").await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
}

#[tokio::test]
async fn s3_67_an_unavailable_model_fails_the_run_and_can_be_called_again() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    let away = Fault::Status { status: 401, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(talk(), away).skip(2));
    let (session, said) = travel.make(TOKYO).await;
    assert_eq!(said.errors().len(), 1, "{:#?}", said.chunks);
    let shown = travel.session(&session).await;
    assert_eq!(shown["status"], "ERROR");
    let why = shown["lastError"].as_str().unwrap();
    assert!(why.contains("chat_orchestration"), "{why}");
    let parts = shown["messages"][1]["parts"].as_array().unwrap();
    let finished = parts.iter().filter(|part| part["state"] == "output-available");
    assert_eq!(finished.count(), 2, "finished steps are stored: {parts:#?}");
    server.standin().clear_faults();
    let said = travel.chat(&session, "again").await;
    assert_eq!(said.tools()[0], "build_travel_blocks");
    let shown = travel.session(&session).await;
    assert_eq!((&shown["status"], &shown["lastError"]), (&json!("COMPLETED"), &Value::Null));
}

#[tokio::test]
async fn s3_72_a_later_success_clears_an_error() {
    let server = Setup::travel().await.start().await;
    let travel = server.travel();
    // The search fails once: neither a photograph nor a generated picture is available.
    let away = |on: &str| {
        let fault = Fault::Status { status: 403, retry_after: None, body: None };
        FaultRule::new(Pattern::path(on), fault)
    };
    for on in [UNSPLASH, IMAGEN, "/v1beta/models/gemini-2.5-flash-image*"] {
        server.standin().fault(away(on));
    }
    let (session, said) = travel.make(TOKYO).await;
    assert!(!said.tool_error("search_image").is_empty(), "{:#?}", said.chunks);
    let shown = travel.session(&session).await;
    assert_eq!((&shown["status"], &shown["failedStep"]), (&json!("ERROR"), &json!("search_image")));
    server.standin().clear_faults();
    let said = travel.chat(&session, "please use generated pictures").await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    let shown = travel.session(&session).await;
    assert_eq!((&shown["status"], &shown["failedStep"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(shown["state"]["context"]["imageMode"], "imagen");
}
