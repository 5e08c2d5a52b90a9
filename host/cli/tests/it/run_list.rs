//! The list and the counts of the runs of all threads over HTTP: conditions, cursors, tenants, and
//! the limit on open requests.

use serde_json::{Value, json};
use wattle_run::limit::SEARCH_TEXT_BYTES;

use crate::fixture::{Fixture, answer};
use crate::lists::serve_tenants;

/// Starts a run on a thread and waits until it ends or is interrupted.
async fn start(fixture: &Fixture, thread: &str, name: &str) -> Value {
    let metadata = json!({ "customer": { "id": 7, "thread": thread } });
    let body = json!({
        "input": { "name": name }, "thread_id": thread, "metadata": metadata, "wait": true,
    });
    let (status, run) = fixture.post("/api/v1/apps/greeter/runs", &body).await;
    assert_eq!(status, 200, "{run}");
    run
}

/// Returns the threads of the runs of a list, sorted by id.
fn threads(list: &Value) -> String {
    let items = list["items"].as_array().unwrap();
    let mut threads: Vec<&str> = items.iter().map(|it| it["thread"].as_str().unwrap()).collect();
    threads.sort_unstable();
    threads.join(" ")
}

async fn list(fixture: &Fixture, query: &str) -> String {
    let (status, list) = fixture.get(&format!("/api/v1/runs?{query}")).await;
    assert_eq!(status, 200, "{list}");
    threads(&list)
}

#[tokio::test]
async fn runs_are_found_by_any_field() {
    let fixture = Fixture::start("").await;
    start(&fixture, "t-ada", "Ada").await;
    let failed = start(&fixture, "t-bob", "nobody").await;
    let id = failed["run"].as_str().unwrap();
    let by_id = format!("text={id}");
    for (query, found) in [
        ("", "t-ada t-bob"),
        ("app=greeter&graph=Greet", "t-ada t-bob"),
        ("app=other", ""),
        ("graph=other", ""),
        ("status=interrupted", "t-ada"),
        ("status=failed", "t-bob"),
        ("status=pending", ""),
        ("failure=rude", "t-bob"),
        ("text=T-ADA", "t-ada"),
        ("text=NO+name", "t-bob"),
        (by_id.as_str(), "t-bob"),
        ("text=", "t-ada t-bob"),
        ("metadata=%7B%22customer%22%3A%7B%22thread%22%3A%22t-bob%22%7D%7D", "t-bob"),
        ("metadata=%7B%22customer%22%3A%7B%22id%22%3A7%7D%7D&status=interrupted", "t-ada"),
        ("metadata=%7B%22customer%22%3A7%7D", ""),
        ("metadata={}", "t-ada t-bob"),
        ("created_from_ms=1", "t-ada t-bob"),
        ("created_to_ms=1", ""),
        ("tenant=acme", ""),
    ] {
        assert_eq!(list(&fixture, query).await, found, "{query}");
    }

    let (_, found) = fixture.get("/api/v1/runs?failure=rude").await;
    let (_, run) = fixture.get(&format!("/api/v1/runs/{id}")).await;
    let message = "node `greet` of plugin `greeter`: nobody is no name";
    let item = json!({
        "run": id, "thread": "t-bob", "thread_id": "t-bob", "app": "greeter", "graph": "Greet",
        "status": "failed",
        "failure": { "code": "rude", "message": message, "retryable": false },
        "created_ms": run["created_ms"], "started_ms": run["started_ms"],
        "ended_ms": run["ended_ms"],
    });
    assert_eq!(found, json!({ "items": [item] }));
    let (_, of_thread) = fixture.get("/api/v1/threads/t-bob/runs").await;
    assert_eq!((&run["app"], of_thread), (&json!("greeter"), json!([run])));
}

#[tokio::test]
async fn runs_are_counted_by_status() {
    let fixture = Fixture::start("").await;
    start(&fixture, "t-ada", "Ada").await;
    start(&fixture, "t-bob", "nobody").await;
    start(&fixture, "t-bob", "nobody").await;
    let (status, counts) = fixture.get("/api/v1/run-counts").await;
    let by_status = json!({
        "pending": 0, "running": 0, "completed": 0, "interrupted": 1, "failed": 2, "cancelled": 0,
    });
    let all = json!({ "total": 3, "by_status": by_status, "is_complete": true });
    assert_eq!((status, counts), (200, all));
    for (query, total) in [
        ("status=failed", 2),
        ("status=completed", 0),
        ("text=T-ADA", 1),
        ("metadata=%7B%22customer%22%3A%7B%22thread%22%3A%22t-bob%22%7D%7D", 2),
        ("app=greeter&graph=Greet", 3),
        ("created_to_ms=1", 0),
    ] {
        let (_, counts) = fixture.get(&format!("/api/v1/run-counts?{query}")).await;
        assert_eq!(counts["total"], total, "{query}");
    }
}

