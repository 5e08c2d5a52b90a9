//! Tests of the JSON bodies of responses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{RunStatus as StoredStatus, Write};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, InterruptId, Namespace, RunId, TaskId, ThreadId};
use wattle_project::agent_server::thread_info::ThreadInfo;
use wattle_run::hostcall::runs::{EndedRun, InterruptView, RunOutcome, RunRef};
use wattle_run::meter::model_usage::ModelUsage;
use wattle_run::ports::store::{RecoveryCount, RunOptions, RunRecord};
use wattle_run::time_travel::{StateView, TaskView};

use super::{Assistant, RunStatus, ThreadState, run_values};

fn thread_info() -> ThreadInfo {
    let thread = ThreadId::new("t").unwrap();
    let channels = BTreeSet::from(["messages".to_owned()]);
    ThreadInfo { origin: thread.clone(), thread, channels }
}

fn task(text: &str) -> TaskId {
    TaskId::new(text.repeat(32)).unwrap()
}

fn interrupt_view() -> InterruptView {
    InterruptView {
        id: InterruptId::derive(&task("a"), &[], 0).to_string(),
        namespace: Namespace::root(),
        node: "ask".parse().unwrap(),
        payload: "sure?".into(),
        response_schema: None,
        asked_ms: 0,
        expires_ms: None,
    }
}

fn view(namespace: &str) -> StateView {
    let done = TaskView {
        id: task("b"),
        node: "done".parse().unwrap(),
        index: 0,
        writes: Some(vec![Write {
            channel: "items".parse().unwrap(),
            value: json!(["x"]),
            overwrite: false,
        }]),
        failure: None,
        interrupts: Vec::new(),
        asked: Vec::new(),
        namespace: Some(Namespace::new(format!("done:{}", task("b")))),
        child: Some(CheckpointId(7)),
    };
    let asks = TaskView {
        id: task("a"),
        node: "ask".parse().unwrap(),
        index: 0,
        writes: None,
        failure: Some(Failure::new("denied", "not allowed")),
        interrupts: Vec::new(),
        asked: vec![interrupt_view()],
        namespace: None,
        child: None,
    };
    StateView {
        thread: ThreadId::new("t").unwrap(),
        namespace: Namespace::new(namespace),
        checkpoint: CheckpointId(2),
        parent: Some(CheckpointId(1)),
        parents: BTreeMap::from([(Namespace::root(), CheckpointId(1))]),
        source: CheckpointSource::Loop,
        step: 1,
        run: RunId::new("r").unwrap(),
        version: None,
        at_ms: 0,
        values: json!({ "messages": [{ "id": "m", "role": "user", "content": "hi" }] }),
        changed: Vec::new(),
        writers: Vec::new(),
        next: vec!["ask".parse().unwrap(), "done".parse().unwrap()],
        tasks: vec![asks, done],
        interrupts: Vec::new(),
        asked: vec![interrupt_view()],
        metadata: BTreeMap::new(),
    }
}

#[test]
fn address_of_a_stateful_subgraph_has_a_checkpoint() {
    let mut view = view("");
    view.tasks[1].namespace = Some(Namespace::new("done"));
    let state = ThreadState::new(&thread_info(), &view, &Map::new());
    let named = thread_info().checkpoint(&Namespace::new("done"), CheckpointId(7));
    assert_eq!(state.tasks[1].checkpoint, Some(named));
}

#[test]
fn state_has_all_fields_that_clients_read() {
    let graph_metadata = Map::from_iter([("graph_id".to_owned(), "agent".into())]);
    let state = json!(ThreadState::new(&thread_info(), &view(""), &graph_metadata));
    let (two, one) = (
        thread_info().checkpoint_id(CheckpointId(2)),
        thread_info().checkpoint_id(CheckpointId(1)),
    );
    let place = |id: &str| json!({ "checkpoint_id": id, "thread_id": "t", "checkpoint_ns": "" });
    let interrupt = json!({ "value": "sure?", "id": interrupt_view().id, "response_schema": null });
    let expected = json!({
        "values": { "messages": [{
            "content": "hi", "additional_kwargs": {}, "response_metadata": {}, "type": "human",
            "name": null, "id": "m",
        }] },
        "next": ["ask", "done"],
        "tasks": [
            { "id": "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "name": "ask",
                "path": ["__pregel_pull", "ask"], "error": "not allowed",
                "interrupts": [interrupt], "checkpoint": null, "state": null, "result": null },
            { "id": "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb", "name": "done",
                "path": ["__pregel_pull", "done"], "error": null, "interrupts": [],
                "checkpoint": { "thread_id": "t",
                    "checkpoint_ns": "done:bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb" },
                "state": null, "result": { "items": ["x"] } },
        ],
        "metadata": { "graph_id": "agent", "run_id": "r", "thread_id": "t", "source": "loop",
            "step": 1, "parents": { "": one } },
        "created_at": "1970-01-01T00:00:00.000000+00:00",
        "checkpoint": place(&two),
        "parent_checkpoint": place(&one),
        "interrupts": [interrupt],
        "checkpoint_id": two,
        "parent_checkpoint_id": one,
    });
    assert_eq!(state, expected);
}

