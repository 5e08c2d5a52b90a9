//! Tests of metric labels whose values guests, tenants, models and services choose.

use serde_json::{Value, json};
use wattle_telemetry::TelemetryConfig;

use crate::support::{called, note, tell};

const NO_TRACES: TelemetryConfig = TelemetryConfig { otlp: None, content: false };

fn completion(model: &str, attempted: Option<&str>) -> Value {
    let attempts: Vec<Value> =
        attempted.iter().map(|model| json!({ "provider": "p", "model": model })).collect();
    json!({ "Ok": { "parts": [], "finish_reason": "stop", "usage": {}, "model": model,
        "attempts": attempts } })
}

fn failure(code: &str) -> Value {
    json!({ "Err": { "code": code, "message": "it failed" } })
}

/// Returns the metrics of a run whose calls have `count` different codes, models and routes.
async fn metrics(count: u32) -> String {
    let mut log = Vec::new();
    for n in 0..count {
        let mut add = |function: &str, request: Value, result: Value| {
            let number = log.len() as u32;
            log.push(called(function, number, &[], request, result));
        };
        let chat = json!({ "route": "chat", "messages": [] });
        let served = format!("served-{n}");
        add("llm.complete", chat.clone(), completion(&served, None));
        add("llm.complete", chat.clone(), completion(&served, Some("gpt-4o-mini")));
        add("llm.complete", chat.clone(), completion(&served, Some(&format!("own-{n}"))));
        add("llm.complete", chat, failure("withheld"));
        let unknown = json!({ "route": format!("route-{n}"), "messages": [] });
        add("llm.complete", unknown, failure("denied"));
        let tool = json!({ "tool": "date/parse", "call_id": "c", "arguments": {} });
        add("tools.call", tool, failure(&format!("code-{n}")));
    }
    tell(&NO_TRACES, &log, note(log.len())).await
}

#[tokio::test]
async fn codes_of_guests_and_unconfigured_models_and_routes_add_no_series() {
    let (one, many) = (metrics(1).await, metrics(1_000).await);
    assert_eq!(many.lines().count(), one.lines().count(), "{many}");
    for line in [
        r#"wattle_model_calls_total{route="chat",model="gpt-4o",outcome="ok"} 1000"#,
        r#"wattle_model_calls_total{route="chat",model="gpt-4o-mini",outcome="ok"} 1000"#,
        r#"wattle_model_calls_total{route="chat",model="other",outcome="ok"} 1000"#,
        r#"wattle_model_calls_total{route="chat",model="gpt-4o",outcome="withheld"} 1000"#,
        r#"wattle_model_calls_total{route="other",model="other",outcome="denied"} 1000"#,
        r#"wattle_tool_calls_total{tool="date/parse",outcome="other"} 1000"#,
        r#"wattle_host_call_failures_total{function="tools.call",code="other"} 1000"#,
    ] {
        assert!(many.lines().any(|found| found == line), "{line} is not in\n{many}");
    }
}

#[tokio::test]
async fn tools_beyond_the_limit_are_counted_together() {
    let call = |name: &str, number: u32| {
        let request = json!({ "tool": name, "call_id": "c", "arguments": {} });
        called("tools.call", number, &[], request, failure("unavailable"))
    };
    let mut log = vec![call(&"long".repeat(200), 0)];
    log.extend((1..=1_200).map(|number| call(&format!("tool-{number}"), number)));
    let text = tell(&NO_TRACES, &log, note(log.len())).await;
    let series = text.lines().filter(|line| line.starts_with("wattle_tool_calls_total{"));
    assert_eq!(series.count(), 1_001, "{text}");
    let together = r#"wattle_tool_calls_total{tool="other",outcome="unavailable"} 201"#;
    assert!(text.lines().any(|line| line == together), "{text}");
}
