//! Tests of the studio on the real host in a real browser: login, navigation, the lists of threads
//! and runs, the timeline of a run, its graph, its states and its log, the fork of a run that failed,
//! the actions on threads, the inbox, the playground, the installation of a plugin, and the operation
//! of the host.

mod control;
mod graph;
mod newcomer;
mod operations;
mod travel;

use bytes::Bytes;
use futures::future::join_all;
use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::desk::{Desk, MODEL_PATH};
use wattle_suite::scene::Scene;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::{browser, guests, workspace};

/// The program of the browser.
const PROGRAM: &str = "studio-shell.js";

/// The program of a user who watches a run.
const RUN_PROGRAM: &str = "studio-run.js";

/// The program of a user who reads states, differences, blobs and logs.
const STATE_PROGRAM: &str = "studio-state.js";

/// The path at which requests of tasks are held back.
const HELD: &str = "/count/held";

/// The program of reviewers at the inbox.
const INBOX: &str = "studio-inbox.js";

/// The program of an author who tries a tool and a graph.
const PLAY: &str = "studio-play.js";

/// The program of an operator who installs a plugin.
const PLUGINS: &str = "studio-plugins.js";

/// The path of the studio.
const STUDIO: &str = "/studio/";

/// The key of the configuration, which the program knows, too.
const KEY: &str = "studio-operator-key";

/// Starts runs of the app.
const RUNS: &str = "/api/v1/apps/misdeeds/runs";

/// Ten minutes.
const LATER_MS: u32 = 10 * 60 * 1_000;

/// A thread whose id reads backwards from its second word on.
const HOSTILE: &str = "<img src=x onerror=alert(1)> \u{202e}gnp";

const GRAPHS: &str = r#"
[graphs.count]
entry = "counter"
[graphs.count.channels.number]
schema = { type = "integer" }
[graphs.count.nodes.counter]
[graphs.fail]
entry = "fail_as"
[graphs.fail.channels.code]
schema = { type = "string" }
[graphs.fail.channels.message]
schema = { type = "string" }
[graphs.fail.nodes.fail_as]
"#;

/// Runs a graph on a thread until the run ends.
async fn run(server: &TestServer, tenant: Option<&str>, start: &Value) {
    let request = server.request_of(tenant, "POST", RUNS).json(start);
    Answer::of(request.bearer_auth(KEY)).await.expect(200);
}

/// A graph that raises an interrupt with the schema of its input.
const ASK: &str = r#"
[graphs.ask]
entry = "ask_shaped"
[graphs.ask.channels.schema]
[graphs.ask.channels.answer]
[graphs.ask.nodes.ask_shaped]
"#;

/// A graph that calls a model.
const TALK: &str = r#"
[graphs.talk]
entry = "ask_model"
[graphs.talk.channels.route]
[graphs.talk.channels.schema]
[graphs.talk.channels.answer]
[graphs.talk.nodes.ask_model]
"#;

/// Starts a server that needs these keys, if there are any, with a thread of a hostile user and a
/// plain one.
async fn served(keys: &'static str) -> Result<TestServer, LeftOut> {
    served_with(keys, "", "").await
}

/// As [`served`], with more graphs and configuration.
async fn served_with(keys: &'static str, graphs: &str, toml: &str) -> Result<TestServer, LeftOut> {
    clients::studio()?;
    let mut setup = Setup::misdeeds(&[GRAPHS, graphs].concat()).await.with(toml);
    if !keys.is_empty() {
        setup = setup.with_keys(keys);
    }
    let server = setup.start().await;
    for thread in [HOSTILE, "plain"] {
        let start = json!({
            "graph": "count",
            "input": { "number": 1 },
            "thread_id": thread,
            "metadata": { "note": "<script>alert(2)</script>" },
            "wait": true,
        });
        run(&server, None, &start).await;
    }
    Ok(server)
}

#[tokio::test]
async fn the_studio_shows_the_host_and_its_threads() {
    let server = need!(served("").await);
    need!(browser::at_a_browser(PROGRAM, "shows", &server.url(STUDIO)).await);
}

#[tokio::test]
async fn the_studio_is_also_at_the_root_of_a_host_without_a_page_there() {
    let server = need!(served("").await);
    need!(browser::at_a_browser(PROGRAM, "enters", &server.url("/")).await);
}

