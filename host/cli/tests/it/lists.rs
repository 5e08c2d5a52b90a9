//! Lists and counts of threads over HTTP: conditions, cursors, tenants, and the limit on open
//! requests.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::id::ThreadId;
use wattle_run::limit::SEARCH_TEXT_BYTES;
use wattle_run::ports::store::{Batch, ThreadRecord};

use crate::fixture::{Fixture, answer, options, write_app};

/// A host whose proxy names the tenant of each request.
const TENANTS: &str = r#"
[server]
tenant_header = "x-tenant"
[auth]
keys_env = "KEYS"
[tenants.acme]
keys_env = "ACME_KEYS"
[tenants.globex]
keys_env = "GLOBEX_KEYS"
"#;

/// Starts a run on a thread and waits until it ends or is interrupted.
async fn start(fixture: &Fixture, thread: &str, name: &str, metadata: Value) {
    let body = json!({
        "input": { "name": name }, "thread_id": thread, "metadata": metadata, "wait": true,
    });
    let (status, run) = fixture.post("/api/v1/apps/greeter/runs", &body).await;
    assert_eq!(status, 200, "{run}");
}

fn ids(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|thread| thread["thread"].as_str().unwrap()).collect()
}

/// Lists threads, sorted by id.
async fn list(fixture: &Fixture, query: &str) -> String {
    let (status, list) = fixture.get(&format!("/api/v1/threads?{query}")).await;
    assert_eq!(status, 200, "{list}");
    let mut ids = ids(&list);
    ids.sort_unstable();
    ids.join(" ")
}

#[tokio::test]
async fn threads_are_found_by_any_field() {
    let fixture = Fixture::start("").await;
    start(&fixture, "t-ada", "Ada", json!({ "customer": { "id": 7, "note": "wants Tea" } })).await;
    start(&fixture, "t-bob", "nobody", json!({ "customer": { "id": 8 } })).await;
    for (query, found) in [
        ("", "t-ada t-bob"),
        ("app=greeter&graph=Greet", "t-ada t-bob"),
        ("graph=other", ""),
        ("status=interrupted", "t-ada"),
        ("failure=rude", "t-bob"),
        ("text=tea", "t-ada"),
        ("text=NO+name", "t-bob"),
        ("text=customer", ""),
        ("metadata=%7B%22customer%22%3A%7B%22id%22%3A7%7D%7D", "t-ada"),
        ("metadata=%7B%22customer%22%3A7%7D", ""),
        ("created_from_ms=1&updated_from_ms=1", "t-ada t-bob"),
        ("created_to_ms=1", ""),
        ("updated_to_ms=1", ""),
    ] {
        assert_eq!(list(&fixture, query).await, found, "{query}");
    }
    let (_, failed) = fixture.get("/api/v1/threads?failure=rude").await;
    let message = "node `greet` of plugin `greeter`: nobody is no name";
    let failure = json!({ "code": "rude", "message": message, "retryable": false });
    assert_eq!(failed["items"][0]["failure"], failure);
    let (_, thread) = fixture.get("/api/v1/threads/t-bob").await;
    assert_eq!(thread["failure"]["message"], failure["message"]);
    assert_eq!(thread["failure"]["details"]["reason"], "nobody is no name");

    let (_, counts) = fixture.get("/api/v1/thread-counts").await;
    let by_status = json!({ "idle": 0, "running": 0, "interrupted": 1, "error": 1 });
    assert_eq!(counts, json!({ "total": 2, "by_status": by_status, "is_complete": true }));
    let (_, counts) = fixture.get("/api/v1/thread-counts?text=tea").await;
    assert_eq!((&counts["total"], &counts["by_status"]["interrupted"]), (&json!(1), &json!(1)));

    // The next run of the thread does not fail.
    start(&fixture, "t-bob", "Bob", json!({})).await;
    assert_eq!(list(&fixture, "failure=rude").await, "");
    let (_, thread) = fixture.get("/api/v1/threads?text=t-bob").await;
    assert_eq!(thread["items"][0].get("failure"), None, "{thread}");
}

