//! Principals: the events of a thread contain the key, the tenant and the user.

use std::sync::Arc;
use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use wattle::config::StoreKind;
use wattle::server::{Server, ServerOptions};
use wattle_graph::event::{CallStarted, Event, EventKind};
use wattle_graph::id::{Namespace, ThreadId};
use wattle_kit::need;
use wattle_kit::postgres::Postgres;
use wattle_run::export::Export;
use wattle_run::hostcall::runs::RunService as _;
use wattle_run::ports::Store;
use wattle_run::ports::store::Batch;
use wattle_store::InMemoryStore;

use crate::fixture::{Fixture, answer, config, options, write_app};
use crate::native_sandbox::SLOW;

/// Timeout for an event that occurs soon.
const SOON: Duration = Duration::from_mins(1);

/// Two tenants, and a proxy on this machine that names users.
const TOML: &str = r#"
[server]
user_header = "x-user"
trusted_proxies = ["127.0.0.1"]
[auth]
keys_env = "KEYS"
[tenants.acme]
keys_env = "ACME_KEYS"
[tenants.globex]
keys_env = "GLOBEX_KEYS"
"#;

async fn start(toml: &str, store: Option<Arc<dyn Store>>) -> Fixture {
    start_as(toml, store, StoreKind::Memory).await
}

async fn start_as(toml: &str, store: Option<Arc<dyn Store>>, kind: StoreKind) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut with_keys: ServerOptions = options();
    let env = |name: &str| match name {
        "KEYS" => Some("k-operator".to_owned()),
        "ACME_KEYS" => Some("k-acme".to_owned()),
        "GLOBEX_KEYS" => Some("k-globex".to_owned()),
        _ => None,
    };
    with_keys.overrides.env = Some(Arc::new(env));
    with_keys.overrides.store = store;
    let mut config = config(folder.path(), toml);
    config.store.kind = kind;
    let server = Server::start(config, with_keys).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    Fixture { server, client, folder }
}

/// A person who uses a key of a tenant, behind the proxy.
#[derive(Clone)]
struct Person {
    key: String,
    principal: Value,
    user: &'static str,
}

impl Person {
    async fn of(fixture: &Fixture, tenant: &str, user: &'static str) -> Self {
        let wanted = json!({ "name": user, "tenant": tenant, "scopes": ["write"] });
        let make = fixture.client.post(fixture.url("/api/v1/keys")).json(&wanted);
        let (status, made) = answer(make.header("x-api-key", "k-operator")).await;
        assert_eq!(status, 201, "{made}");
        let principal = json!({ "key": made["id"], "tenant": tenant, "user": user });
        Self { key: made["key"].as_str().unwrap().to_owned(), principal, user }
    }

    fn sign(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("x-api-key", &self.key).header("x-user", self.user)
    }

    async fn post(&self, fixture: &Fixture, path: &str, body: Value) -> Value {
        let post = fixture.client.post(fixture.url(path)).json(&body);
        let (status, value) = answer(self.sign(post)).await;
        assert!((200..300).contains(&status), "{path}: {status} {value}");
        value
    }

    async fn get(&self, fixture: &Fixture, path: &str) -> Value {
        let (status, value) = answer(self.sign(fixture.client.get(fixture.url(path)))).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// Returns the events of a thread that contain a principal, by type.
    async fn named(&self, fixture: &Fixture, thread: &str) -> Vec<(String, Value)> {
        let path = format!("/api/v1/threads/{thread}/events?until=idle");
        let text = self.get(fixture, &path).await;
        let data = text.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("data: "));
        let events = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
        let named = events.filter(|event| event.get("principal").is_some());
        let name = |event: &Value| event["type"].as_str().unwrap().to_owned();
        named.map(|event| (name(&event), event["principal"].clone())).collect()
    }
}

/// Returns event types with the expected principal of each.
fn told(events: &[(&str, &Person)]) -> Vec<(String, Value)> {
    let told = |(name, person): &(&str, &Person)| ((*name).to_owned(), person.principal.clone());
    events.iter().map(told).collect()
}

