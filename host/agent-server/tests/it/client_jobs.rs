//! Lists of webhooks and crons in the native API: deliveries, pages, tenants.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wattle_agent_server::WebhookSettings;
use wattle_api::ApiConfig;

use crate::host::{Host, HostOptions};
use crate::store::{Hand, two_tenants, with_key};
use crate::webhooks::{HOOK, Receiver};

const NOW_MS: i64 = 1_795_338_030_000;

const HOUR_MS: i64 = 3_600_000;

/// Options of a server whose webhooks get the given responses. A failed one is retried at most
/// `retries` times, after an hour.
fn options(receiver: &Arc<Receiver>, retries: usize) -> (HostOptions, Arc<Hand>) {
    let clock = Hand::at(NOW_MS);
    let webhooks = WebhookSettings {
        retry_delays: vec![Duration::from_hours(1); retries],
        ..WebhookSettings::default()
    };
    let (net, at) = (receiver.clone(), clock.clone());
    (HostOptions { net, clock: at, webhooks, ..HostOptions::default() }, clock)
}

fn run(word: &str) -> Value {
    json!({ "assistant_id": "slow", "input": { "word": word }, "webhook": HOOK })
}

/// Reads a list until its first item meets a condition.
async fn until(host: &Host, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let list = host.get(path).await.ok();
        if holds(&list["items"][0]) {
            return list;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pending_webhook_is_listed_with_its_attempts() {
    let receiver = Receiver::new(&[Ok(503)]);
    let (options, _) = options(&receiver, 1);
    let host = Host::with_options(ApiConfig::default(), options);
    host.hold();
    let id = host.thread().await;
    let made = host.post(&format!("/threads/{id}/runs"), run("a")).await.ok();
    host.wait_for_started(1).await;
    let list = host.get("/api/v1/webhooks").await.ok();
    let item = json!({
        "run": made["run_id"], "thread": id, "url": HOOK, "status": "pending",
        "has_ended": false, "attempts": 0, "host": host.engine.holder().0,
    });
    assert_eq!(list, json!({ "items": [item] }));

    host.release.send_replace(true);
    receiver.got(1).await;
    let list = until(&host, "/api/v1/webhooks", |webhook| webhook["attempts"] == 1).await;
    let webhook = &list["items"][0];
    assert_eq!((&webhook["run"], &webhook["has_ended"]), (&made["run_id"], &json!(true)));
    assert_eq!(webhook["next_ms"], NOW_MS + HOUR_MS, "{webhook}");
    assert_eq!(webhook["last_error"], "the URL responded with status 503");
    let abandoned = host.get("/api/v1/webhooks?status=abandoned").await.ok();
    assert_eq!(abandoned, json!({ "items": [] }));
}

#[tokio::test]
async fn abandoned_webhooks_are_paged_newest_first() {
    let receiver = Receiver::new(&[Ok(500), Ok(404)]);
    let (options, clock) = options(&receiver, 0);
    let host = Host::with_options(ApiConfig::default(), options);
    let path = "/api/v1/webhooks?status=abandoned&limit=1";
    for status in [500, 404] {
        host.post("/runs/wait", run("a")).await.ok();
        let why = format!("the URL responded with status {status}");
        until(&host, path, |webhook| webhook["last_error"] == why.as_str()).await;
        clock.advance(1);
    }
    let newest = host.get(path).await.ok();
    assert_eq!(newest["items"].as_array().unwrap().len(), 1, "{newest}");
    let item = &newest["items"][0];
    assert_eq!((&item["status"], &item["attempts"]), (&json!("abandoned"), &json!(1)), "{item}");
    assert_eq!((&item["abandoned_ms"], item.get("next_ms")), (&json!(NOW_MS + 1), None));
    let cursor = newest["next_cursor"].as_str().unwrap();
    let oldest = host.get(&format!("{path}&cursor={cursor}")).await.ok();
    assert_eq!(oldest["items"][0]["abandoned_ms"], NOW_MS);
    assert_eq!(oldest.get("next_cursor"), None, "{oldest}");
    let refused = host.get("/api/v1/webhooks?status=lost").await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[tokio::test]
async fn another_tenant_sees_and_counts_no_webhooks_and_no_crons() {
    let receiver = Receiver::new(&[Ok(503); 4]);
    let (options, _) = options(&receiver, 1);
    let host = two_tenants(options);
    let cron = json!({
        "assistant_id": "slow", "schedule": "0 * * * *", "input": { "word": "tick" },
    });
    for key in ["k-a", "k-b"] {
        with_key(&host, key, "POST", "/runs/wait", Some(run(key))).await.ok();
        with_key(&host, key, "POST", "/runs/crons", Some(cron.clone())).await.ok();
    }
    for path in ["/api/v1/webhooks?limit=1", "/api/v1/crons?limit=1"] {
        for (key, tenant, other) in [("k-a", "a", "b"), ("k-b", "b", "a")] {
            let list = with_key(&host, key, "GET", path, None).await.ok();
            assert_eq!(list["items"][0]["tenant"], tenant, "{path}: {list}");
            assert_eq!(list["items"][0].get("host"), None, "only the operator sees hosts: {list}");
            // A cursor would tell that something follows.
            assert_eq!(list.get("next_cursor"), None, "{path}: {list}");
            for named in [other, "*"] {
                let path = format!("{path}&tenant={named}");
                let refused = with_key(&host, key, "GET", &path, None).await;
                assert_eq!(refused.status, 403, "{path}: {}", refused.text);
            }
        }
    }
}
