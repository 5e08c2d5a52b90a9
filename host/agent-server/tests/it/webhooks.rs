//! Webhooks notify URLs of the end of runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;
use wattle_agent_server::WebhookSettings;
use wattle_agent_server::webhooks::SigningKey;
use wattle_api::ApiConfig;
use wattle_graph::failure::{Failure, code};
use wattle_run::grant::{Grants, HttpRule};
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::ports::{BlobStore, Caller, Net};

use crate::host::{Host, HostOptions};
use crate::store::Hand;

/// The URL of the webhooks in these tests.
pub(crate) const HOOK: &str = "https://hooks.example/run?a=b";

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A receiver that records requests. The receiver returns the given results in order, and 200
/// afterwards.
pub(crate) struct Receiver {
    answers: Mutex<VecDeque<Result<u16, &'static str>>>,
    got: watch::Sender<Vec<Message>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    rule: HttpRule,
    redirects: u32,
    request: HttpRequest,
}

impl Message {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.request.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn body(&self) -> Value {
        let HttpBody::Bytes(body) = &self.request.body else { panic!("no bytes") };
        serde_json::from_slice(body).unwrap()
    }
}

impl Receiver {
    pub(crate) fn new(answers: &[Result<u16, &'static str>]) -> Arc<Self> {
        let answers = Mutex::new(answers.iter().copied().collect());
        Arc::new(Self { answers, got: watch::Sender::default() })
    }

    /// Returns the number of requests.
    pub(crate) fn sent(&self) -> usize {
        self.got.borrow().len()
    }

    /// Waits for `count` requests. Returns all requests.
    pub(crate) async fn got(&self, count: usize) -> Vec<Message> {
        let mut got = self.got.subscribe();
        got.wait_for(|got| got.len() >= count).await.unwrap().clone()
    }
}

#[async_trait]
impl Net for Receiver {
    async fn send(
        &self,
        _: &Caller,
        grants: &Grants,
        request: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        let (rule, redirects) = (grants.http[0].clone(), grants.limits.net.redirects);
        let message = Message { rule, redirects, request: request.clone() };
        self.got.send_modify(|got| got.push(message));
        let response = self.answers.lock().unwrap().pop_front().unwrap_or(Ok(200));
        let status = response.map_err(|code| Failure::new(code, "no answer"))?;
        let (headers, body) = (Vec::new(), Bytes::new());
        Ok(HttpResponse { status, headers, body, url: request.url.clone() })
    }
}

/// Creates a server that retries a failed webhook without a pause, at most `retries` times.
fn host(receiver: &Arc<Receiver>, retries: usize) -> Host {
    let webhooks = WebhookSettings {
        signing_key: Some(SigningKey::new(SECRET).unwrap()),
        retry_delays: vec![Duration::ZERO; retries],
        ..WebhookSettings::default()
    };
    let options = HostOptions { net: receiver.clone(), webhooks, ..HostOptions::default() };
    Host::with_options(ApiConfig::default(), options)
}

fn run(assistant: &str, input: Value) -> Value {
    json!({ "assistant_id": assistant, "input": input, "webhook": HOOK })
}

/// Reads a run until the run meets a condition. Returns the run.
async fn until(host: &Host, place: &str, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let run = host.get(place).await.ok();
        if holds(&run) {
            return run;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn webhook_is_sent_and_signed_at_the_end_of_a_run() {
    let receiver = Receiver::new(&[]);
    let host = host(&receiver, 0);
    let id = host.thread().await;
    let path = format!("/threads/{id}/runs/wait");
    let wait = host.post(&path, run("slow", json!({ "word": "a" }))).await;
    assert_eq!(wait.ok()["items"], json!(["a"]));
    let place = wait.header("content-location").to_owned();
    let message = receiver.got(1).await.remove(0);
    let payload = message.body();
    let known = host.get(&place).await.ok();
    for field in ["run_id", "thread_id", "assistant_id", "status", "metadata", "created_at"] {
        assert_eq!(payload[field], known[field], "{field}");
    }
    assert_eq!(payload["status"], "success");
    assert_eq!(payload["values"], json!({ "items": ["a"], "word": "a" }));
    for field in ["run_started_at", "run_ended_at", "webhook_sent_at"] {
        assert!(payload[field].is_string(), "{field}");
    }
    assert!(payload.get("error").is_none());
    let request = &message.request;
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", HOOK));
    assert_eq!(message.header("webhook-id"), payload["run_id"].as_str());
    assert_eq!(message.header("content-type"), Some("application/json"));
    let timestamp_s: i64 = message.header("webhook-timestamp").unwrap().parse().unwrap();
    let HttpBody::Bytes(body) = &request.body else { panic!("no bytes") };
    let key = SigningKey::new(SECRET).unwrap();
    let signature = key.sign(payload["run_id"].as_str().unwrap(), timestamp_s, body);
    assert_eq!(message.header("webhook-signature"), Some(signature.as_str()));
    let rule = &message.rule;
    assert_eq!((rule.host.as_str(), rule.scheme.as_str()), ("hooks.example", "https"));
    assert_eq!((rule.private, rule.port, message.redirects), (false, None, 0));
}

#[tokio::test]
async fn webhook_is_sent_for_every_result_of_a_run() {
    let receiver = Receiver::new(&[]);
    let host = host(&receiver, 0);
    host.post("/runs/wait", run("broken", json!({}))).await.ok();
    let failed = receiver.got(1).await[0].body();
    assert_eq!(
        (failed["status"].as_str(), failed["error"].as_str()),
        (Some("error"), Some("no way"))
    );
    let id = host.thread().await;
    host.post(&format!("/threads/{id}/runs/wait"), run("agent", json!({}))).await.ok();
    let asked = receiver.got(2).await[1].body();
    assert_eq!(asked["status"], "success");
    assert_eq!(asked["values"]["__interrupt__"][0]["value"], "Are we good?");
    host.hold();
    let at_work = host.post("/runs", run("slow", json!({ "word": "b" }))).await;
    let place = at_work.header("content-location").to_owned();
    host.wait_for_started(1).await;
    host.post(&format!("{place}/cancel"), Value::Null).await;
    let cancelled = receiver.got(3).await[2].body();
    assert_eq!((cancelled["status"].as_str(), cancelled.get("error")), (Some("interrupted"), None));
    let mut later = run("slow", json!({ "word": "c" }));
    later["after_seconds"] = json!(3600);
    let later = host.post("/runs", later).await;
    let place = later.header("content-location").to_owned();
    host.post(&format!("{place}/cancel"), Value::Null).await;
    let waiting = receiver.got(4).await[3].body();
    assert_eq!(waiting["status"], "interrupted");
    assert_eq!(waiting["values"], Value::Null);
}

#[tokio::test]
async fn webhook_is_retried_until_accepted() {
    let receiver = Receiver::new(&[Ok(500), Err(code::UNAVAILABLE), Ok(302), Ok(204)]);
    let host = host(&receiver, 5);
    host.post("/runs/wait", run("slow", json!({ "word": "a" }))).await.ok();
    let got = receiver.got(4).await;
    assert!(got.iter().all(|it| it.header("webhook-id") == got[0].header("webhook-id")));
    // The webhook of the next run arrives after any further request for the first webhook.
    let host = host.restart();
    host.server.start().await;
    host.post("/runs/wait", run("slow", json!({ "word": "b" }))).await.ok();
    let got = receiver.got(5).await;
    assert_eq!(got[4].body()["values"]["word"], "b");
    assert_eq!(got.len(), 5, "no webhook is sent twice");
}

#[tokio::test]
async fn pending_webhook_is_delivered_after_a_restart() {
    let receiver = Receiver::new(&[Ok(503)]);
    let clock = Hand::at(1_736_908_245_123);
    let webhooks = WebhookSettings {
        retry_delays: vec![Duration::from_hours(1)],
        ..WebhookSettings::default()
    };
    let options = HostOptions {
        net: receiver.clone(),
        clock: clock.clone(),
        webhooks,
        ..HostOptions::default()
    };
    let host = Host::with_options(ApiConfig::default(), options);
    host.post("/runs/wait", run("slow", json!({ "word": "a" }))).await.ok();
    let first = receiver.got(1).await.remove(0);
    assert_eq!(first.header("webhook-signature"), None, "the server has no signing key");
    // This run is running during the restart.
    host.hold();
    let id = host.thread().await;
    host.post(&format!("/threads/{id}/runs"), run("slow", json!({ "word": "b" }))).await.ok();
    host.wait_for_started(2).await;
    let host = host.restart();
    clock.advance(3_600_000);
    host.server.start().await;
    let second = receiver.got(2).await.remove(1);
    assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
    assert_ne!(second.body()["webhook_sent_at"], first.body()["webhook_sent_at"]);
    host.release.send_replace(true);
    assert_eq!(receiver.got(3).await[2].body()["values"]["word"], "b");
}

#[tokio::test]
async fn run_has_the_reason_of_an_abandoned_webhook() {
    let receiver = Receiver::new(&[Ok(500), Ok(500), Err(code::DENIED)]);
    let host = host(&receiver, 1);
    let id = host.thread().await;
    for (word, why) in [("a", "status 500"), ("b", "may not call")] {
        let path = format!("/threads/{id}/runs");
        let made = host.post(&path, run("slow", json!({ "word": word }))).await;
        let place = made.header("content-location").to_owned();
        let known = until(&host, &place, |run| run["kwargs"].get("webhook_error").is_some()).await;
        let payload = known["kwargs"]["webhook_error"].as_str().unwrap();
        assert!(payload.contains(why), "{payload}");
        assert_eq!(known["status"], "success");
    }
    assert_eq!(receiver.got(3).await.len(), 3, "a denied request is not retried");
}

#[tokio::test]
async fn deleted_run_sends_no_webhook() {
    let receiver = Receiver::new(&[]);
    let host = host(&receiver, 0);
    host.hold();
    let id = host.thread().await;
    let made = host.post(&format!("/threads/{id}/runs"), run("slow", json!({ "word": "a" }))).await;
    let place = made.header("content-location").to_owned();
    host.wait_for_started(1).await;
    assert_eq!(host.call("DELETE", &place, None).await.status, 204);
    let busy = host.post(&format!("/threads/{id}/runs"), run("slow", json!({ "word": "b" }))).await;
    busy.ok();
    host.wait_for_started(2).await;
    let mut refused = run("slow", json!({ "word": "c" }));
    refused["multitask_strategy"] = json!("reject");
    assert_eq!(host.post(&format!("/threads/{id}/runs"), refused).await.status, 409);
    host.release.send_replace(true);
    let got = receiver.got(1).await;
    assert_eq!(got[0].body()["values"]["word"], "b");
}

#[tokio::test]
async fn refused_rollback_of_an_ended_run_keeps_its_webhook() {
    let receiver = Receiver::new(&[Ok(503)]);
    let webhooks = WebhookSettings {
        retry_delays: vec![Duration::from_hours(1)],
        ..WebhookSettings::default()
    };
    let options = HostOptions { net: receiver.clone(), webhooks, ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let id = host.thread().await;
    let path = format!("/threads/{id}/runs/wait");
    let ended = host.post(&path, run("slow", json!({ "word": "a" }))).await;
    let place = ended.header("content-location").to_owned();
    receiver.got(1).await;
    let cancel = host.post(&format!("{place}/cancel?action=rollback"), Value::Null).await;
    assert_eq!(cancel.status, 404, "{}", cancel.text);
    let known = host.get(&place).await.ok();
    let list = host.get("/api/v1/webhooks").await.ok();
    assert_eq!(list["items"][0]["run"], known["run_id"], "{list}");
}

#[tokio::test]
async fn refused_run_with_rollback_keeps_the_webhooks_of_other_runs() {
    let receiver = Receiver::new(&[]);
    let host = host(&receiver, 0);
    host.hold();
    let id = host.thread().await;
    let path = format!("/threads/{id}/runs");
    let active = host.post(&path, run("slow", json!({ "word": "a" }))).await.ok();
    host.wait_for_started(1).await;
    let refused = json!({
        "assistant_id": "slow", "input": { "word": "b" }, "config": { "recursion_limit": 0 },
        "multitask_strategy": "rollback",
    });
    let refused = host.post(&path, refused).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    let list = host.get("/api/v1/webhooks").await.ok();
    assert_eq!(list["items"][0]["run"], active["run_id"], "{list}");
    host.release.send_replace(true);
    assert_eq!(receiver.got(1).await[0].body()["values"]["word"], "a");
}

#[tokio::test]
async fn forbidden_webhook_url_is_rejected_before_any_change() {
    let receiver = Receiver::new(&[]);
    let host = host(&receiver, 0);
    for url in [
        "http://127.0.0.1/x",
        "http://localhost/",
        "ftp://hooks.example/",
        "x",
        "https://a:b@c.example/",
    ] {
        let mut request = run("slow", json!({ "word": "a" }));
        request["webhook"] = json!(url);
        assert_eq!(host.post("/runs/wait", request.clone()).await.status, 422, "{url}");
        request["schedule"] = json!("* * * * *");
        assert_eq!(host.post("/runs/crons", request).await.status, 422, "{url}");
    }
    assert_eq!(host.post("/threads/count", json!({})).await.ok(), 0);
    let found = host.post("/runs/crons/count", json!({})).await.ok();
    assert_eq!(found, 0);
}
