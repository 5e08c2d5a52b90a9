//! Tests of the complete requests to models, as the provider receives them.

use serde_json::Value;
use wattle_kit::standin::Entry;
use wattle_suite::nl2sql::says;
use wattle_suite::server::{Setup, TestServer};

/// Starts a server that allows questions about one table only, so that the requests are short
/// enough to be read.
async fn server() -> TestServer {
    let settings = "settings = { business_tables = [\"customers\"] }\n[model.routes.intent]";
    Setup::nl2sql().await.replace("[model.routes.intent]", settings).start().await
}

/// Returns the request as text: first everything but the messages as JSON, then the messages as
/// they are.
fn shown(entry: &Entry) -> String {
    let mut body = entry.body.clone().unwrap_or_default();
    let messages = body.as_object_mut().and_then(|body| body.remove("messages"));
    let mut text = serde_json::to_string_pretty(&body).unwrap();
    for message in messages.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let (role, content) = (&message["role"], &message["content"]);
        let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        text.push_str(&format!("\n\n--- {}\n{content}", role.as_str().unwrap_or_default()));
    }
    assert!(!text.contains("blake3"), "the journal has truncated the request: {text}");
    text
}

#[tokio::test]
async fn s4_14_s4_16_s4_17_s4_42_requests_match_their_snapshots() {
    let server = server().await;
    server.ask_in("talk", "上海有多少客户").await;
    server.standin().clear_requests();
    let wrong = serde_json::json!({
        "intent": "business_query", "entities": [], "dimensions": [], "metrics": [],
        "filters": [{"field": "customers.town", "op": "=", "value": "北京市"}],
        "time_range": {"start": null, "end": null}, "operation": "aggregate", "confidence": 0.9,
    });
    says(&server, "parse", &wrong, 1);
    let result = server.ask_in("talk", "北京市有多少客户").await;
    assert_eq!(result["hidden_context_retry_count"], 1, "{result}");
    for (role, count) in [("intent", 1), ("parse", 2), ("sql", 2), ("summary", 1)] {
        let requests = server.model_requests(role);
        assert_eq!(requests.len(), count, "{role}");
        for (index, request) in requests.iter().enumerate() {
            insta::assert_snapshot!(format!("request_{role}_{}", index + 1), shown(request));
        }
    }
}
