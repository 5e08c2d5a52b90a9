//! What an operator sees over HTTP: the queue of pending runs, sizes of the store, and a disk with
//! too little free space.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use wattle::server::ServerOptions;
use wattle_kit::clock::ManualClock;
use wattle_run::free_disk::DiskSpace;
use wattle_run::limit::DISK_READING_MS;

use crate::crons::{NOW_MS, at};
use crate::fixture::{Fixture, answer, write_app};
use crate::lists::serve_tenants;
use crate::native_sandbox::SLOW;

const RUNS: &str = "/api/v1/apps/greeter/runs";

/// Configuration with a floor of 2 GiB of free disk space.
pub(crate) const FLOOR: &str = "[limits]\nfree_disk = \"2GiB\"\n";

pub(crate) const GIB: u64 = 1 << 30;

const QUEUE: &str = "/api/v1/queue";

/// Requests a run on a thread.
async fn ask(fixture: &Fixture, key: Option<&str>, thread: &str, name: &str) -> Value {
    let body = json!({ "input": { "name": name }, "thread_id": thread });
    let request = fixture.client.post(fixture.url(RUNS)).json(&body);
    let request = key.into_iter().fold(request, |it, key| it.header("x-api-key", key));
    let (status, run) = answer(request).await;
    assert_eq!(status, 202, "{run}");
    run
}

fn runs(list: &Value) -> Vec<Value> {
    list["items"].as_array().unwrap().iter().map(|item| item["run"].clone()).collect()
}

#[tokio::test]
async fn pending_runs_are_listed_in_the_order_of_their_requests() {
    let fixture = Fixture::start("").await;
    assert_eq!(fixture.get(QUEUE).await, (200, json!({ "items": [] })));
    ask(&fixture, None, "t", SLOW).await;
    let first = ask(&fixture, None, "t", "Ada").await;
    let second = ask(&fixture, None, "t", "Bob").await;
    let (_, list) = fixture.get(QUEUE).await;
    let item = json!({
        "run": first["run"], "thread": "t", "app": "greeter", "graph": "Greet",
        "created_ms": first["created_ms"], "due_ms": first["due_ms"],
    });
    assert_eq!((&list["items"][0], list.get("next_cursor")), (&item, None));
    assert_eq!(runs(&list), [first["run"].clone(), second["run"].clone()]);

    let (_, page) = fixture.get(&format!("{QUEUE}?limit=1")).await;
    assert_eq!(runs(&page), [first["run"].clone()]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let (_, page) = fixture.get(&format!("{QUEUE}?cursor={cursor}")).await;
    assert_eq!((runs(&page), page.get("next_cursor")), (vec![second["run"].clone()], None));
    let (_, page) = fixture.get(&format!("{QUEUE}?app=other")).await;
    assert_eq!(page, json!({ "items": [] }));
    for (query, detail) in
        [("cursor=next", "`next_cursor` of another page"), ("colour=1", "unknown field")]
    {
        let (status, problem) = fixture.get(&format!("{QUEUE}?{query}")).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{query}");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{query}: {problem}");
    }
}

#[tokio::test]
async fn another_tenant_sees_no_pending_runs() {
    let fixture = serve_tenants().await;
    for key in ["k-acme", "k-globex"] {
        ask(&fixture, Some(key), key, SLOW).await;
        ask(&fixture, Some(key), key, "Ada").await;
    }
    let get = |key: &'static str, tenant: Option<&'static str>, query: &str| {
        let url = fixture.url(&format!("{QUEUE}?{query}"));
        let request = fixture.client.get(url).header("x-api-key", key);
        answer(tenant.into_iter().fold(request, |it, tenant| it.header("x-tenant", tenant)))
    };
    for (key, header, query, found) in [
        ("k-acme", None, "", Ok("k-acme")),
        ("k-acme", None, "tenant=acme", Ok("k-acme")),
        ("k-acme", None, "tenant=globex", Err(403)),
        ("k-acme", None, "tenant=*", Err(403)),
        ("k-globex", None, "", Ok("k-globex")),
        ("k-operator", Some("acme"), "", Ok("k-acme")),
        ("k-operator", Some("other"), "", Ok("")),
        ("k-operator", None, "tenant=globex", Ok("k-globex")),
        ("k-operator", None, "tenant=*", Ok("k-acme k-globex")),
        // A request of a proxy that does not name a tenant is refused, and does not get the queue
        // of all tenants.
        ("k-operator", None, "", Err(401)),
    ] {
        let name = format!("{key} {header:?} {query}");
        let (status, list) = get(key, header, query).await;
        assert_eq!(status, found.err().unwrap_or(200), "{name}: {list}");
        if let Ok(found) = found {
            let items = list["items"].as_array().unwrap().iter();
            let threads: Vec<_> = items.map(|item| item["thread"].as_str().unwrap()).collect();
            assert_eq!(threads.join(" "), found, "{name}: {list}");
        }
    }
}