#[test]
fn state_of_a_subgraph_names_its_parent_graphs() {
    let namespace = format!("outer:{}", task("c"));
    let state = ThreadState::new(&thread_info(), &view(&namespace), &Map::new());
    let shown = "outer:cccccccc-cccc-cccc-cccc-cccccccccccc";
    assert_eq!(state.checkpoint.checkpoint_ns, shown);
    let map = state.checkpoint.checkpoint_map.unwrap();
    assert_eq!(map[""], thread_info().checkpoint_id(CheckpointId(1)));
    assert_eq!(map[shown], thread_info().checkpoint_id(CheckpointId(2)));
}

#[test]
fn unbound_thread_has_an_empty_state() {
    let state = json!(ThreadState::empty(&thread_info()));
    assert_eq!((&state["values"], &state["next"]), (&json!({}), &json!([])));
    assert_eq!(state["checkpoint"], json!({ "thread_id": "t", "checkpoint_ns": "" }));
    assert_eq!(state["parent_checkpoint"], Value::Null);
}

fn ended(outcome: RunOutcome) -> EndedRun {
    let run = RunRef { thread: ThreadId::new("t").unwrap(), run: RunId::new("r").unwrap() };
    EndedRun { run, outcome, state: json!({ "a": 1 }) }
}

#[test]
fn result_of_a_run_has_values_interrupts_or_the_failure() {
    let open = json!([{ "value": "sure?", "id": interrupt_view().id, "response_schema": null }]);
    let failure = Failure::new("denied", "not allowed");
    for (ends, expected) in [
        (RunOutcome::Completed, json!({ "a": 1 })),
        (RunOutcome::Cancelled, json!({ "a": 1 })),
        (
            RunOutcome::Interrupted { interrupts: vec![interrupt_view()], next: Vec::new() },
            json!({ "a": 1, "__interrupt__": open }),
        ),
        // A run at a breakpoint.
        (RunOutcome::Interrupted { interrupts: Vec::new(), next: Vec::new() }, json!({ "a": 1 })),
        (
            RunOutcome::Failed { failure },
            json!({ "__error__": { "error": "denied", "message": "not allowed" } }),
        ),
    ] {
        assert_eq!(run_values(&thread_info(), &ended(ends)), expected);
    }
}

#[test]
fn interrupted_run_has_the_status_success() {
    let record = |status, code: &str| RunRecord {
        id: RunId::new("r").unwrap(),
        thread: ThreadId::new("t").unwrap(),
        first_seq: 1,
        status,
        failure: (!code.is_empty()).then(|| Failure::new(code, "")),
        created_ms: None,
        started_ms: 0,
        ended_ms: None,
        last_checkpoint: None,
        reopen: None,
        options: RunOptions::default(),
        first_step: None,
        origin: None,
        usage: ModelUsage::default(),
        recovery_count: RecoveryCount::default(),
        spec: None,
    };
    for (stored, code, status) in [
        (StoredStatus::Pending, "", RunStatus::Pending),
        (StoredStatus::Running, "", RunStatus::Running),
        (StoredStatus::Completed, "", RunStatus::Success),
        (StoredStatus::Interrupted, "", RunStatus::Success),
        (StoredStatus::Failed, "denied", RunStatus::Error),
        (StoredStatus::Failed, "timeout", RunStatus::Timeout),
        (StoredStatus::Cancelled, "", RunStatus::Interrupted),
    ] {
        assert_eq!(RunStatus::from_record(&record(stored, code)), status);
        assert_eq!(
            status.has_ended(),
            !matches!(stored, StoredStatus::Pending | StoredStatus::Running)
        );
    }
}

#[test]
fn every_graph_has_a_default_assistant() {
    let assistant = json!(Assistant::for_graph("agent", None, 1_795_293_813_058));
    let expected = json!({
        "assistant_id": "fe096781-5601-53d2-b2f6-0d3403f7e9ca", "graph_id": "agent",
        "config": {}, "context": {}, "metadata": { "created_by": "system" }, "name": "agent",
        "created_at": "2026-11-21T20:43:33.058000+00:00",
        "updated_at": "2026-11-21T20:43:33.058000+00:00", "version": 1, "description": null,
    });
    assert_eq!(assistant, expected);
}