/// Adds a call in doubt to the event log of an interrupted thread.
async fn leave_in_doubt(store: &dyn Store, thread: &str) -> String {
    let thread = ThreadId::new(thread).unwrap();
    let head = store.thread(&thread).await.unwrap().unwrap();
    let events = store.events(&thread, 0, 1_000).await.unwrap();
    let task = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::TaskStarted(started) => Some(started.task.clone()),
        _ => None,
    });
    let (task, last) = (task.unwrap(), events.last().unwrap());
    let call = CallStarted {
        task: task.clone(),
        scope: Vec::new(),
        call: 0,
        function: "http.send".into(),
        summary: "POST https://example.com/pay".into(),
        is_structured: false,
        start_number: 0,
        request: None,
    };
    let event = Event {
        seq: head.last_seq + 1,
        at_ms: last.at_ms,
        run: last.run.clone(),
        namespace: Namespace::root(),
        kind: EventKind::CallStarted(call),
    };
    let batch = Batch { base: head.current, events: vec![event].into(), ..Batch::default() };
    store.append(&thread, batch).await.await.unwrap();
    task.to_string()
}

#[tokio::test]
async fn every_decision_names_its_principal() {
    let store = Arc::new(InMemoryStore::new());
    let fixture = start(TOML, Some(store.clone())).await;
    let jane = Person::of(&fixture, "acme", "jane").await;
    let joe = Person::of(&fixture, "acme", "joe").await;

    let start = |name: &str| json!({ "input": { "name": name }, "thread_id": "t", "wait": true });
    jane.post(&fixture, "/api/v1/apps/greeter/runs", start("Ada")).await;
    let answers = json!({ "answers": { "": true }, "wait": true });
    joe.post(&fixture, "/api/v1/threads/t/resume", answers).await;
    let edits = json!({ "supersteps": [[{ "as_node": "ask", "values": { "approved": false } }]] });
    jane.post(&fixture, "/api/v1/threads/t/edits", edits).await;
    let fork = json!({ "checkpoint": 2, "wait": true });
    joe.post(&fixture, "/api/v1/threads/t/fork", fork).await;
    let expected = [
        ("run_started", &jane),
        ("run_started", &joe),
        ("answered", &joe),
        ("checkpointed", &jane),
        ("run_started", &joe),
        ("forked", &joe),
    ];
    assert_eq!(jane.named(&fixture, "t").await, told(&expected));

    let trace = jane.get(&fixture, "/api/v1/threads/t/trace").await;
    let runs = trace["runs"].as_array().unwrap();
    let askers: Vec<&Value> = runs.iter().map(|run| &run["principal"]).collect();
    assert_eq!(askers, [&jane.principal, &joe.principal, &joe.principal], "{trace}");
    assert_eq!(runs[1]["answers"][0]["principal"], joe.principal);
    let change = &trace["changes"][0];
    assert_eq!((&change["change"], &change["principal"]), (&json!("edited"), &jane.principal));

    let slow = json!({ "input": { "name": SLOW }, "thread_id": "slow" });
    let run = jane.post(&fixture, "/api/v1/apps/greeter/runs", slow).await;
    let cancel = format!("/api/v1/runs/{}/cancel", run["run"].as_str().unwrap());
    joe.post(&fixture, &cancel, json!({})).await;
    let expected = [("run_started", &jane), ("run_ended", &joe)];
    assert_eq!(jane.named(&fixture, "slow").await, told(&expected));
    let trace = jane.get(&fixture, "/api/v1/threads/slow/trace").await;
    assert_eq!(trace["runs"][0]["cancelled_by"], joe.principal, "{trace}");

    let rude = json!({ "input": { "name": "nobody" }, "thread_id": "rude", "wait": true });
    jane.post(&fixture, "/api/v1/apps/greeter/runs", rude).await;
    let task = leave_in_doubt(store.as_ref(), "rude").await;
    let settle = json!({
        "task": task, "call": 0, "decision": { "kind": "retry" }, "by": "the boss",
    });
    joe.post(&fixture, "/api/v1/threads/rude/settle", settle).await;
    let expected = [("run_started", &jane), ("settled", &joe)];
    assert_eq!(jane.named(&fixture, "rude").await, told(&expected));
    let trace = jane.get(&fixture, "/api/v1/threads/rude/trace").await;
    assert_eq!(trace["changes"][0]["principal"], joe.principal, "{trace}");
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn an_export_has_sealed_principals() {
    let fixture = start(TOML, None).await;
    let jane = Person::of(&fixture, "acme", "jane").await;
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    jane.post(&fixture, "/api/v1/apps/greeter/runs", start).await;
    let answers = json!({ "answers": { "": true }, "wait": true });
    jane.post(&fixture, "/api/v1/threads/t/resume", answers).await;
    jane.get(&fixture, "/api/v1/threads/t/verify").await;
    let export = jane.get(&fixture, "/api/v1/threads/t/export").await;
    let export = export.as_str().unwrap();
    assert!(export.contains(&jane.principal.to_string()), "{export}");
    assert!(!export.contains(&jane.key), "the key itself is nowhere");
    Export::read(export).unwrap().verify().unwrap();
    let forged = export.replace(r#""user":"jane""#, r#""user":"joe""#);
    let error = Export::read(&forged).unwrap().verify().unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
    let without = export.replace(&format!(r#","principal":{}"#, jane.principal), "");
    assert_ne!(without, export);
    assert!(Export::read(&without).unwrap().verify().is_err());
    fixture.server.shutdown().await;
}

/// Waits until a run has started.
async fn begun(person: &Person, fixture: &Fixture, run: &str) {
    let asked = std::time::Instant::now();
    while person.get(fixture, run).await["status"] == "pending" {
        assert!(asked.elapsed() < SOON, "{run} does not begin");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn principals_include_clients_of_the_agent_server_api() {
    let fixture = start(TOML, None).await;
    let jane = Person::of(&fixture, "acme", "jane").await;
    let joe = Person::of(&fixture, "acme", "joe").await;
    let made = jane.post(&fixture, "/threads", json!({})).await;
    let id = made["thread_id"].as_str().unwrap();
    let thread = format!("/threads/{id}");
    let wait = format!("{thread}/runs/wait");
    let start = json!({ "assistant_id": "Greet", "input": { "name": "Ada" } });
    jane.post(&fixture, &wait, start).await;
    let resume = json!({ "assistant_id": "Greet", "command": { "resume": true } });
    joe.post(&fixture, &wait, resume).await;
    let edit = json!({ "values": { "approved": false }, "as_node": "ask" });
    jane.post(&fixture, &format!("{thread}/state"), edit).await;
    let slow = json!({ "assistant_id": "Greet", "input": { "name": SLOW } });
    let now = jane.post(&fixture, &format!("{thread}/runs"), slow.clone()).await;
    // The run is pending behind the other run, and keeps its principal.
    let later = joe.post(&fixture, &format!("{thread}/runs"), slow).await;
    let id_of = |run: &Value| run["run_id"].as_str().unwrap().to_owned();
    let (first, second) = (id_of(&now), id_of(&later));
    let cancel = |run: &str| format!("{thread}/runs/{run}/cancel?wait=true");
    joe.post(&fixture, &cancel(&first), json!({})).await;
    begun(&jane, &fixture, &format!("{thread}/runs/{second}")).await;
    jane.post(&fixture, &cancel(&second), json!({})).await;
    let expected = [
        ("run_started", &jane),
        ("run_started", &joe),
        ("answered", &joe),
        ("checkpointed", &jane),
        ("run_started", &jane),
        ("run_ended", &joe),
        ("run_started", &joe),
        ("run_ended", &jane),
    ];
    assert_eq!(jane.named(&fixture, id).await, told(&expected));
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn a_cancel_through_another_host_names_its_principal() {
    let database = need!(Postgres::for_test());
    let toml = format!("{TOML}\n[store]\nurl = \"{}\"\n", database.url());
    let one = start_as(&toml, None, StoreKind::Postgres).await;
    let other = start_as(&toml, None, StoreKind::Postgres).await;
    let jane = Person::of(&one, "acme", "jane").await;
    let slow = json!({ "input": { "name": SLOW }, "thread_id": "slow" });
    let run = jane.post(&one, "/api/v1/apps/greeter/runs", slow).await;
    // The test uses a key of the configuration, because another host takes some time to load a
    // newly created key.
    let cancel = format!("/api/v1/runs/{}/cancel", run["run"].as_str().unwrap());
    let cancel = other.client.post(other.url(&cancel)).header("x-api-key", "k-acme");
    let (status, cancelled) = answer(cancel.header("x-user", "joe")).await;
    assert_eq!((status, &cancelled["status"]), (202, &json!("cancelled")), "{cancelled}");
    let named = jane.named(&one, "slow").await;
    let (name, principal) = named.last().unwrap();
    assert_eq!((name.as_str(), &principal["user"]), ("run_ended", &json!("joe")), "{principal}");
    other.server.shutdown().await;
    one.server.shutdown().await;
}

#[tokio::test]
async fn the_app_of_a_web_handler_is_named_with_the_key() {
    let fixture = start(TOML, None).await;
    let jane = Person::of(&fixture, "acme", "jane").await;
    let ended = jane.post(&fixture, "/apps/greeter/start", json!({ "name": "Ada" })).await;
    let thread = ended["thread"].as_str().unwrap();
    let named = jane.named(&fixture, thread).await;
    let mut principal = jane.principal.clone();
    principal["app"] = "greeter".into();
    assert_eq!(named, [("run_started".to_owned(), principal)]);
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn a_configured_key_is_named_by_a_part_of_its_digest() {
    let fixture = start(TOML, None).await;
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    let start = fixture.client.post(fixture.url("/api/v1/apps/greeter/runs")).json(&start);
    assert_eq!(answer(start.header("x-api-key", "k-globex")).await.0, 200);
    let thread = ThreadId::new("t").unwrap();
    let events = fixture.server.engine.events(&thread, 0, 1).await.unwrap();
    let event = serde_json::to_value(&events[0]).unwrap();
    let digest = wattle_api::ApiConfig::key_digest("k-globex").to_hex();
    let id = format!("configured-{}", &digest[..4]);
    assert_eq!(event["principal"], json!({ "key": id, "tenant": "globex" }));
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn without_keys_no_principal_is_named() {
    let fixture = Fixture::start("").await;
    let start = json!({ "input": { "name": "Ada" }, "thread_id": "t", "wait": true });
    fixture.post("/api/v1/apps/greeter/runs", &start).await;
    // The setting is missing, so the header of a client is ignored.
    let resume = fixture.client.post(fixture.url("/api/v1/threads/t/resume"));
    let resume = resume.header("x-user", "jane").json(&json!({ "answers": { "": true } }));
    assert_eq!(answer(resume).await.0, 202);
    let thread = ThreadId::new("t").unwrap();
    let events = fixture.server.engine.events(&thread, 0, 1_000).await.unwrap();
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::Answered(_))));
    assert!(!serde_json::to_string(&events).unwrap().contains("principal"));
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn only_a_trusted_proxy_names_the_user() {
    let untrusted = TOML.replace("127.0.0.1", "10.0.0.0/8");
    for (toml, user, status) in [
        (TOML, "jane", 200),
        (TOML, "", 200),
        (TOML, "jane\tjoe", 400),
        (TOML, &"x".repeat(257), 400),
        (&untrusted, "jane", 403),
    ] {
        let fixture = start(toml, None).await;
        for path in ["/api/v1/threads", "/apps/greeter/echo/x"] {
            let get = fixture.client.get(fixture.url(path)).header("x-api-key", "k-acme");
            let (found, value) = answer(get.header("x-user", user)).await;
            assert_eq!(found, status, "{path} {user:?}: {value}");
        }
        let info = fixture.client.get(fixture.url("/info")).header("x-api-key", "k-acme");
        let (found, value) = answer(info.header("x-user", user)).await;
        assert_eq!((found, value["detail"].is_string()), (status, status != 200), "{value}");
        fixture.server.shutdown().await;
    }
}

#[test]
fn a_user_header_needs_its_proxies() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wattle.toml");
    for (toml, said) in [
        ("[server]\nuser_header = \"x-user\"\n", "no proxy is trusted to send the header `x-user`"),
        (
            "[server]\ntrusted_proxies = [\"::1\"]\n",
            "no header is configured that these proxies may send",
        ),
        (
            "[server]\nuser_header = \"x-user\"\ntrusted_proxies = [\"proxy.example\"]\n",
            "`proxy.example` is neither an IP address nor a network",
        ),
        (
            "[server]\nuser_header = \"x user\"\ntrusted_proxies = [\"::1\"]\n",
            "`x user` is not a header name",
        ),
    ] {
        std::fs::write(&file, toml).unwrap();
        let error = wattle::config::read(Some(&file)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
