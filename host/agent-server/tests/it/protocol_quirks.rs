//! Behaviors of the protocol that differ from what a client may expect.

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, header};
use futures::StreamExt as _;
use serde_json::{Value, json};
use wattle_api::ApiConfig;

use crate::host::{Host, request};

fn slow() -> Value {
    json!({ "assistant_id": "slow", "input": { "word": "a" } })
}

#[tokio::test(start_paused = true)]
async fn wait_sends_an_empty_line_every_five_seconds() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    let response =
        host.raw(request("POST", &format!("/threads/{id}/runs/wait"), Some(slow()))).await;
    let begun = tokio::time::Instant::now();
    let mut body = response.into_body().into_data_stream();
    for count in 1..=2 {
        assert_eq!(body.next().await.unwrap().unwrap(), "\n");
        assert_eq!(begun.elapsed().as_secs(), 5 * count);
    }
    host.release.send_replace(true);
    let mut rest = Vec::new();
    while let Some(chunk) = body.next().await {
        rest.extend(chunk.unwrap());
    }
    let values: Value = serde_json::from_slice(&rest).unwrap();
    assert_eq!(values["items"], json!(["a"]));
}

#[tokio::test]
async fn delete_returns_no_content() {
    let host = Host::new();
    let id = host.thread().await;
    let ended = host.post(&format!("/threads/{id}/runs/wait"), slow()).await;
    let run = ended.header("content-location").to_owned();
    let assistant = host.post("/assistants", json!({ "graph_id": "slow" })).await.ok();
    let assistant = format!("/assistants/{}", assistant["assistant_id"].as_str().unwrap());
    let nightly = json!({ "assistant_id": "slow", "schedule": "15 3 * * *", "input": {} });
    let cron = host.post("/runs/crons", nightly).await.ok();
    let cron = format!("/runs/crons/{}", cron["cron_id"].as_str().unwrap());
    let item = json!({ "namespace": ["a"], "key": "k", "value": {} });
    assert_eq!(host.call("PUT", "/store/items", Some(item)).await.status, 204);
    let which = json!({ "namespace": ["a"], "key": "k" });
    for (path, body) in [
        (run, None),
        (format!("/threads/{id}"), None),
        (assistant, None),
        (cron, None),
        ("/store/items".to_owned(), Some(which)),
    ] {
        let deleted = host.call("DELETE", &path, body).await;
        assert_eq!((deleted.status, &*deleted.text), (204, ""), "{path}");
    }
}

#[tokio::test]
async fn limit_of_zero_is_rejected_in_a_body_and_lists_nothing_in_a_query() {
    let host = Host::new();
    let id = host.thread().await;
    host.post(&format!("/threads/{id}/runs/wait"), slow()).await.ok();
    let assistant = host.post("/assistants", json!({ "graph_id": "slow" })).await.ok();
    let assistant = assistant["assistant_id"].as_str().unwrap();
    for path in [
        "/threads/search".to_owned(),
        format!("/threads/{id}/history"),
        "/assistants/search".to_owned(),
        format!("/assistants/{assistant}/versions"),
        "/runs/crons/search".to_owned(),
    ] {
        let refused = host.post(&path, json!({ "limit": 0 })).await;
        assert_eq!(refused.status, 422, "{path}: {}", refused.text);
        assert!(refused.text.contains("`limit` must be 1 or more"), "{path}: {}", refused.text);
        host.post(&path, json!({ "limit": 1 })).await.ok();
    }
    let listed = async |query: &str| host.get(&format!("/threads/{id}/{query}")).await.ok();
    let latest = listed("history").await[0]["checkpoint_id"].clone();
    let before = format!("history?limit=0&before={}", latest.as_str().unwrap());
    for query in ["runs?limit=0", "history?limit=0", before.as_str()] {
        assert_eq!(listed(query).await, json!([]), "{query}");
    }
    let command = json!({ "id": 1, "method": "state.listCheckpoints", "params": { "limit": 0 } });
    let refused = host.post(&format!("/threads/{id}/commands"), command).await.ok();
    assert_eq!(
        (&refused["type"], &refused["error"]),
        (&json!("error"), &json!("invalid_argument"))
    );
}

#[tokio::test]
async fn stream_returns_the_location_that_resumes_it() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    let mut run = slow();
    run["stream_mode"] = json!(["values", "tasks"]);
    let path = format!("/threads/{id}/runs/stream");
    let response = host.raw(request("POST", &path, Some(run))).await;
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    // The location has no origin, so that it is valid behind any proxy.
    assert!(location.starts_with(&format!("/threads/{id}/runs/")), "{location}");
    let mut body = response.into_body().into_data_stream();
    let first = String::from_utf8(body.next().await.unwrap().unwrap().to_vec()).unwrap();
    let event = first.split("\r\n").find_map(|line| line.strip_prefix("id: ")).unwrap();
    drop(body);
    host.wait_for_started(1).await;
    host.release.send_replace(true);
    let mut again = request("GET", &location, None);
    again.headers_mut().insert("last-event-id", event.parse().unwrap());
    let rest = host.send(again).await.frames();
    assert!(rest.iter().all(|(kind, ..)| kind == "values" || kind == "tasks"), "{rest:?}");
    assert_eq!(rest.last().unwrap().1["items"], json!(["a"]));
    let joined = host.get(&format!("{location}?stream_mode=custom&stream_mode=")).await;
    assert_eq!(joined.header("location"), format!("{location}?stream_mode=custom"));
}

#[tokio::test]
async fn cors_exposes_location_headers() {
    let origin = "https://ui.example";
    let host = Host::with_config(ApiConfig {
        origins: [origin.to_owned()].into(),
        ..ApiConfig::default()
    });
    let id = host.thread().await;
    let mut wait = request("POST", &format!("/threads/{id}/runs/wait"), Some(slow()));
    wait.headers_mut().insert(header::ORIGIN, origin.parse().unwrap());
    let answer = host.send(wait).await;
    assert_eq!(answer.header("access-control-allow-origin"), origin);
    let exposed = lower(&answer.headers, "access-control-expose-headers");
    for name in [
        "content-location",
        "location",
        "x-pagination-total",
        "x-pagination-next",
        "x-wattle-ignored-keys",
    ] {
        assert!(exposed.contains(name), "{name} of {exposed}");
    }
    let asks = Request::builder().method(Method::OPTIONS).uri("/threads");
    let asks = asks.header("host", "localhost").header(header::ORIGIN, origin);
    let asks = asks.header(header::ACCESS_CONTROL_REQUEST_METHOD, "PATCH");
    let answer = host.send(asks.body(Body::empty()).unwrap()).await;
    let allowed = lower(&answer.headers, "access-control-allow-headers");
    for name in ["content-type", "x-api-key", "last-event-id", "prefer"] {
        assert!(allowed.contains(name), "{name} of {allowed}");
    }
}

fn lower(headers: &HeaderMap, name: &str) -> String {
    headers[name].to_str().unwrap().to_lowercase()
}
