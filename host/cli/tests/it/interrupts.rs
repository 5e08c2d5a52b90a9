//! Pending interrupts of all threads over HTTP: conditions, pages, tenants.

use serde_json::{Value, json};

use crate::fixture::{Fixture, answer};
use crate::lists::serve_tenants;

const RUNS: &str = "/api/v1/apps/greeter/runs";

/// Starts a run on a thread and waits until it ends or is interrupted.
async fn start(fixture: &Fixture, thread: &str, name: &str, options: Value) -> Value {
    let input = json!({ "name": name });
    let body = json!({ "input": input, "thread_id": thread, "options": options, "wait": true });
    let (status, run) = fixture.post(RUNS, &body).await;
    assert_eq!(status, 200, "{run}");
    run
}

/// Returns the threads of a list, sorted by id.
fn threads(list: &Value) -> String {
    let items = list["items"].as_array().unwrap();
    let mut threads: Vec<&str> = items.iter().map(|it| it["thread"].as_str().unwrap()).collect();
    threads.sort_unstable();
    threads.join(" ")
}

/// Counts the pending interrupts.
async fn count(fixture: &Fixture, query: &str) -> Value {
    let (status, counts) = fixture.get(&format!("/api/v1/interrupt-counts?{query}")).await;
    assert_eq!((status, &counts["is_complete"]), (200, &json!(true)), "{counts}");
    counts["total"].clone()
}

/// Lists the threads with pending interrupts, sorted by id.
async fn list(fixture: &Fixture, query: &str) -> String {
    let (status, list) = fixture.get(&format!("/api/v1/interrupts?{query}")).await;
    assert_eq!(status, 200, "{list}");
    threads(&list)
}

#[tokio::test]
async fn interrupts_are_listed_with_their_threads_until_they_are_answered() {
    let fixture = Fixture::start("").await;
    let run = start(&fixture, "t-ada", "Ada", json!({})).await;
    start(&fixture, "t-bob", "nobody", json!({})).await;
    let stopped = start(&fixture, "t-cleo", "Cleo", json!({ "interrupt_before": ["ask"] })).await;
    assert_eq!(stopped["status"], "interrupted", "it stopped at a breakpoint: {stopped}");
    let (_, thread) = fixture.get("/api/v1/threads/t-ada").await;
    let interrupt = &thread["interrupts"][0];
    assert_eq!(interrupt["payload"], json!({ "about": "hello Ada" }));
    let item = json!({
        "thread": "t-ada", "thread_id": "t-ada", "app": "greeter", "graph": "Greet",
        "run": run["run"], "updated_ms": thread["updated_ms"], "interrupt": interrupt,
    });
    assert_eq!(fixture.get("/api/v1/interrupts").await, (200, json!({ "items": [item] })));
    assert_eq!(count(&fixture, "").await, 1);

    let id = interrupt["id"].as_str().unwrap();
    let answers = json!({ "answers": { id: true }, "wait": true });
    let (status, _) = fixture.post("/api/v1/threads/t-ada/resume", &answers).await;
    assert_eq!((status, list(&fixture, "").await.as_str()), (200, ""));
    assert_eq!(count(&fixture, "").await, 0);
}

#[tokio::test]
async fn conditions_and_cursors_select_threads() {
    let fixture = Fixture::start("").await;
    for thread in ["a", "b", "c"] {
        start(&fixture, thread, "Ada", json!({})).await;
    }
    for (query, found) in [
        ("", "a b c"),
        ("app=greeter&graph=Greet&tenant=*", "a b c"),
        ("app=other", ""),
        ("graph=Other", ""),
        ("tenant=acme", ""),
    ] {
        assert_eq!(list(&fixture, query).await, found, "{query}");
        assert_eq!(count(&fixture, query).await, found.split_whitespace().count(), "{query}");
    }
    assert_eq!(list(&fixture, "limit=1000").await, "a b c");
    let (mut found, mut query) = (Vec::new(), "limit=1".to_owned());
    for page in 1..=3 {
        let (_, list) = fixture.get(&format!("/api/v1/interrupts?{query}")).await;
        found.push(threads(&list));
        assert_eq!(list.get("next_cursor").is_some(), page < 3, "{list}");
        assert_eq!(list.get("next_offset"), None, "only a cursor continues the list");
        query = format!("limit=1&cursor={}", list["next_cursor"].as_str().unwrap_or_default());
    }
    found.sort_unstable();
    assert_eq!(found, ["a", "b", "c"]);
}

#[tokio::test]
async fn invalid_parameters_are_explained() {
    let fixture = Fixture::start("").await;
    for (path, query, expected) in [
        ("interrupts", "status=idle", "unknown field `status`"),
        ("interrupts", "offset=1", "unknown field `offset`"),
        ("interrupts", "limit=many", "invalid digit"),
        ("interrupts", "cursor=5.a", "`next_cursor`"),
        ("interrupts", "app=a/b", "a/b"),
        ("interrupts", "tenant=a/b", "a tenant's name"),
        ("interrupt-counts", "limit=1", "unknown field `limit`"),
        ("interrupt-counts", "tenant=a/b", "a tenant's name"),
    ] {
        let (status, problem) = fixture.get(&format!("/api/v1/{path}?{query}")).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{query}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{query}: {detail}");
    }
}

#[tokio::test]
async fn another_tenant_sees_no_interrupts() {
    let fixture = serve_tenants().await;
    let ask = |key: &'static str, tenant: Option<&'static str>, path: &str| {
        let url = fixture.url(&format!("/api/v1/{path}"));
        let request = fixture.client.get(url).header("x-api-key", key);
        answer(tenant.into_iter().fold(request, |it, tenant| it.header("x-tenant", tenant)))
    };
    let get = |key, tenant, query: &str| ask(key, tenant, &format!("interrupts?{query}"));
    for (key, header, query, found) in [
        ("k-acme", None, "", Ok("of-acme")),
        ("k-acme", None, "tenant=acme", Ok("of-acme")),
        ("k-acme", None, "tenant=globex", Err(403)),
        ("k-acme", None, "tenant=*", Err(403)),
        ("k-globex", None, "app=greeter&graph=Greet", Ok("of-globex")),
        ("k-operator", Some("acme"), "", Ok("of-acme")),
        ("k-operator", Some("other"), "", Ok("")),
        ("k-operator", None, "tenant=globex", Ok("of-globex")),
        ("k-operator", None, "tenant=*", Ok("of-acme of-globex")),
        // A request of a proxy that does not name a tenant is refused, and does not get the list of
        // all tenants.
        ("k-operator", None, "", Err(401)),
    ] {
        let name = format!("{key} {header:?} {query}");
        let (status, list) = get(key, header, query).await;
        let (counted, counts) = ask(key, header, &format!("interrupt-counts?{query}")).await;
        let expected = found.err().unwrap_or(200);
        assert_eq!((status, counted), (expected, expected), "{name}: {list}");
        if let Ok(found) = found {
            assert_eq!(threads(&list), found, "{name}");
            assert_eq!(counts["total"], found.split_whitespace().count(), "{name}");
        }
    }
    // The cursor of a list of all tenants cannot be used for the list of one tenant.
    let (_, first) = get("k-operator", None, "tenant=*&limit=1").await;
    let (shown, cursor) = (threads(&first), first["next_cursor"].as_str().unwrap());
    for (key, own) in [("k-acme", "of-acme"), ("k-globex", "of-globex")] {
        let (_, rest) = get(key, None, &format!("cursor={cursor}")).await;
        assert_eq!(threads(&rest), if shown == own { "" } else { own }, "{key}");
    }
}
