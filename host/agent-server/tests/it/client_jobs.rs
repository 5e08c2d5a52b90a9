//! Lists of webhooks and crons in the native API: deliveries, pages, tenants.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wattle_agent_server::WebhookSettings;
use wattle_api::ApiConfig;
use wattle_graph::failure::code;
use wattle_run::limit::SEARCH_RECORDS;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{MemoryScope, PutItem};

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
    let attempt = &webhook["attempt_log"][0];
    assert_eq!((&attempt["at_ms"], &attempt["status"]), (&json!(NOW_MS), &json!(503)));
    for status in ["abandoned", "delivered"] {
        let list = host.get(&format!("/api/v1/webhooks?status={status}")).await.ok();
        assert_eq!(list, json!({ "items": [] }), "{status}");
    }
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
    assert_eq!(item["attempt_log"][0]["status"], 404, "{item}");
    let cursor = newest["next_cursor"].as_str().unwrap();
    let oldest = host.get(&format!("{path}&cursor={cursor}")).await.ok();
    assert_eq!(oldest["items"][0]["abandoned_ms"], NOW_MS);
    assert_eq!(oldest.get("next_cursor"), None, "{oldest}");
    let refused = host.get("/api/v1/webhooks?status=lost").await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[tokio::test]
async fn delivered_webhook_is_listed_with_its_attempts_in_order() {
    let receiver = Receiver::new(&[Ok(503), Err(code::UNAVAILABLE), Ok(204)]);
    let (mut options, clock) = options(&receiver, 0);
    options.webhooks.retry_delays = vec![Duration::ZERO; 2];
    let host = Host::with_options(ApiConfig::default(), options);
    host.post("/runs/wait", run("a")).await.ok();
    let path = "/api/v1/webhooks?status=delivered";
    let list = until(&host, path, |webhook| webhook["run"].is_string()).await;
    let webhook = &list["items"][0];
    assert_eq!((&webhook["status"], &webhook["attempts"]), (&json!("delivered"), &json!(2)));
    assert_eq!((&webhook["delivered_ms"], webhook.get("last_error")), (&json!(NOW_MS), None));
    let log = webhook["attempt_log"].as_array().unwrap();
    let shown = log.iter().map(|it| (it["status"].as_u64(), it["error"].as_str()));
    let expected = [
        (Some(503), Some("the URL responded with status 503")),
        (None, Some("no answer")),
        (Some(204), None),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{webhook}");
    assert!(log.iter().all(|it| it["at_ms"] == NOW_MS && it["duration_ms"].is_u64()));
    assert_eq!(host.get("/api/v1/webhooks").await.ok(), json!({ "items": [] }));

    // A delivery is kept for 30 days.
    clock.advance(30 * 24 * HOUR_MS + 1);
    assert_eq!(host.get(path).await.ok(), json!({ "items": [] }));
}

#[tokio::test]
async fn oldest_deliveries_of_a_tenant_are_deleted_above_the_maximum() {
    let receiver = Receiver::new(&[]);
    let (options, _) = options(&receiver, 0);
    let host = Host::with_options(ApiConfig::default(), options);
    let memory = host.engine.ports().memory.as_ref();
    for number in 0..300 {
        let run = format!("01a1ffdc-22ab-744e-a2fc-{number:012}");
        let value = json!({
            "run": run, "thread": "t", "tenant": null, "url": HOOK, "attempts": 0,
            "delivered_ms": 1, "attempt_log": [],
        });
        let namespace = ["agent", "delivered-webhooks"].map(str::to_owned).into();
        let key = format!("ffffffffffffffff-{run}");
        let item = PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false };
        memory.put(&MemoryScope::Host(None), item, NOW_MS).await.unwrap();
    }
    host.post("/runs/wait", run("a")).await.ok();
    // The first delivery after a start deletes what is above the maximum of 200.
    let path = "/api/v1/webhooks?status=delivered&limit=100";
    let kept = loop {
        let first = host.get(path).await.ok();
        let mut kept = first["items"].as_array().unwrap().clone();
        let mut cursor = first["next_cursor"].as_str().map(str::to_owned);
        while let Some(after) = cursor {
            let page = host.get(&format!("{path}&cursor={after}")).await.ok();
            kept.extend(page["items"].as_array().unwrap().iter().cloned());
            cursor = page["next_cursor"].as_str().map(str::to_owned);
        }
        if kept.len() <= 200 {
            break kept;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((kept.len(), &kept[0]["delivered_ms"]), (200, &json!(NOW_MS)));
}

/// Stores an abandoned webhook of a tenant. Webhooks are listed by number. Returns its key.
async fn abandon(memory: &dyn Memory, number: usize, tenant: &str) -> String {
    let run = format!("01a1ffdc-22ab-744e-a2fc-{number:012}");
    let key = format!("fffffe65-{run}");
    let value = json!({
        "run": run, "thread": "t", "tenant": tenant, "url": HOOK, "attempts": 1,
        "last_error": "no", "abandoned_ms": NOW_MS,
    });
    let namespace = ["agent", "abandoned-webhooks"].map(str::to_owned).into();
    let item = PutItem { namespace, key: key.clone(), value, ttl_ms: None, refresh_on_read: false };
    memory.put(&MemoryScope::Host(None), item, NOW_MS).await.unwrap();
    key
}

#[tokio::test]
async fn page_ends_at_its_budget_and_names_no_webhook_of_another_tenant() {
    let host = two_tenants(HostOptions::default());
    let memory = host.engine.ports().memory.as_ref();
    let first = abandon(memory, 0, "a").await;
    let mut others = Vec::new();
    for number in 1..=SEARCH_RECORDS {
        others.push(abandon(memory, number, "b").await);
    }
    abandon(memory, SEARCH_RECORDS + 1, "a").await;
    let list = async |query: &str| {
        let path = format!("/api/v1/webhooks?status=abandoned&{query}");
        with_key(&host, "k-a", "GET", &path, None).await.ok()
    };
    let lengths = |list: &Value| list["items"].as_array().unwrap().len();

    let page = list("limit=2").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(lengths(&page), 1);
    assert!(!others.iter().any(|key| key == cursor), "{cursor}");
    let rest = list(&format!("limit=2&cursor={cursor}")).await;
    assert_eq!((lengths(&rest), rest.get("next_cursor")), (1, None));

    // A full page is continued after its last item.
    let page = list("limit=1").await;
    assert_eq!((lengths(&page), page["next_cursor"].as_str()), (1, Some(first.as_str())));
    let page = list(&format!("limit=1&cursor={first}")).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(lengths(&page), 0);
    let rest = list(&format!("limit=1&cursor={cursor}")).await;
    assert_eq!((lengths(&rest), rest.get("next_cursor")), (1, None));
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
            // A cursor of a short list would tell of webhooks of another tenant.
            assert_eq!(list.get("next_cursor"), None, "{path}: {list}");
            for named in [other, "*"] {
                let path = format!("{path}&tenant={named}");
                let refused = with_key(&host, key, "GET", &path, None).await;
                assert_eq!(refused.status, 403, "{path}: {}", refused.text);
            }
        }
    }
}

#[tokio::test]
async fn another_tenant_sees_no_delivered_webhooks() {
    let receiver = Receiver::new(&[]);
    let (options, _) = options(&receiver, 0);
    let host = two_tenants(options);
    with_key(&host, "k-a", "POST", "/runs/wait", Some(run("a"))).await.ok();
    let path = "/api/v1/webhooks?status=delivered";
    loop {
        let list = with_key(&host, "k-a", "GET", path, None).await.ok();
        if list["items"][0]["tenant"] == "a" {
            break;
        }
        tokio::task::yield_now().await;
    }
    let list = with_key(&host, "k-b", "GET", path, None).await.ok();
    assert_eq!(list, json!({ "items": [] }));
}