#[tokio::test]
async fn invalid_parameters_are_explained() {
    let fixture = Fixture::start("").await;
    let long = format!("text={}", "x".repeat(SEARCH_TEXT_BYTES + 1));
    for (path, query, expected) in [
        ("runs", "metadata=[]", "`metadata` must be a JSON object"),
        ("runs", "offset=1", "unknown field `offset`"),
        ("runs", "status=idle", "unknown variant `idle`"),
        ("runs", long.as_str(), "the limit is 512"),
        ("runs", "limit=many", "invalid digit"),
        ("runs", "cursor=5.a", "`next_cursor`"),
        ("runs", "app=a/b", "a/b"),
        ("runs", "tenant=a/b", "a tenant's name"),
        ("run-counts", "limit=1", "unknown field `limit`"),
        ("run-counts", "status=idle", "unknown variant `idle`"),
    ] {
        let (status, problem) = fixture.get(&format!("/api/v1/{path}?{query}")).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{query}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{query}: {detail}");
    }
}

#[tokio::test]
async fn cursor_continues_a_list_that_grows() {
    let fixture = Fixture::start("").await;
    for thread in ["a", "b", "c"] {
        start(&fixture, thread, "Ada").await;
    }
    let (_, first) = fixture.get("/api/v1/runs?limit=1").await;
    assert_eq!(first.get("next_offset"), None, "only a cursor continues the list");
    let cursor = first["next_cursor"].as_str().unwrap();
    start(&fixture, "d", "Ada").await;
    let (_, rest) = fixture.get(&format!("/api/v1/runs?cursor={cursor}")).await;
    assert_eq!(rest.get("next_cursor"), None);
    let found = [threads(&first), threads(&rest)].join(" ");
    let mut found: Vec<&str> = found.split(' ').collect();
    found.sort_unstable();
    assert_eq!(found, ["a", "b", "c"]);
    assert_eq!(list(&fixture, "").await, "a b c d");
}

#[tokio::test]
async fn tenant_lists_and_counts_only_its_own_runs() {
    let fixture = serve_tenants().await;
    let ask = |key: &'static str, tenant: Option<&'static str>, path: &str| {
        let url = fixture.url(&format!("/api/v1/{path}"));
        let request = fixture.client.get(url).header("x-api-key", key);
        answer(tenant.into_iter().fold(request, |it, tenant| it.header("x-tenant", tenant)))
    };
    let get = |key, tenant, query: &str| ask(key, tenant, &format!("runs?{query}"));
    for (key, header, query, found) in [
        ("k-acme", None, "", Ok("of-acme")),
        ("k-acme", None, "text=of-", Ok("of-acme")),
        ("k-acme", None, "text=globex", Ok("")),
        ("k-acme", None, "tenant=acme", Ok("of-acme")),
        ("k-acme", None, "tenant=globex", Err(403)),
        ("k-acme", None, "tenant=*", Err(403)),
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
        let (counted, counts) = ask(key, header, &format!("run-counts?{query}")).await;
        let expected = found.err().unwrap_or(200);
        assert_eq!((status, counted), (expected, expected), "{name}: {list}");
        if let Ok(found) = found {
            assert_eq!(threads(&list), found, "{name}");
            assert_eq!(counts["total"], found.split_whitespace().count(), "{name}");
        }
    }
    let (_, all) = get("k-operator", None, "tenant=*&text=acme").await;
    assert_eq!(all["items"][0]["tenant"], "acme");
    // The cursor of a list of all tenants cannot be used for the list of one tenant.
    let (_, first) = get("k-operator", None, "tenant=*&limit=1").await;
    let (shown, cursor) = (threads(&first), first["next_cursor"].as_str().unwrap());
    for (key, own) in [("k-acme", "of-acme"), ("k-globex", "of-globex")] {
        let (_, rest) = get(key, None, &format!("cursor={cursor}")).await;
        assert_eq!(threads(&rest), if shown == own { "" } else { own }, "{key}");
    }
}

#[tokio::test]
async fn searches_do_not_use_the_reserved_requests_of_the_control_plane() {
    let fixture = Fixture::start("[server.limits]\nopen = 1\n").await;
    start(&fixture, "t", "Ada").await;
    let events = fixture.client.get(fixture.url("/api/v1/threads/t/events"));
    // The stream is the only open request that the limit permits, except for requests to the
    // control plane.
    let stream = events.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    for query in ["", "app=greeter&tenant=*&limit=1", "text=", "metadata={}"] {
        assert_eq!(fixture.get(&format!("/api/v1/runs?{query}")).await.0, 200, "{query}");
    }
    let metadata = "runs?metadata=%7B%22customer%22%3A7%7D";
    for path in [
        "runs?text=a",
        metadata,
        "runs?graph=Greet",
        "runs?status=failed",
        "runs?failure=rude",
        "runs?created_to_ms=1",
        "run-counts",
    ] {
        let (status, problem) = fixture.get(&format!("/api/v1/{path}")).await;
        assert_eq!((status, &problem["code"]), (429, &json!("rate-limited")), "{path}");
    }
    drop(stream);
}