#[tokio::test]
async fn the_studio_asks_for_a_key_and_hands_it_to_other_tabs() {
    let server = need!(served(KEY).await);
    need!(browser::at_a_browser(PROGRAM, "logs_in", &server.url(STUDIO)).await);
}

#[tokio::test]
async fn the_studio_hides_what_a_key_forbids() {
    let server = need!(served_with(KEY, &[ASK, TALK].concat(), "").await);
    let refusal = Fault::Status { status: 400, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), refusal));
    for (thread, graph, input) in [
        ("refused", "talk", json!({ "route": "chat" })),
        ("question", "ask", json!({ "schema": { "type": "boolean" } })),
    ] {
        let start = json!({ "graph": graph, "input": input, "thread_id": thread, "wait": true });
        run(&server, None, &start).await;
    }
    let new = json!({ "name": "reader", "scopes": ["read"] });
    let request = server.request("POST", "/api/v1/keys").json(&new);
    let made = Answer::of(request.bearer_auth(KEY)).await.expect(201);
    let key = made["key"].as_str().expect("a key");
    let url = server.url(&format!("{STUDIO}?reader={key}"));
    need!(browser::at_a_browser(PROGRAM, "reads", &url).await);
}

/// Starts a server for tenants, with a failed thread of one, a later thread of another one, and
/// more threads before them than a page of the list has.
async fn served_to_tenants() -> Result<TestServer, LeftOut> {
    clients::studio()?;
    let setup = Setup::misdeeds(GRAPHS).await.with_tenants();
    let server = setup.with_keys(KEY).start().await;
    let fillers = (0..110).map(|number| {
        let thread = format!("filler-{number:03}");
        let input = json!({ "number": number });
        json!({ "graph": "count", "input": input, "thread_id": thread, "wait": true })
    });
    let fillers: Vec<Value> = fillers.collect();
    join_all(fillers.iter().map(|filler| run(&server, Some("acme"), filler))).await;
    server.clock().advance_ms(LATER_MS);
    let failing = json!({
        "graph": "fail",
        "input": { "code": "misdeed", "message": "no such order" },
        "thread_id": "order-2",
        "metadata": { "customer": 8, "note": "Milk, warm" },
        "wait": true,
    });
    run(&server, Some("globex"), &failing).await;
    server.clock().advance_ms(LATER_MS);
    run(&server, Some("acme"), &ordered()).await;
    Ok(server)
}

/// A run on the thread that the studio finds by its text.
fn ordered() -> Value {
    json!({
        "graph": "count",
        "input": { "number": 1 },
        "thread_id": "order-1",
        "metadata": { "customer": 7, "note": "Green tea" },
        "wait": true,
    })
}

#[tokio::test]
async fn the_studio_finds_threads_and_runs_of_all_tenants() {
    let server = need!(served_to_tenants().await);
    let obey = async |order: &str| match order {
        "run" => {
            server.clock().advance_ms(LATER_MS);
            run(&server, Some("acme"), &ordered()).await;
        }
        other => panic!("unexpected order `{other}` of the scenario"),
    };
    let new = json!({ "name": "globex", "tenant": "globex", "scopes": ["read"] });
    let request = server.request("POST", "/api/v1/keys").json(&new);
    let made = Answer::of(request.bearer_auth(KEY)).await.expect(201);
    let key = made["key"].as_str().expect("a key");
    let url = server.url(&format!("{STUDIO}?globex={key}"));
    need!(browser::with_orders(PROGRAM, "finds", &url, obey).await);
}

#[tokio::test]
async fn the_studio_says_that_its_server_is_away() {
    let server = need!(served("").await);
    need!(browser::at_a_browser(PROGRAM, "away", &server.url(STUDIO)).await);
}

#[tokio::test]
async fn the_studio_shows_the_calls_of_a_run() {
    need!(clients::studio());
    let server = Setup::desk(&Desk::default()).await.start().await;
    let run = server.chat("call echo {\"text\":\"<img src=x onerror=alert(1)>\"}").await;
    let thread = run["thread"].as_str().expect("an id");
    let url = server.url(&format!("{STUDIO}?thread={thread}"));
    need!(browser::at_a_browser(RUN_PROGRAM, "reads", &url).await);
}

