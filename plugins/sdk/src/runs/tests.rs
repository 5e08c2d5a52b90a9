//! Tests of the functions for the threads of handlers.

use serde_json::json;

use super::{EndedRun, Outcome, RunRef, Thread};
use crate::runs;
use crate::testing::FakeHost;

fn thread(status: &str, run_id: Option<&str>) -> Thread {
    let mut thread = Thread::new("t", "notes", status, json!({}));
    thread.run_id = run_id.map(str::to_owned);
    thread
}

#[test]
fn threads_of_a_graph_are_found() {
    let host = FakeHost::new().thread(thread("idle", None));
    for (graph, id, is_found) in
        [("notes", "t", true), ("orders", "t", false), ("notes", "", false)]
    {
        let found = host.run(|| runs::find(graph, id)).unwrap();
        assert_eq!(found.is_some(), is_found, "`{id}` of `{graph}`");
    }
}

#[test]
fn only_a_running_thread_has_an_active_run() {
    for (status, run_id, active) in [
        ("running", Some("r"), Some("r")),
        ("running", None, None),
        ("idle", Some("r"), None),
        ("interrupted", Some("r"), None),
        ("error", Some("r"), None),
    ] {
        let thread = thread(status, run_id);
        assert_eq!(thread.is_running(), status == "running", "{status}");
        assert_eq!(thread.is_interrupted(), status == "interrupted", "{status}");
        let expected =
            active.map(|run_id| RunRef { thread_id: "t".to_owned(), run_id: run_id.to_owned() });
        assert_eq!(thread.active_run(), expected, "{status}");
    }
}

#[test]
fn cancelled_run_is_awaited() {
    let host = FakeHost::new().run_ends(|run| EndedRun {
        run: run.clone(),
        outcome: Outcome::Cancelled,
        state: json!({}),
    });
    let run = RunRef { thread_id: "t".to_owned(), run_id: "r".to_owned() };
    let ended = host.run(|| runs::cancel_and_wait(&run)).unwrap();
    assert_eq!((&ended.run, ended.outcome), (&run, Outcome::Cancelled));
    assert_eq!(host.cancelled(), [run]);
}

#[test]
fn deleted_thread_is_not_found() {
    let host = FakeHost::new().thread(thread("idle", None));
    host.run(|| runs::delete_thread_if_any("t")).unwrap();
    assert_eq!(host.run(|| runs::find("notes", "t")), Ok(None));
}
