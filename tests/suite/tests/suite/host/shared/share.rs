//! Tests that hosts on one store divide the runs, whichever host received the requests.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::standin::Pattern;
use wattle_suite::binary::{self, Served};
use wattle_suite::scene::Scene;

use super::{CHAT, HELD, Pair, SHORT};

/// The number of runs that are started on one host.
const RUNS: usize = 24;

/// Returns how many runs a host is executing.
async fn load(scene: &Scene, host: &Served) -> usize {
    let hosts = scene.get(host, "/api/v1/hosts").await;
    let own = hosts.as_array().unwrap().iter().find(|host| host["is_this"] == true);
    own.unwrap()["runs"].as_u64().unwrap() as usize
}

/// Waits until a host has found the other one.
async fn acquainted(scene: &Scene, host: &Served) {
    scene.until(host, "/api/v1/hosts", |hosts| hosts.as_array().unwrap().len() == 2).await;
}

/// Starts runs of the graph `chain` on a host and returns their IDs.
async fn ask(scene: &Scene, host: &Served, runs: usize) -> Vec<String> {
    let url = format!("{}{HELD}", scene.standin.base_url);
    let input = json!({ "route": "chat", "text": "hello", "url": url });
    let start = json!({ "graph": "chain", "input": input });
    let asked = (0..runs).map(|_| scene.post(host, "/api/v1/apps/misdeeds/runs", &start));
    let asked = futures::future::join_all(asked).await;
    let id = |run: Value| run["run"].as_str().unwrap().to_owned();
    asked.into_iter().map(|answer| id(answer.expect(202))).collect()
}

#[tokio::test]
async fn hosts_divide_the_runs_that_one_host_receives() {
    let pair = need!(Pair::start().await);
    let Pair { a, b, scene, .. } = &pair;
    for host in [a, b] {
        acquainted(scene, host).await;
    }
    let gate = scene.standin.gate(Pattern::path(HELD));
    let runs = ask(scene, a, RUNS).await;
    gate.arrived(RUNS).await.unwrap();
    let loads = [load(scene, a).await, load(scene, b).await];
    assert_eq!(loads.iter().sum::<usize>(), RUNS);
    assert!(loads.iter().all(|load| load * 5 >= RUNS), "each host has at least a fifth: {loads:?}");
    gate.open();
    for run in runs {
        assert_eq!(pair.ended(b, &run).await["status"], "completed");
    }
    assert_eq!((scene.answered(HELD), scene.answered(CHAT)), (2 * RUNS, RUNS));
}

#[tokio::test]
async fn a_new_host_takes_over_runs_of_a_busy_host() {
    let mut pair = need!(Pair::start_with(SHORT).await);
    assert!(pair.b.program.terminate().await.unwrap().success());
    let gone = |hosts: &Value| hosts.as_array().unwrap().len() == 1;
    pair.scene.until(&pair.a, "/api/v1/hosts", gone).await;
    let gate = pair.scene.standin.gate(Pattern::path(HELD));
    let runs = ask(&pair.scene, &pair.a, RUNS).await;
    gate.arrived(RUNS).await.unwrap();
    assert_eq!(load(&pair.scene, &pair.a).await, RUNS);

    pair.b = binary::serve(&pair.workspace).await;
    pair.a.program.ready(|line| line.contains("handed over")).await.unwrap();
    gate.open();
    let Pair { a, b, scene, .. } = &pair;
    let mut moved = 0;
    for run in runs {
        assert_eq!(pair.ended(b, &run).await["status"], "completed");
        let run = scene.get(a, &format!("/api/v1/runs/{run}")).await;
        let thread = run["thread"].as_str().unwrap();
        let trace = scene.get(a, &format!("/api/v1/threads/{thread}/trace")).await;
        moved += trace["runs"][0]["recoveries"].as_u64().unwrap();
    }
    assert!(moved > 0, "runs have moved to the new host between two supersteps");
    assert_eq!((scene.answered(HELD), scene.answered(CHAT)), (2 * RUNS, RUNS), "no repeated calls");
}