#[tokio::test]
async fn the_studio_follows_a_run_beyond_the_end_of_its_server() {
    need!(clients::studio());
    let scene = Scene::new(|workspace, standin| {
        let desk = Desk::default();
        desk.put(workspace);
        [workspace::base_toml(standin), desk.toml(standin.addr.port())].concat()
    })
    .await;
    let gate = scene.standin.stream_gate(Pattern::path(MODEL_PATH));
    // The role of the message, and the first piece of its text.
    gate.release(2);
    let obey = |order: &str| match order {
        "open" => gate.open(),
        other => panic!("the scenario orders `{other}`"),
    };
    need!(browser::with_kills_and(RUN_PROGRAM, "outlives", &scene, STUDIO, obey).await);
}

/// A graph of two supersteps, each of which changes one channel.
const STEPS: &str = r#"
[graphs.steps]
entry = "counter"
[graphs.steps.channels.number]
schema = { type = "integer" }
[graphs.steps.channels.document]
[graphs.steps.nodes.counter]
[graphs.steps.nodes.touch]
[[graphs.steps.edges]]
from = "counter"
to = "touch"
"#;

/// A tenth of a second of silence: a WAV file with 800 samples of 8 bits, of 8,000 in a second.
const SOUND: [u8; 844] = {
    let head = b"RIFF\x44\x03\0\0WAVE\
                 fmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0\
                 data\x20\x03\0\0";
    let mut file = [0x80; 844];
    let mut at = 0;
    while at < head.len() {
        file[at] = head[at];
        at += 1;
    }
    file
};

