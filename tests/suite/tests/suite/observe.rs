//! Tests of traces and metrics of a whole server: asset runs, agent runs, and an unavailable
//! service.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use wattle_kit::standin::{Entry, Fault, FaultRule, Pattern, redact};
use wattle_suite::desk::Desk;
use wattle_suite::server::{Setup, TestServer};

/// The path where the stand-in receives traces.
const TRACES: &str = "/api/public/otel/v1/traces";

const TRADE: &str = "昨天买入腾讯 100 股 320";

fn spans_of(entry: &Entry) -> Vec<Value> {
    let body = entry.body.as_ref().filter(|_| entry.path == TRACES);
    body.and_then(|body| body["spans"].as_array()).cloned().unwrap_or_default()
}

/// Returns all spans as soon as there are at least `count` traces.
async fn traces(server: &TestServer, count: usize) -> BTreeMap<String, Vec<Value>> {
    loop {
        let mut traces: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for span in server.standin().requests().iter().flat_map(spans_of) {
            traces.entry(text(&span["trace_id"]).to_owned()).or_default().push(span);
        }
        if traces.len() >= count {
            return traces;
        }
        let seen = server.standin().requests().last().map_or(0, |entry| entry.id);
        let more = |entry: &Entry| entry.path == TRACES && entry.id > seen;
        server.standin().wait_for_request(more).await.unwrap();
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn of_type<'a>(spans: &'a [Value], kind: &str) -> Vec<&'a Value> {
    spans.iter().filter(|it| it["attributes"]["langfuse.observation.type"] == kind).collect()
}

#[tokio::test]
async fn s1_61_asset_runs_are_traces_of_one_session() {
    let server = Setup::asset().await.with_telemetry().start().await;
    let portfolio = server.portfolio("长期").await;
    let review = server.invoke_text(TRADE).await;
    server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    let traces = traces(&server, 2).await;
    let roots: Vec<&Value> = traces.values().flat_map(|spans| of_type(spans, "agent")).collect();
    let mut statuses: Vec<&str> =
        roots.iter().map(|root| text(&root["attributes"]["wattle.status"])).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, ["completed", "interrupted"]);
    for span in traces.values().flatten() {
        assert_eq!(span["attributes"]["session.id"], review.thread.as_str());
        assert_eq!(span["attributes"]["langfuse.trace.name"], "asset/AssetGraph");
    }
    let asked = traces.values().find(|spans| !of_type(spans, "generation").is_empty()).unwrap();
    let models = of_type(asked, "generation");
    assert_eq!(models.len(), 2);
    let attributes = &models[0]["attributes"];
    assert_eq!(attributes["gen_ai.request.model"], "chat");
    assert_eq!(attributes["gen_ai.provider.name"], "standin");
    assert!(attributes["gen_ai.usage.input_tokens"].as_u64() > Some(0));
    assert!(text(&attributes["langfuse.observation.input"]).contains("腾讯"));
    let root = of_type(asked, "agent")[0];
    assert!(text(&root["attributes"]["langfuse.observation.input"]).contains("腾讯"));
    let entry = server.standin().requests().into_iter().find(|it| it.path == TRACES).unwrap();
    let basic = "Basic c3VpdGUtbW9kZWwta2V5OnN1aXRlLW1vZGVsLWtleQ==";
    assert_eq!(entry.headers["authorization"], redact(basic));
    let all = serde_json::to_string(&traces).unwrap();
    assert!(!all.contains("suite-model-key") && !all.contains("suite-massive-key"));
}

#[tokio::test]
async fn tool_calls_are_spans_that_contain_their_calls() {
    let server = Setup::desk(&Desk::default()).await.with_telemetry().start().await;
    server.chat("call echo {\"text\":\"a\"}").await;
    let traces = traces(&server, 1).await;
    let spans = traces.values().next().unwrap();
    let tools = of_type(spans, "tool");
    assert_eq!(tools.len(), 1, "{spans:#?}");
    assert_eq!(tools[0]["attributes"]["gen_ai.operation.name"], "execute_tool");
    assert_eq!(of_type(spans, "generation").len(), 2, "before and after the tool");
    let ids: Vec<&Value> = spans.iter().map(|span| &span["span_id"]).collect();
    let known = |span: &&Value| ids.contains(&&span["parent_span_id"]);
    assert_eq!(spans.iter().filter(known).count(), spans.len() - 1, "only one is a root");
}

#[tokio::test]
async fn s1_66_an_outage_affects_no_run_and_the_shutdown_has_a_limit() {
    let server = Setup::asset().await.with_telemetry().start().await;
    let on = Pattern::path(TRACES);
    server.standin().fault(FaultRule { on, fault: Fault::Hang, times: None, skip: 0 });
    let started = Instant::now();
    for _ in 0..3 {
        server.invoke_text(TRADE).await;
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let stopping = Instant::now();
    server.running.shutdown().await;
    assert!(stopping.elapsed() < Duration::from_secs(12), "{:?}", stopping.elapsed());
}

#[tokio::test]
async fn metrics_require_a_key() {
    let server = Setup::asset().await.with_keys("k-1").start().await;
    let refused = server.request("GET", "/metrics").send().await.unwrap();
    assert_eq!(refused.status(), 401);
    let start = server.request("POST", "/api/ai/asset-graph/invoke").bearer_auth("k-1");
    let body = serde_json::json!({ "textInput": TRADE });
    assert!(start.json(&body).send().await.unwrap().status().is_success());
    // The worker updates the metrics shortly after the run has ended.
    let text = loop {
        let answer = server.request("GET", "/metrics").bearer_auth("k-1").send().await.unwrap();
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
        let text = answer.text().await.unwrap();
        if text.contains("wattle_model_calls_total{") {
            break text;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    for line in [
        r#"wattle_runs_total{app="asset",graph="AssetGraph",status="interrupted"} 1"#,
        r#"wattle_model_calls_total{route="chat",model="chat",outcome="ok"} 2"#,
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}