#[tokio::test]
async fn invalid_parameters_are_explained() {
    let fixture = Fixture::start("").await;
    let long = format!("text={}", "x".repeat(SEARCH_TEXT_BYTES + 1));
    for (path, query, expected) in [
        ("threads", "colour=1", "unknown field `colour`"),
        ("threads", "metadata=[]", "`metadata` must be a JSON object"),
        ("threads", long.as_str(), "the limit is 512"),
        ("threads", "cursor=5.a", "`next_cursor`"),
        ("threads", "cursor=NS5h&offset=1", "exclude each other"),
        ("threads", "text=a&offset=1", "continue with the `next_cursor`"),
        ("threads", "tenant=a/b", "a tenant's name"),
        ("thread-counts", "limit=1", "unknown field `limit`"),
        ("thread-counts", "status=bored", "unknown variant `bored`"),
    ] {
        let (status, problem) = fixture.get(&format!("/api/v1/{path}?{query}")).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{query}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{query}: {detail}");
    }
}

#[tokio::test]
async fn cursor_continues_a_list_whose_threads_change() {
    let fixture = Fixture::start("").await;
    for thread in ["a", "b", "c", "d", "e"] {
        start(&fixture, thread, "Ada", json!({})).await;
    }
    let (_, first) = fixture.get("/api/v1/threads?limit=2").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let after = format!("/api/v1/threads?limit=2&cursor={cursor}");
    let (_, second) = fixture.get(&after).await;
    assert_eq!(first["next_offset"], 2);
    let (_, by_offset) = fixture.get("/api/v1/threads?limit=2&offset=2").await;
    assert_eq!((ids(&by_offset), &by_offset["next_offset"]), (ids(&second), &json!(4)));
    assert_eq!(by_offset["next_cursor"], second["next_cursor"]);
    assert_eq!(second.get("next_offset"), None, "a cursor is continued by a cursor");

    // A thread of the first page moves to the front. The later pages do not change.
    start(&fixture, ids(&first)[1], "Bob", json!({})).await;
    assert_eq!(fixture.get(&after).await.1, second);
    let cursor = second["next_cursor"].as_str().unwrap();
    let (_, last) = fixture.get(&format!("/api/v1/threads?cursor={cursor}")).await;
    assert_eq!(last.get("next_cursor"), None);
    let mut all = [ids(&first), ids(&second), ids(&last)].concat();
    all.sort_unstable();
    assert_eq!(all, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn no_list_has_expired_threads() {
    let fixture = Fixture::start("").await;
    for thread in ["t-old", "t-new"] {
        start(&fixture, thread, "Ada", json!({})).await;
    }
    let lists = ["threads", "threads?text=t-", "runs", "runs?text=t-", "interrupts"];
    let shown = async |path: &str| {
        let (status, list) = fixture.get(&format!("/api/v1/{path}")).await;
        assert_eq!(status, 200, "{list}");
        let mut threads = ids(&list);
        threads.sort_unstable();
        threads.join(" ")
    };
    for path in lists {
        assert_eq!(shown(path).await, "t-new t-old", "{path}");
    }
    let store = &fixture.server.engine.ports().store;
    let thread = ThreadId::new("t-old").unwrap();
    let record = store.thread(&thread).await.unwrap().unwrap().record;
    let record = Some(ThreadRecord { expires_ms: Some(1), ..record });
    store.append(&thread, Batch { record, ..Batch::default() }).await.await.unwrap();
    for path in lists {
        assert_eq!(shown(path).await, "t-new", "{path}");
    }
    assert_eq!(shown("threads?offset=1").await, "");
    for query in ["", "?text=t-"] {
        for path in ["thread-counts", "run-counts"] {
            let (_, counts) = fixture.get(&format!("/api/v1/{path}{query}")).await;
            assert_eq!(counts["total"], 1, "{path}{query}");
        }
    }
}

/// Starts a server for tenants, with a thread of each.
pub(crate) async fn serve_tenants() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut with_keys = options();
    let env = |name: &str| match name {
        "KEYS" => Some("k-operator".to_owned()),
        "ACME_KEYS" => Some("k-acme".to_owned()),
        "GLOBEX_KEYS" => Some("k-globex".to_owned()),
        _ => None,
    };
    with_keys.overrides.env = Some(Arc::new(env));
    let fixture = Fixture::start_as(folder, TENANTS, with_keys).await;
    for (key, thread) in [("k-acme", "of-acme"), ("k-globex", "of-globex")] {
        let body = json!({ "input": { "name": "Ada" }, "thread_id": thread, "wait": true });
        let run = fixture.client.post(fixture.url("/api/v1/apps/greeter/runs")).json(&body);
        assert_eq!(answer(run.header("x-api-key", key)).await.0, 200);
    }
    fixture
}

#[tokio::test]
async fn tenant_lists_and_counts_only_its_own_threads() {
    let fixture = serve_tenants().await;
    let get = |key: &'static str, tenant: Option<&'static str>, path: String| {
        let request = fixture.client.get(fixture.url(&path)).header("x-api-key", key);
        answer(tenant.into_iter().fold(request, |it, tenant| it.header("x-tenant", tenant)))
    };
    for (key, header, query, found) in [
        ("k-acme", None, "", Ok("of-acme")),
        ("k-acme", None, "text=of-", Ok("of-acme")),
        ("k-acme", None, "text=globex", Ok("")),
        ("k-acme", None, "tenant=acme", Ok("of-acme")),
        ("k-acme", None, "tenant=globex", Err(403)),
        ("k-acme", None, "tenant=*", Err(403)),
        ("k-operator", Some("acme"), "", Ok("of-acme")),
        ("k-operator", Some("acme"), "tenant=globex", Err(403)),
        ("k-operator", None, "tenant=globex", Ok("of-globex")),
        ("k-operator", None, "tenant=*", Ok("of-acme of-globex")),
        // A request of a proxy that does not name a tenant is refused, and does not get the list of
        // all tenants.
        ("k-operator", None, "", Err(401)),
    ] {
        let name = format!("{key} {header:?} {query}");
        let (status, listed) = get(key, header, format!("/api/v1/threads?{query}")).await;
        let (counted, counts) = get(key, header, format!("/api/v1/thread-counts?{query}")).await;
        let expected = found.err().unwrap_or(200);
        assert_eq!((status, counted), (expected, expected), "{name}");
        if let Ok(found) = found {
            let mut ids = ids(&listed);
            ids.sort_unstable();
            assert_eq!(ids.join(" "), found, "{name}");
            assert_eq!(counts["total"], ids.len(), "{name}");
        }
    }
    let (_, all) = get("k-operator", None, "/api/v1/threads?tenant=*&text=acme".to_owned()).await;
    assert_eq!(all["items"][0]["tenant"], "acme");
}

#[tokio::test]
async fn searches_do_not_use_the_reserved_requests_of_the_control_plane() {
    let fixture = Fixture::start("[server.limits]\nopen = 1\n").await;
    start(&fixture, "t", "Ada", json!({})).await;
    let events = fixture.client.get(fixture.url("/api/v1/threads/t/events"));
    // The stream is the only open request that the limit permits, except for requests to the
    // control plane.
    let stream = events.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let columns = ["", "status=idle&tenant=*", "app=greeter&updated_from_ms=1"];
    for query in columns.into_iter().chain(["text=", "metadata={}"]) {
        assert_eq!(fixture.get(&format!("/api/v1/threads?{query}")).await.0, 200, "{query}");
    }
    let metadata = "threads?metadata=%7B%22customer%22%3A7%7D";
    for path in ["threads?text=a", metadata, "threads?graph=Greet", "thread-counts", "interrupts"] {
        let (status, problem) = fixture.get(&format!("/api/v1/{path}")).await;
        assert_eq!((status, &problem["code"]), (429, &json!("rate-limited")), "{path}");
    }
    // An invalid search is refused before it counts as an open request.
    assert_eq!(fixture.get("/api/v1/threads?metadata=[]").await.0, 400);
    drop(stream);
}
