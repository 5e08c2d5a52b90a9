//! Assistants that several hosts change at the same time.

use futures::future::join_all;
use serde_json::{Value, json};
use wattle_run::ports::memory::{MemoryScope, PutItem};

use super::{NOW_MS, SharedState};
use crate::host::Host;

async fn make(host: &Host) -> String {
    let made = host.post("/assistants", json!({ "graph_id": "context" })).await.ok();
    made["assistant_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn concurrent_changes_on_several_hosts_lose_no_version() {
    let common = SharedState::new();
    let hosts = [common.host().await, common.host().await, common.host().await];
    let path = format!("/assistants/{}", make(&hosts[0]).await);
    let changes = (0..9).map(|n| {
        let (host, path) = (&hosts[n % 3], &path);
        async move {
            let change = json!({ "context": { "n": n }, "metadata": { n.to_string(): n } });
            host.call("PATCH", path, Some(change)).await.ok()
        }
    });
    let changed = join_all(changes).await;
    let mut numbers: Vec<u64> = changed.iter().map(|it| it["version"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (2..=10).collect::<Vec<_>>());
    let all = hosts[1].post(&format!("{path}/versions"), json!({ "limit": 20 })).await.ok();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 10);
    for change in &changed {
        let kept = all.iter().find(|it| it["version"] == change["version"]).unwrap();
        assert_eq!(kept["context"], change["context"]);
    }
    assert_eq!(
        all[0]["metadata"].as_object().unwrap().len(),
        9,
        "each change extends the metadata of the change before"
    );
    let back = json!({ "version": 3 });
    let latest = format!("{path}/latest");
    let (back, next) = tokio::join!(
        hosts[0].post(&latest, back),
        hosts[1].call("PATCH", &path, Some(json!({ "name": "next" }))),
    );
    assert_eq!((back.ok()["version"].clone(), next.ok()["version"].clone()), (json!(3), json!(11)));
    let versions = hosts[2].post(&format!("{path}/versions"), json!({ "limit": 20 })).await.ok();
    assert_eq!(versions.as_array().unwrap().len(), 11);
}

#[tokio::test]
async fn concurrent_creates_make_one_assistant() {
    let common = SharedState::new();
    let (one, two) = (common.host().await, common.host().await);
    let wish = |name: &str| {
        json!({
            "graph_id": "agent", "name": name,
            "assistant_id": "01a1ffdc-22ab-744e-a2fc-8bb051a654f8",
        })
    };
    let made =
        tokio::join!(one.post("/assistants", wish("one")), two.post("/assistants", wish("two")),);
    let mut statuses = [made.0.status, made.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{made:?}");
}

/// Changes the record of an assistant.
async fn rewrite(host: &Host, id: &str, change: impl Fn(&mut PutItem)) {
    let (memory, scope) = (&host.engine.ports().memory, MemoryScope::Host(None));
    let namespace = vec!["agent".to_owned(), "assistants".to_owned()];
    let there = memory.get(&scope, &namespace, id, NOW_MS).await.unwrap().unwrap();
    let (key, value) = (id.to_owned(), there.value);
    let mut item = PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false };
    change(&mut item);
    memory.put(&scope, item, NOW_MS).await.unwrap();
}

#[tokio::test]
async fn assistants_and_versions_have_limits() {
    let host = Host::new();
    let id = make(&host).await;
    let path = format!("/assistants/{id}");
    let large = "x".repeat(64 << 10);
    for (method, path, field) in [
        ("POST", "/assistants", "metadata"),
        ("POST", "/assistants", "context"),
        ("PATCH", &path, "config"),
        ("PATCH", &path, "metadata"),
    ] {
        let change = json!({ "graph_id": "context", field: { "tags": [large] } });
        let refused = host.call(method, path, Some(change)).await;
        assert_eq!(refused.status, 422, "{}", refused.text);
        assert!(refused.text.contains("limit of 65536"), "{}", refused.text);
    }
    for number in 1..1_000 {
        let copy = format!("00000000-0000-4000-8000-{number:012}");
        rewrite(&host, &id, |item| {
            item.key.clone_from(&copy);
            item.value["id"] = json!(copy);
        })
        .await;
    }
    let refused = host.post("/assistants", json!({ "graph_id": "context" })).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let there = json!({ "graph_id": "context", "assistant_id": id, "if_exists": "do_nothing" });
    assert_eq!(host.post("/assistants", there).await.status, 200);
    rewrite(&host, &id, |item| item.value["newest"] = json!(1_000)).await;
    let refused = host.call("PATCH", &path, Some(json!({ "name": "one more" }))).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert_eq!(host.call("DELETE", &path, Some(Value::Null)).await.status, 204);
    assert_eq!(host.post("/assistants", json!({ "graph_id": "context" })).await.status, 200);
}
