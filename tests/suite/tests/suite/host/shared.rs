//! Tests of two real hosts on one PostgreSQL: each continues what the other started, also when the
//! other is killed, and they never write to one thread at the same time.

mod share;
mod stop;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use wattle_kit::need;
use wattle_kit::needs::LeftOut;
use wattle_kit::postgres::Postgres;
use wattle_kit::standin::{Gate, Handle, Outcome, Pattern};
use wattle_suite::binary::{self, Served};
use wattle_suite::event_stream::messages;
use wattle_suite::scene::Scene;
use wattle_suite::workspace::{self, Workspace};

/// The path of the services that the gate holds.
const HELD: &str = "/count/held";

/// The path where the services answer for models.
const CHAT: &str = "/v1/chat/completions";

/// The lease of hosts whose loss must be noticed soon. It is shorter than the default, and long
/// enough for a host on a busy machine.
const SHORT: &str = "lease = \"3s\"";

/// The longest wait for any event, including a takeover.
const IN_TIME: Duration = Duration::from_secs(40);

/// A graph with an HTTP node and a node with a model call and a GET that only one host may reach,
/// and a graph whose run never ends by itself.
const CHAIN: &str = r#"
[graphs.chain]
entry = "ungranted_http"
[graphs.chain.channels.route]
[graphs.chain.channels.url]
[graphs.chain.channels.status]
[graphs.chain.channels.text]
[graphs.chain.channels.body]
[graphs.chain.nodes.ungranted_http]
[graphs.chain.nodes.call_then_wait]
[[graphs.chain.edges]]
from = "ungranted_http"
to = "call_then_wait"

[graphs.endless]
entry = "again"
recursion_limit = 1000000
edges = [{ from = "again", to = "again" }]
[graphs.endless.channels.number]
[graphs.endless.nodes.again]
node = "counter"
goto = "END"
"#;

/// Two hosts with their own data folders; they share the apps, the services and the database.
struct Pair {
    a: Served,
    b: Served,
    scene: Scene,
    /// The folder of host B; the scene has the folder of host A.
    workspace: Workspace,
    _postgres: Postgres,
}

impl Pair {
    /// Starts both hosts. A test is left out without PostgreSQL.
    async fn start() -> Result<Self, LeftOut> {
        Self::start_with("").await
    }

    /// Starts both hosts with `more` in the `store` table of their configuration.
    async fn start_with(more: &str) -> Result<Self, LeftOut> {
        let (postgres, database) = crate::asset::postgres::database()?;
        let store = format!("[store]\nurl = \"{database}\"\n{more}\n");
        let scene = Scene::new(|workspace, standin| {
            workspace.add_misdeeds(&(super::sandbox::graphs() + CHAIN));
            share(workspace, standin, &store)
        })
        .await;
        let workspace = Workspace::new();
        workspace.share_compiled_code();
        let apps = format!("plugins = \"{}\"", scene.workspace.plugins().display());
        let toml = share(&workspace, &scene.standin, &store);
        workspace.write("wattle.toml", toml.replace("plugins = \"plugins\"", &apps));
        let a = binary::serve(&scene.workspace).await;
        let b = binary::serve(&workspace).await;
        Ok(Self { a, b, scene, workspace, _postgres: postgres })
    }

    /// Starts a run on host A and waits until it reaches the gate. Returns the thread and the run.
    async fn begin(&self, graph: &str, gate: &Gate) -> (String, String) {
        let url = format!("{}{HELD}", self.scene.standin.base_url);
        let input = json!({ "route": "chat", "text": "hello", "url": url });
        let start = json!({ "graph": graph, "input": input });
        let run = self.scene.post(&self.a, "/api/v1/apps/misdeeds/runs", &start).await.expect(202);
        gate.arrived(1).await.unwrap();
        let text = |key: &str| run[key].as_str().unwrap().to_owned();
        (text("thread"), text("run"))
    }

    /// Waits on a host until a run has ended, and returns the run.
    async fn ended(&self, host: &Served, run: &str) -> Value {
        let path = format!("/api/v1/runs/{run}/wait");
        let ended = tokio::time::timeout(IN_TIME, self.scene.get(host, &path)).await;
        ended.expect("the run ends in time")
    }

