//! Tests of sessions as traces in Langfuse.

use serde_json::Value;
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::reasoning::Reasoning;
use wattle_suite::server::Setup;

/// The path where the stand-in receives traces.
const TRACES: &str = "/api/public/otel/v1/traces";

const QUESTION: &str = "查询手机号13800138000的客户";

fn of_type<'a>(spans: &'a [Value], kind: &str) -> Vec<&'a Value> {
    spans.iter().filter(|it| it["attributes"]["langfuse.observation.type"] == kind).collect()
}

async fn asked(app: &Reasoning<'_>) -> String {
    let session = app.ask(QUESTION).await;
    assert_eq!(app.run(&session).await["status"], "completed");
    session
}

#[tokio::test]
async fn s1_61_s1_64_every_call_of_a_session_is_a_span() {
    let server = Setup::reasoning().await.with_telemetry().start().await;
    let session = asked(&server.reasoning()).await;
    let entry = server.standin().wait_for_request(|it| it.path == TRACES).await.unwrap();
    let spans = entry.body.unwrap()["spans"].as_array().cloned().unwrap();
    let asked = of_type(&spans, "generation").into_iter();
    let answered = asked.filter(|it| !it["attributes"]["gen_ai.usage.output_tokens"].is_null());
    assert_eq!(answered.count(), 5);
    assert_eq!(of_type(&spans, "tool").len(), 10);
    for span in &spans {
        assert_eq!(span["attributes"]["session.id"], session.as_str());
    }
    let events = serde_json::to_string(&spans).unwrap();
    assert!(events.contains("task_planned"), "custom events are included");
}

#[tokio::test]
async fn s1_66_an_outage_of_langfuse_fails_no_session() {
    let server = Setup::reasoning().await.with_telemetry().start().await;
    let down = Fault::Status { status: 503, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::path(TRACES), down));
    for _ in 0..2 {
        asked(&server.reasoning()).await;
    }
}
