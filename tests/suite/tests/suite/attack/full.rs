//! A disk that is full for a while during runs. The limit on the size of files simulates it.

use std::process::Command;

use serde_json::{Value, json};
use wattle_kit::standin::Pattern;
use wattle_suite::attack::app::APP;
use wattle_suite::attack::host::Host;
use wattle_suite::binary;

use super::calm;

/// Sets the maximum size of files of the host.
fn limit(host: &Host, bytes: &str) {
    let (pid, limit) = (host.id().to_string(), format!("--fsize={bytes}:"));
    let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap();
    assert!(set.success());
}

/// Starts a run of the thread, which executes or is pending.
async fn begin(host: &Host, url: &str) -> String {
    let input = json!({ "route": "chat", "url": url });
    let start = json!({ "graph": "call_then_wait", "input": input, "thread_id": "full" });
    let (status, run) = host.post(&format!("/api/v1/apps/{APP}/runs"), &start).await.unwrap();
    assert_eq!(status, 202, "{run}");
    run["run"].as_str().unwrap().to_owned()
}

async fn wait(host: &Host, run: &str) -> (u16, Value) {
    host.get(&format!("/api/v1/runs/{run}/wait")).await.unwrap()
}

#[tokio::test]
async fn an_active_run_continues_when_the_disk_has_space_again() {
    let host = Host::start(&binary::path()).await.unwrap();
    let gate = host.standin.gate(Pattern::path("/echo"));
    let url = format!("{}/echo", host.standin.base_url);
    let run = begin(&host, &url).await;
    gate.arrived(1).await.unwrap();
    let next = begin(&host, &url).await;
    limit(&host, "0");
    gate.open();
    // The outcome of the run is unknown, so it has not failed.
    let (status, cut) = wait(&host, &run).await;
    assert_eq!((status, &cut["code"]), (503, &json!("unavailable")), "{cut}");
    assert_eq!(host.get("/readyz").await.unwrap().0, 503);
    limit(&host, "unlimited");
    for run in [run, next] {
        let ended = calm::until(async || {
            let (status, ended) = wait(&host, &run).await;
            (status == 200).then_some(ended)
        })
        .await;
        assert_eq!(ended["status"], "completed", "{ended}");
    }
    calm::all_is_calm(&host.honest).await;
    host.terminate().await.unwrap();
}