    /// Returns the type of each event of a thread in order, as a host shows them.
    async fn events(&self, host: &Served, thread: &str) -> Vec<String> {
        let path = format!("/api/v1/threads/{thread}/events?until=idle");
        let text = self.scene.get(host, &path).await;
        let events = messages(text.as_str().unwrap());
        for (event, seq) in events.iter().zip(1..) {
            assert_eq!(event.id, seq, "the numbers have no gap and no fork: {events:?}");
        }
        events.into_iter().map(|event| event.event).collect()
    }
}

/// Writes what both hosts share: the configuration, and the secret of their links.
fn share(workspace: &Workspace, standin: &Handle, store: &str) -> String {
    workspace.write("data/link.key", [7; 32]);
    [&workspace::base_toml(standin), &workspace::misdeeds_toml(standin), store].concat()
}

fn count(events: &[String], kind: &str) -> usize {
    events.iter().filter(|it| *it == kind).count()
}

async fn signal(host: &Served, signal: &str) {
    let id = host.program.id().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
}

#[tokio::test]
async fn another_host_can_answer_an_interrupt() {
    let pair = need!(Pair::start().await);
    let Pair { a, b, scene, .. } = &pair;
    let url = format!("{}{HELD}", scene.standin.base_url);
    let input = json!({ "url": url, "route": "chat" });
    let start = json!({ "graph": "two_questions", "input": input, "wait": true });
    let run = scene.post(a, "/api/v1/apps/misdeeds/runs", &start).await.expect(200);
    assert_eq!(run["status"], "interrupted", "{run}");
    let thread = format!("/api/v1/threads/{}", run["thread"].as_str().unwrap());
    let answer = |answer: &str| json!({ "answers": { "": answer }, "wait": true });
    let resume = format!("{thread}/resume");
    let run = scene.post(b, &resume, &answer("one")).await.expect(200);
    assert_eq!(run["status"], "interrupted", "{run}");
    // The thread returns to host A, and its run ends on a host that did not start it.
    let run = scene.post(a, &resume, &answer("two")).await.expect(200);
    assert_eq!(
        (&run["status"], &run["state"]["answers"]),
        (&json!("completed"), &json!(["one", "two"]))
    );
    for host in [a, b] {
        let view = scene.get(host, &thread).await;
        assert_eq!((&view["status"], &view["state"]), (&json!("idle"), &run["state"]));
    }
    assert_eq!((scene.answered(HELD), scene.answered(CHAT)), (1, 1), "no call was made twice");
}

#[tokio::test]
async fn another_host_can_wait_for_a_run_and_cancel_it() {
    let pair = need!(Pair::start().await);
    let Pair { a, b, scene, .. } = &pair;
    let gate = scene.standin.gate(Pattern::path(HELD));
    let (thread, run) = pair.begin("call_then_wait", &gate).await;
    let again = json!({
        "graph": "call_then_wait", "input": {}, "thread_id": thread,
        "multitask_strategy": "reject",
    });
    let busy = scene.post(b, "/api/v1/apps/misdeeds/runs", &again).await.expect(409);
    assert_eq!(busy["code"], "busy", "{busy}");
    let (ended, ()) = tokio::join!(pair.ended(b, &run), async { gate.open() });
    assert_eq!(ended["status"], "completed", "{ended}");
    // As soon as a client has received the end, any host accepts the next run of the thread.
    let run = scene.post(b, "/api/v1/apps/misdeeds/runs", &again).await.expect(202);
    let ended = pair.ended(a, run["run"].as_str().unwrap()).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    drop(gate);

    let gate = scene.standin.gate(Pattern::path(HELD));
    let (thread, run) = pair.begin("call_then_wait", &gate).await;
    let path = format!("/api/v1/runs/{run}/cancel");
    let cancelled = scene.post(b, &path, &json!({})).await.expect(202);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert_eq!(pair.ended(a, &run).await["status"], "cancelled");
    assert_eq!(count(&pair.events(a, &thread).await, "run_ended"), 1);
}