#[tokio::test]
async fn store_is_measured_at_most_once_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let clock = ManualClock::at_ms(NOW_MS);
    let fixture = Fixture::start_as(folder, "", at(&clock)).await;
    let body = json!({ "input": { "name": "Ada" }, "wait": true });
    let sizes = async || {
        let (status, run) = fixture.post(RUNS, &body).await;
        assert_eq!(status, 200, "{run}");
        let (status, sizes) = fixture.get("/api/v1/store/sizes").await;
        assert_eq!(status, 200, "{sizes}");
        sizes
    };
    let first = sizes().await;
    let bytes = first["bytes"].as_u64().unwrap();
    assert!(bytes > 0, "{first}");
    assert_eq!((&first["threads"], &first["measured_ms"]), (&json!(1), &json!(NOW_MS)));
    let row = json!({ "is_other": false, "threads": 1, "bytes": bytes });
    assert_eq!(first["tenants"], json!([row]));
    assert_eq!(first["apps"][0]["name"], "greeter");
    assert_eq!(first["apps"][0]["bytes"], bytes);
    let files = first["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["name"] == "server.json").unwrap();
    assert_eq!((&file["files"], &file["is_folder"]), (&json!(1), &json!(false)), "{first}");
    assert_eq!(sizes().await, first);
    clock.advance_ms(60_000);
    let later = sizes().await;
    assert_eq!((&later["threads"], &later["measured_ms"]), (&json!(3), &json!(NOW_MS + 60_000)));
}

#[tokio::test]
async fn host_without_the_agent_server_has_no_webhooks_and_no_crons() {
    let fixture = Fixture::start("[server]\nagent_server = false\n").await;
    for path in ["/api/v1/webhooks", "/api/v1/crons"] {
        let (status, problem) = fixture.get(path).await;
        assert_eq!((status, &problem["code"]), (404, &json!("not-found")), "{path}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("`agent_server = true`"), "{path}: {detail}");
    }
}

/// A disk of 100 GiB whose free space a test sets.
pub(crate) struct TestDisk {
    clock: ManualClock,
    free_bytes: Arc<AtomicU64>,
}

impl TestDisk {
    /// Creates a disk with 3 GiB of free space, and the options of a server that is on it.
    pub(crate) fn with_options() -> (Self, ServerOptions) {
        let (clock, free_bytes) = (ManualClock::at_ms(NOW_MS), Arc::new(AtomicU64::new(3 * GIB)));
        let mut options = at(&clock);
        let read = free_bytes.clone();
        let space = move || -> std::io::Result<DiskSpace> {
            Ok(DiskSpace { total_bytes: 100 * GIB, free_bytes: read.load(Ordering::Relaxed) })
        };
        options.overrides.disk_space = Some(Arc::new(space));
        (Self { clock, free_bytes }, options)
    }

    /// Sets the free space, which the server reads again at the next request.
    pub(crate) fn set(&self, free_bytes: u64) {
        self.free_bytes.store(free_bytes, Ordering::Relaxed);
        self.clock.advance_ms(u32::try_from(DISK_READING_MS).unwrap());
    }
}

#[tokio::test]
async fn nothing_begins_below_the_floor_of_free_disk_space_and_what_runs_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let (disk, options) = TestDisk::with_options();
    let fixture = Fixture::start_as(folder, FLOOR, options).await;
    let run =
        |thread: &str| json!({ "input": { "name": "Ada" }, "thread_id": thread, "wait": true });
    assert_eq!(fixture.post(RUNS, &run("t")).await.0, 200);
    let slow = ask(&fixture, None, "slow", SLOW).await;

    disk.set(GIB);
    let resume = json!({ "answers": { "": true }, "wait": true });
    for (path, body) in [(RUNS, run("other")), (RUNS, run("t")), ("/threads", json!({}))] {
        let (status, refused) = fixture.post(path, &body).await;
        assert_eq!(status, 503, "{path}: {refused}");
    }
    let document = json!({ "namespace": ["notes"], "key": "a", "value": "text" });
    let put = || fixture.client.put(fixture.url("/api/v1/memory/items")).json(&document);
    let (status, refused) = answer(put()).await;
    assert_eq!((status, &refused["details"]["limit"]), (503, &json!("free_disk")), "{refused}");
    let (_, refused) = fixture.post(RUNS, &run("other")).await;
    let details = json!({ "limit": "free_disk", "allowed": 2 * GIB, "free": GIB });
    assert_eq!((&refused["code"], &refused["details"]), (&json!("unavailable"), &details));
    assert_eq!(fixture.get("/api/v1/threads/other").await.0, 404);
    let (_, metrics) = fixture.get("/metrics").await;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("wattle_disk_free_bytes 1073741824\n"), "{metrics}");
    assert!(metrics.contains("wattle_disk_floor_bytes 2147483648\n"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let cancel = format!("/api/v1/runs/{}/cancel", slow["run"].as_str().unwrap());
    assert_eq!(fixture.post(&cancel, &json!({})).await.0, 202);
    let delete = fixture.client.delete(fixture.url("/api/v1/threads/slow"));
    assert_eq!(answer(delete).await.0, 204);

    // Answers are taken down to half of the floor.
    disk.set(GIB - 1);
    let (status, refused) = fixture.post("/api/v1/threads/t/resume", &resume).await;
    assert_eq!((status, &refused["details"]["allowed"]), (503, &json!(GIB)), "{refused}");
    disk.set(GIB);
    let (status, ended) = fixture.post("/api/v1/threads/t/resume", &resume).await;
    assert_eq!((status, &ended["status"]), (200, &json!("completed")), "{ended}");
    disk.set(2 * GIB);
    assert_eq!(fixture.post(RUNS, &run("other")).await.0, 200);
    assert_eq!(answer(put()).await.0, 204);
}
