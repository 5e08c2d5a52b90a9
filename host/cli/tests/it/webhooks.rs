//! Webhooks of a whole server, over real sockets: the outbound guard, signatures, a restart.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wattle::config::StoreKind;
use wattle::server::{Server, ServerOptions};
use wattle_agent_server::webhooks::SigningKey;

use crate::fixture::{answer, config, options, write_app};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

type Message = (HeaderMap, Bytes);

async fn take(
    State(sender): State<mpsc::UnboundedSender<Message>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let _ = sender.send((headers, body));
    StatusCode::OK
}

async fn send_on() -> impl IntoResponse {
    (StatusCode::FOUND, [(header::LOCATION, "/hook")])
}

/// Starts two endpoints: one accepts webhooks, the other redirects.
async fn receiver() -> (String, mpsc::UnboundedReceiver<Message>) {
    let (sender, got) = mpsc::unbounded_channel();
    let router: Router = Router::new()
        .route("/hook", post(take).get(take))
        .route("/elsewhere", post(send_on))
        .with_state(sender);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), got)
}

fn signed() -> ServerOptions {
    let mut options = options();
    let secret = |name: &str| (name == "HOOK_SECRET").then(|| SECRET.to_owned());
    options.overrides.env = Some(Arc::new(secret));
    options
}

const ALLOWED: &str =
    "[server.webhooks]\nallow = [\"http://127.0.0.1:*\"]\nsecret_env = \"HOOK_SECRET\"\n";

fn run(hook: &str) -> Value {
    json!({ "assistant_id": "Greet", "input": { "name": "Ada" }, "webhook": hook })
}

#[tokio::test]
async fn a_webhook_is_delivered_after_a_restart() {
    let (hooks, mut got) = receiver().await;
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut config = config(folder.path(), ALLOWED);
    config.store.kind = StoreKind::Redb;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(config.clone(), signed()).await.unwrap();
    let url = format!("{}/runs/wait", server.url());
    let elsewhere = run(&format!("{hooks}/elsewhere"));
    assert_eq!(answer(client.post(&url).json(&elsewhere)).await.0, 200);
    let (status, values) = answer(client.post(&url).json(&run(&format!("{hooks}/hook")))).await;
    assert_eq!(status, 200, "{values}");
    let (headers, body) = got.recv().await.unwrap();
    let told: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&told["status"], &told["values"]), (&json!("success"), &values));
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let key = SigningKey::new(SECRET).unwrap();
    let timestamp_s = text("webhook-timestamp").parse().unwrap();
    assert_eq!(text("webhook-signature"), key.sign(&text("webhook-id"), timestamp_s, &body));
    // The run starts while the host stops. The webhook about its end must still be delivered.
    let mut later = run(&format!("{hooks}/hook"));
    later["after_seconds"] = json!(0.3);
    let (status, made) = answer(client.post(format!("{}/runs", server.url())).json(&later)).await;
    assert_eq!(status, 200, "{made}");
    server.shutdown().await;
    let server = Server::start(config, signed()).await.unwrap();
    let (headers, _) = got.recv().await.unwrap();
    assert_eq!(headers["webhook-id"].to_str().unwrap(), made["run_id"].as_str().unwrap());
    server.shutdown().await;
    assert!(got.try_recv().is_err(), "a redirect was followed, or an end was reported twice");
}

#[tokio::test]
async fn private_addresses_need_a_rule() {
    let (hooks, mut got) = receiver().await;
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(config(folder.path(), ""), options()).await.unwrap();
    let url = format!("{}/runs/wait", server.url());
    for hook in [hooks.as_str(), "http://[::1]/", "http://169.254.169.254/", "http://10.0.0.1/"] {
        let (status, refused) = answer(client.post(&url).json(&run(hook))).await;
        assert_eq!(status, 422, "{hook}: {refused}");
    }
    server.shutdown().await;
    let server = Server::start(config(folder.path(), ALLOWED), signed()).await.unwrap();
    let url = format!("{}/runs/wait", server.url());
    let metadata = run("http://169.254.169.254/");
    assert_eq!(answer(client.post(&url).json(&metadata)).await.0, 422);
    server.shutdown().await;
    assert!(got.try_recv().is_err());
    let unset = Server::start(config(folder.path(), ALLOWED), options()).await;
    assert!(unset.err().unwrap().to_string().contains("`HOOK_SECRET` is not set"));
}