#[tokio::test]
async fn another_host_can_drain_a_run() {
    let pair = need!(Pair::start().await);
    let Pair { a, b, scene, .. } = &pair;
    let start = json!({ "graph": "endless", "input": {}, "thread_id": "t" });
    let run = scene.post(a, "/api/v1/apps/misdeeds/runs", &start).await.expect(202);
    let run = run["run"].as_str().unwrap();
    let drain = format!("/api/v1/threads/t/runs/{run}/drain");
    scene.post(b, &drain, &json!({})).await.expect(202);
    let ended = pair.ended(b, run).await;
    let stands = (json!("interrupted"), json!(["again"]));
    assert_eq!((&ended["status"], &ended["next"]), (&stands.0, &stands.1), "{ended}");
    // Draining a run that is already interrupted changes nothing, and either host can resume it.
    scene.post(b, &drain, &json!({})).await.expect(202);
    let resume = json!({ "options": { "recursion_limit": 2 }, "wait": true });
    let run = scene.post(b, "/api/v1/threads/t/resume", &resume).await.expect(200);
    assert_eq!(run["failure"]["code"], "limit", "{run}");
    let number = ended["state"]["number"].as_i64().unwrap();
    assert_eq!(run["state"]["number"], json!(number + 2), "{run}");
}

#[tokio::test]
async fn another_host_continues_the_run_of_a_killed_host() {
    let mut pair = need!(Pair::start_with(SHORT).await);
    let gate = pair.scene.standin.gate(Pattern::path(HELD));
    let (thread, run) = pair.begin("call_then_wait", &gate).await;
    pair.a.program.kill().await.unwrap();
    let gone = pair.scene.standin.wait_for_request(|it| it.outcome == Outcome::Abandoned);
    gone.await.unwrap();
    gate.open();

    let Pair { b, scene, .. } = &pair;
    let ended = pair.ended(b, &run).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["state"]["text"].as_str().unwrap().contains("hello"), "{ended}");
    assert_eq!((scene.answered(CHAT), scene.answered(HELD)), (1, 1), "no call was made twice");
    let trace = scene.get(b, &format!("/api/v1/threads/{thread}/trace")).await;
    assert_eq!(trace["runs"][0]["recoveries"], 1, "{trace}");
}

#[tokio::test]
async fn a_host_that_loses_its_lease_writes_nothing_more() {
    let pair = need!(Pair::start_with(SHORT).await);
    let Pair { a, b, scene, .. } = &pair;
    let gate = scene.standin.gate(Pattern::path(HELD));
    let (thread, run) = pair.begin("chain", &gate).await;
    signal(a, "-STOP").await;
    // Host B takes over when the lease has ended, and repeats the requests that have no answer.
    let taken_over = async { while gate.arrived(2).await.is_err() {} };
    tokio::time::timeout(IN_TIME, taken_over).await.expect("host B takes over in time");
    signal(a, "-CONT").await;
    gate.open();
    assert_eq!(pair.ended(b, &run).await["status"], "completed");
    // Host A answers when its own work on the run has ended. It reports how the run ended on host
    // B.
    assert_eq!(pair.ended(a, &run).await["status"], "completed");
    let events = pair.events(b, &thread).await;
    assert_eq!((count(&events, "run_started"), count(&events, "run_ended")), (2, 1), "{events:?}");
    assert_eq!(pair.events(a, &thread).await, events);
    assert_eq!(scene.answered(CHAT), 1, "host A did not continue");
    let history = scene.get(a, &format!("/api/v1/threads/{thread}/history")).await;
    let ids: Vec<&Value> = history.as_array().unwrap().iter().map(|it| &it["id"]).collect();
    let parents: Vec<&Value> = history.as_array().unwrap().iter().map(|it| &it["parent"]).collect();
    assert_eq!(ids[1..], parents[..parents.len() - 1], "one lineage: {history}");
    scene.get(a, &format!("/api/v1/threads/{thread}/verify")).await;
}
