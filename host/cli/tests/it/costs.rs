//! Costs of model calls and runs over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Notify;
use wattle::config::StoreKind;
use wattle::server::{Server, ServerOptions};
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Attempt, Completion, CompletionRequest, FinishReason, Usage};
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::{BlobStore, Caller, Model};

use crate::fixture::{BRIEF_STOP, Fixture, answer, config, options, write_app};
use crate::native_sandbox::TALKED;

/// Prices with which a call of [`Mini`] costs 2.5.
const PRICES: &str = "[model.prices]\nmini = { input = 0.5, output = 2.0 }\n\
                      [grants.greeter]\nllm = [\"chat\"]\n";

/// A model that uses a million tokens in each direction.
#[derive(Default)]
struct Mini {
    /// With it, each call after the first one never ends.
    stall: Option<Arc<Stall>>,
}

#[derive(Default)]
struct Stall {
    has_replied: AtomicBool,
    reached: Notify,
}

#[async_trait]
impl Model for Mini {
    fn has_route(&self, _: &Caller, _: &str) -> bool {
        true
    }

    fn route(&self, _: &Caller, _: &str) -> Option<RouteInfo> {
        None
    }

    async fn complete(
        &self,
        _: &Caller,
        _: &CompletionRequest,
        _: &dyn BlobStore,
        _: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        if let Some(stall) = &self.stall
            && stall.has_replied.swap(true, Ordering::Relaxed)
        {
            stall.reached.notify_one();
            std::future::pending::<()>().await;
        }
        let tokens = Some(1_000_000);
        Ok(Completion {
            id: None,
            parts: Vec::new(),
            structured: None,
            finish_reason: FinishReason::Stop,
            usage: Usage { input_tokens: tokens, output_tokens: tokens, ..Usage::default() },
            model: "mini-as-reported".to_owned(),
            attempts: vec![Attempt {
                provider: "near".to_owned(),
                model: "mini".to_owned(),
                tries: 1,
                error: None,
            }],
        })
    }
}

fn options_with(model: Mini) -> ServerOptions {
    let mut options = options();
    options.overrides.model = Some(Arc::new(model));
    options
}

/// Returns a folder with the app `greeter`, which requests the route `chat`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let manifest = plugins.join("greeter/app.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(manifest, format!("{text}[needs]\nllm = [\"chat\"]\n")).unwrap();
    folder
}

fn start(name: &str, wait: bool) -> Value {
    json!({ "input": { "name": name }, "thread_id": "t", "wait": wait })
}

/// Returns the costs of the calls in a page of outlines.
fn costs(page: &Value) -> Vec<&Value> {
    let called = page["items"].as_array().unwrap().iter().filter(|it| it["type"] == "called");
    called.map(|it| &it["cost"]).collect()
}

#[tokio::test]
async fn calls_and_runs_of_a_priced_model_have_a_cost() {
    let fixture = Fixture::start_as(folder(), PRICES, options_with(Mini::default())).await;
    let (_, run) = fixture.post("/api/v1/apps/greeter/runs", &start(TALKED, true)).await;
    assert_eq!(run["status"], "interrupted", "{run}");
    let id = run["run"].as_str().unwrap();
    let (_, page) = fixture.get("/api/v1/threads/t/log?outline=true").await;
    assert_eq!(costs(&page), [&json!(2.5), &json!(2.5)]);
    let (_, full) = fixture.get("/api/v1/threads/t/log?types=called").await;
    assert_eq!(full["items"][0].get("cost"), None, "the log has no prices");
    let (_, described) = fixture.get(&format!("/api/v1/runs/{id}")).await;
    let (_, listed) = fixture.get("/api/v1/runs").await;
    let (_, of_thread) = fixture.get("/api/v1/threads/t/runs").await;
    let (_, newest) = fixture.get("/api/v1/threads/t/runs?order=newest").await;
    for run in [&described, &listed["items"][0], &of_thread[0], &newest[0]] {
        assert_eq!(run["cost"], json!(5.0), "{run}");
    }
    let stream = format!("/api/v1/threads/t/events?until=idle&types=called&outline=true&run={id}");
    let (_, events) = fixture.get(&stream).await;
    assert!(events.as_str().unwrap().contains("\"cost\":2.5"), "{events}");
}

#[tokio::test]
async fn without_a_price_nothing_has_a_cost() {
    let grants = "[grants.greeter]\nllm = [\"chat\"]\n";
    let fixture = Fixture::start_as(folder(), grants, options_with(Mini::default())).await;
    fixture.post("/api/v1/apps/greeter/runs", &start(TALKED, true)).await;
    let (_, page) = fixture.get("/api/v1/threads/t/log?outline=true").await;
    assert_eq!(costs(&page), [&Value::Null, &Value::Null]);
    assert_eq!(fixture.get("/api/v1/runs").await.1["items"][0].get("cost"), None);
}

#[tokio::test]
async fn the_cost_of_a_recovered_run_includes_the_calls_before_the_restart() {
    let folder = folder();
    let toml = format!("{BRIEF_STOP}{PRICES}");
    let mut config = config(folder.path(), &toml);
    config.store.kind = StoreKind::Redb;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let stall = Arc::new(Stall::default());
    let stalling = options_with(Mini { stall: Some(stall.clone()) });
    let server = Server::start(config.clone(), stalling).await.unwrap();
    let runs = client.post(format!("{}/api/v1/apps/greeter/runs", server.url()));
    let (_, run) = answer(runs.json(&start(TALKED, false))).await;
    stall.reached.notified().await;
    server.shutdown().await;

    let server = Server::start(config, options_with(Mini::default())).await.unwrap();
    let url = format!("{}/api/v1/runs/{}", server.url(), run["run"].as_str().unwrap());
    let (_, ended) = answer(client.get(format!("{url}/wait"))).await;
    assert_eq!(ended["status"], "interrupted", "{ended}");
    let (_, run) = answer(client.get(url)).await;
    assert_eq!(run["cost"], json!(5.0), "{run}");
    server.shutdown().await;
}
