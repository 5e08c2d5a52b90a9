//! `wattle bench` on a recorded run.

use serde_json::json;
use wattle_suite::binary::{self, CommandOutput};
use wattle_suite::workspace::{HEAD_TOML, Workspace};

/// A graph of one node that counts.
const COUNT: &str = "[graphs.main]\nentry = \"counter\"\nchannels.number = {}\n\
                     nodes.counter = {}\n";

/// A second node that counts.
const COUNT_TWICE: &str = "nodes.again = { node = \"counter\" }\n\
                           [[graphs.main.edges]]\nfrom = \"counter\"\nto = \"again\"\n";

async fn run(workspace: &Workspace, args: &[&str]) -> CommandOutput {
    binary::run(workspace, args).await
}

#[tokio::test]
async fn a_recorded_run_is_measured_part_by_part() {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    workspace.add_misdeeds(&format!("{COUNT}{COUNT_TWICE}"));
    workspace.write("wattle.toml", format!("{HEAD_TOML}[apps.misdeeds]\n"));
    let recorded = run(&workspace, &["run", "misdeeds", "--json", "--quiet"]).await;
    assert_eq!(recorded.code, 0, "{}", recorded.text());
    let thread = recorded.json()["thread"].as_str().unwrap().to_owned();
    let exported = run(&workspace, &["thread", "export", &thread, "--file", "run.jsonl"]).await;
    assert_eq!(exported.code, 0, "{}", exported.text());

    let bench = ["bench", "misdeeds", "run.jsonl", "--times", "2"];
    let measured = run(&workspace, &[&bench[..], &["--json"]].concat()).await;
    assert_eq!(measured.code, 0, "{}", measured.text());
    let report = measured.json();
    assert_eq!((&report["steps"], &report["times"]), (&json!(2), &json!(2)), "{report:#}");
    assert_eq!(
        (&report["app"], &report["graph"], &report["thread"]),
        (&json!("misdeeds"), &json!("main"), &json!(thread))
    );
    let us = |part: &str| report["us_per_step"][part].as_f64();
    assert!(us("total") > Some(0.0) && us("store") > Some(0.0), "{report:#}");
    assert!(["guest", "json", "engine"].iter().all(|part| us(part).is_some()), "{report:#}");
    assert!(us("fastest") <= us("total") && us("total") <= us("slowest"), "{report:#}");
    assert!(report["bytes_per_step"].as_u64() > Some(0), "{report:#}");

    let table = run(&workspace, &bench).await;
    assert_eq!(table.code, 0, "{}", table.text());
    let lines: Vec<&str> = table.stdout.lines().collect();
    let parts: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(parts, ["part", "guest", "json", "engine", "store", "total", "bytes", "run"]);
    assert!(lines[7].contains("2 steps, executed 2 times"), "{}", table.text());

    // The current code is executed, and must do what was recorded.
    workspace.write("plugins/misdeeds/graph.toml", COUNT);
    let other = run(&workspace, &bench).await;
    assert_eq!(other.code, 1, "{}", other.text());
    assert!(other.stderr.contains("its state differs"), "{}", other.text());
    workspace.write("broken.jsonl", "{}\n");
    let broken = run(&workspace, &["bench", "misdeeds", "broken.jsonl"]).await;
    assert_eq!(broken.code, 2, "{}", broken.text());
    assert!(broken.stderr.contains("is not a valid export record"), "{}", broken.text());
}
