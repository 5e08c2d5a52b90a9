//! Test that provider state returns to the provider in every turn of a tool loop, across an
//! approval, a `kill -9` and a fork.

use futures::future::join_all;
use serde_json::{Value, json};
use wattle_kit::replay::{Case, Replays};
use wattle_suite::binary::{self, Served};
use wattle_suite::desk::last_words;
use wattle_suite::scene::Scene;
use wattle_suite::{guests, workspace};

use super::{graph, provider, read};

/// The folder of cases in which a person must approve every call.
const AREA: &str = "durable";

#[tokio::test]
async fn provider_state_survives_a_pause_a_kill_and_a_fork() {
    let cases = read(AREA);
    let replays = Replays::start(&cases).await.unwrap();
    let scene = Scene::new(|workspace, standin| {
        workspace.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
        workspace.write("plugins/tools/tools/tools.wasm", guests::bytes("wattle-guest-tools"));
        workspace.write("plugins/apps/durable/app.toml", super::app(AREA, &cases));
        let graphs: String = cases.iter().map(|case| graph(case, &case.name)).collect();
        workspace.write("plugins/apps/durable/graph.toml", graphs);
        let providers = cases.iter().map(|case| {
            let kind = case.key("kind").expect("the case has a kind");
            provider(case, kind, "", &replays)
        });
        let app = "[apps.durable]\npath = \"plugins/apps/durable\"\n";
        workspace::base_toml(standin) + app + &providers.collect::<String>()
    })
    .await;

    let mut server = binary::serve(&scene.workspace).await;
    let paused = join_all(cases.iter().map(|case| begin(&scene, &server, case))).await;
    server.program.kill().await.unwrap();
    let server = binary::serve(&scene.workspace).await;
    let loops =
        cases.iter().zip(&paused).map(|(case, thread)| go_on(&scene, &server, case, thread));
    join_all(loops).await;
    let problems: Vec<String> = cases
        .iter()
        .flat_map(|case| {
            let name = &case.name;
            replays.problems(case).into_iter().map(move |problem| format!("{name}: {problem}"))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Starts a run, waits for its first interrupt, and returns the thread.
async fn begin(scene: &Scene, server: &Served, case: &Case) -> String {
    let input = json!({ "messages": [{ "role": "user", "content": case.key("say") }] });
    let start = json!({ "graph": case.name, "input": input, "wait": true });
    let run = scene.post(server, "/api/v1/apps/durable/runs", &start).await.expect(200);
    assert_eq!(run["status"], "interrupted", "{}: {run}", case.name);
    run["thread"].as_str().unwrap().to_owned()
}

/// Runs the second turn on the thread and the third turn on a fork of it.
async fn go_on(scene: &Scene, server: &Served, case: &Case, thread: &str) {
    let run = approve(scene, server, thread).await;
    assert_eq!(run["status"], "interrupted", "{}: {run}", case.name);
    let history = scene.get(server, &format!("/api/v1/threads/{thread}/history?limit=1")).await;
    let fork = json!({ "checkpoint": history[0]["id"], "copy": true, "wait": true });
    let forked = scene.post(server, &format!("/api/v1/threads/{thread}/fork"), &fork).await;
    let forked = forked.expect(200);
    assert_eq!(forked["status"], "interrupted", "{}: {forked}", case.name);
    let copy = forked["thread"].as_str().unwrap();
    assert_ne!(copy, thread);
    let run = approve(scene, server, copy).await;
    assert_eq!(run["status"], "interrupted", "{}: {run}", case.name);
    let run = approve(scene, server, copy).await;
    assert_eq!((&run["status"], &*last_words(&run)), (&json!("completed"), "six"), "{}", case.name);
}

/// Approves the waiting call, and waits for the end of the run.
async fn approve(scene: &Scene, server: &Served, thread: &str) -> Value {
    let view = scene.get(server, &format!("/api/v1/threads/{thread}")).await;
    let question = view["interrupts"][0]["id"].as_str().unwrap();
    let answers = json!({ (question): { "decision": "approve" } });
    let body = json!({ "answers": answers, "wait": true });
    scene.post(server, &format!("/api/v1/threads/{thread}/resume"), &body).await.expect(200)
}