/// Files by the names of the fields that refer to them: an image of one pixel, a sound, a
/// document, a page and a drawing.
const FILES: [(&str, &[u8], &str); 5] = [
    (
        "image",
        b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\
          \x02\x02D\x01\0;",
        "image/gif",
    ),
    ("sound", &SOUND, "audio/wav"),
    ("paper", b"%PDF-1.7 <script>alert(5)</script>", "application/pdf"),
    ("page", b"<script>alert(3)</script>", "text/html"),
    ("drawing", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(4)'/>", "image/svg+xml"),
];

#[tokio::test]
async fn the_studio_shows_the_state_after_each_step() {
    need!(clients::studio());
    let server = Setup::misdeeds(STEPS).await.start().await;
    let blobs = server.running.engine.ports().blobs.clone();
    let mut document = json!({ "n": 0, "note": HOSTILE });
    let mut url = server.url(&format!("{STUDIO}?thread=steps"));
    for (name, bytes, media_type) in FILES {
        let blob = blobs.put(Bytes::from_static(bytes), media_type).await.expect("it is stored");
        document[name] = json!(blob.to_string());
        url = format!("{url}&{name}={}", blob.0);
    }
    for title in ["The red tree.", "The green tree."] {
        document["title"] = json!(title);
        let start = json!({
            "graph": "steps",
            "input": { "number": 1, "document": document },
            "thread_id": "steps",
            "wait": true,
        });
        run(&server, None, &start).await;
    }
    need!(browser::at_a_browser(STATE_PROGRAM, "steps", &url).await);
}

/// Returns the schema of the answer to a question. The program has the answer for each number.
fn schema_of(number: u32) -> Value {
    let decision = |name: &str, more: Value| {
        let mut properties = more;
        properties["decision"] = json!({ "const": name });
        json!({ "type": "object", "properties": properties, "required": ["decision"] })
    };
    match number % 10 {
        0 => json!({ "oneOf": [
            decision("approve", json!({})),
            decision("reject", json!({ "message": { "type": "string" } })),
        ] }),
        5 => json!({
            "type": "object",
            "properties": {
                "count": { "type": "integer", "minimum": 1 },
                "name": { "type": "string", "maxLength": 40 },
            },
            "required": ["count", "name"],
        }),
        _ => json!({ "type": "boolean" }),
    }
}

/// Starts a server with threads that wait for an answer, each with a question of this number. Returns
/// the address of the studio with the keys of two reviewers as parameters, which the studio ignores.
async fn asked(numbers: impl Iterator<Item = u32>) -> Result<(TestServer, String), LeftOut> {
    clients::studio()?;
    let server = Setup::misdeeds(ASK).await.with_keys(KEY).start().await;
    for number in numbers {
        let start = json!({
            "input": { "schema": schema_of(number) },
            "thread_id": format!("q{number:02}"),
            "wait": true,
        });
        let request = server.request("POST", "/api/v1/apps/misdeeds/runs").json(&start);
        let run = Answer::of(request.bearer_auth(KEY)).await.expect(200);
        assert_eq!(run["status"], "interrupted", "{run}");
    }
    let mut url = server.url(STUDIO);
    for (reviewer, first) in [("anna", '?'), ("ben", '&')] {
        let new = json!({ "name": reviewer, "scopes": ["write"] });
        let request = server.request("POST", "/api/v1/keys").json(&new);
        let made = Answer::of(request.bearer_auth(KEY)).await.expect(201);
        let (key, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
        url = format!("{url}{first}{reviewer}={key}&{reviewer}-id={id}");
    }
    Ok((server, url))
}

#[tokio::test]
async fn a_reviewer_works_off_an_inbox_of_fifty_questions_by_keyboard() {
    let (server, url) = need!(asked(0..50).await);
    need!(browser::at_a_browser(INBOX, "works_off", &url).await);
    let left = server.request("GET", "/api/v1/threads?status=interrupted");
    let left = Answer::of(left.bearer_auth(KEY)).await.expect(200);
    assert_eq!(left["items"], json!([]), "each question was answered");
}

#[tokio::test]
async fn of_two_people_who_answer_one_question_the_slower_one_is_told() {
    let (server, url) = need!(asked(1..3).await);
    need!(browser::at_a_browser(INBOX, "competes", &url).await);
    for thread in ["q01", "q02"] {
        let path = format!("/api/v1/threads/{thread}/log?types=answered");
        let log = Answer::of(server.request("GET", &path).bearer_auth(KEY)).await.expect(200);
        assert_eq!(log["items"].as_array().map(Vec::len), Some(1), "{thread}: {log}");
    }
}

/// Starts a server with an app whose tool `nested` may call no other tool.
async fn ungranted() -> Result<TestServer, LeftOut> {
    clients::studio()?;
    Ok(Setup::desk(&Desk::default()).await.start().await)
}

#[tokio::test]
async fn an_author_calls_a_tool_alone_and_adds_the_line_that_it_lacks() {
    let server = need!(ungranted().await);
    let grant = async |order: &str| {
        assert_eq!(order, "grant");
        let workspace = &server.setup.workspace;
        let toml = std::fs::read_to_string(workspace.config()).expect("the configuration");
        let granted = toml.replace("tools = []", "tools = [\"tools/echo\"]");
        assert_ne!(granted, toml);
        workspace.write("wattle.toml", granted);
        server.running.reload().await;
    };
    let url = server.url(&format!("{STUDIO}apps/desk"));
    need!(browser::with_orders(PLAY, "tries", &url, grant).await);
    let threads = server.get("/api/v1/threads").await.expect(200);
    assert_eq!(threads["items"].as_array().map(Vec::len), Some(1), "only the graph has a thread");
}

#[tokio::test]
async fn an_operator_drops_a_broken_component_and_then_one_that_works() {
    need!(clients::studio());
    let setup = Setup::misdeeds(GRAPHS).await.with_keys(KEY);
    let setup = setup.replace("[server]\n", "[server]\ninstall = true\n");
    let server = setup.start().await;
    let [lark, tools] = ["wattle-tool-lark", "wattle-guest-tools"].map(guests::path);
    let components = format!("component={}&tools={}", lark.display(), tools.display());
    let url = server.url(&format!("{STUDIO}?{components}"));
    need!(browser::at_a_browser(PLUGINS, "installs", &url).await);
    let get = |path: &str| Answer::of(server.request("GET", path).bearer_auth(KEY));
    let plugin = get("/api/v1/plugins/bench").await.expect(200);
    assert_eq!(plugin[0]["use"]["denied"], 1, "{plugin}");
    get("/api/v1/plugins/lark").await.expect(404);
}
