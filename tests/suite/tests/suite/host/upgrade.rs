//! Tests of a data folder of the last version whose store had format 3, where the Agent Server kept
//! runs as documents.
//!
//! `data/format-3` has the two files of a real server: a thread with an interrupted run, a thread
//! with two runs that were scheduled for later, an assistant, a cron job, and an item of the
//! long-term memory.

use serde_json::{Value, json};
use wattle_suite::guests;

use super::agents::setup;

const ASKS: &str = "00000000-0000-4000-8000-000000000001";
const WAITS: &str = "00000000-0000-4000-8000-000000000002";
const ASSISTANT: &str = "00000000-0000-4000-8000-00000000000a";

/// 2026-12-01T00:00:00Z.
const LATER_MS: i64 = 1_796_083_200_000;

fn unpacked(file: &str) -> Vec<u8> {
    let path = guests::root().join("tests/suite/data/format-3").join(format!("{file}.lz4"));
    lz4_flex::block::decompress_size_prepended(&std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_folder_of_format_3_keeps_its_contents() {
    let setup = setup().await;
    for file in ["wattle.redb", "memory.redb"] {
        setup.workspace.write(&format!("data/{file}"), unpacked(file));
    }
    let server = setup.start().await;
    // The time at which the runs were to start is now in the past.
    server.clock().set_now_ms(LATER_MS);
    let asked = &server.get(&format!("/threads/{ASKS}/runs")).await.expect(200)[0].clone();
    assert_eq!((&asked["metadata"]["m"], &asked["status"]), (&json!("first"), &json!("success")));
    assert_eq!(asked["kwargs"]["input"]["value"], "v");
    let thread = server.get(&format!("/threads/{ASKS}")).await.expect(200);
    assert_eq!((&thread["status"], &thread["metadata"]["u"]), (&json!("interrupted"), &json!(1)));

    let path = format!("/threads/{WAITS}/runs");
    let waits = server.get(&path).await.expect(200);
    let facts: Vec<&Value> =
        waits.as_array().unwrap().iter().map(|run| &run["metadata"]["m"]).collect();
    assert_eq!(facts, ["fourth", "third"]);
    for run in waits.as_array().unwrap() {
        let run = run["run_id"].as_str().unwrap();
        server.get(&format!("{path}/{run}/join")).await.expect(200);
    }
    // Joining a run that has ended returns the state of its thread, which may be that of the next
    // run.
    let state = server.get(&format!("/threads/{WAITS}/state")).await.expect(200);
    assert_eq!(state["values"]["text"], "fourth echoed");
    for run in server.get(&path).await.expect(200).as_array().unwrap() {
        assert_eq!(run["status"], "success", "{run}");
    }
    let assistant = server.get(&format!("/assistants/{ASSISTANT}")).await.expect(200);
    assert_eq!(assistant["name"], "kept");
}
