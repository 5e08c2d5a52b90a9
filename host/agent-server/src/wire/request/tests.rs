//! Valid and invalid requests.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_project::agent_server::message::ReadContext;
use wattle_project::agent_server::mode::Mode;

use super::{
    Before, CancelRuns, HistoryRequest, Modes, Multitask, NodeSelection, RequestError, RunCreate,
    ThreadCreate, ThreadPatch, TtlInput, parse,
};
use crate::wire::response::TtlStrategy;

fn run(body: Value) -> Result<RunCreate, RequestError> {
    let run: RunCreate = parse(body.to_string().as_bytes())?;
    run.check()?;
    Ok(run)
}

#[test]
fn python_client_request_is_parsed() {
    let run = run(json!({
        "assistant_id": "agent", "input": { "messages": [] }, "config": {
            "recursion_limit": 7, "configurable": { "user": "ann" }, "future": 1 },
        "stream_mode": ["values", "messages-tuple"], "stream_subgraphs": true,
        "interrupt_before": "*", "interrupt_after": ["a"], "multitask_strategy": "rollback",
        "checkpoint": { "thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c" },
        "metadata": null, "command": null, "langsmith_tracer": {}, "durability": "exit",
    }))
    .unwrap();
    let modes = Modes::parse(run.stream_mode.as_ref()).unwrap();
    assert_eq!(modes, BTreeSet::from([Mode::Values, Mode::MessagesTuple]));
    assert_eq!(run.interrupt_before.as_ref().and_then(NodeSelection::names), None);
    assert_eq!(
        run.interrupt_after.as_ref().and_then(NodeSelection::names),
        Some(vec!["a".to_owned()])
    );
    assert_eq!(run.multitask_strategy, Some(Multitask::Rollback));
    assert_eq!(run.checkpoint_id(), Some("c"));
    assert_eq!(run.run_context(), json!({ "user": "ann" }));
    assert_eq!(run.config.unwrap().recursion_limit, Some(7));
}

#[test]
fn invalid_request_is_rejected() {
    for (body, expected) in [
        (json!({}), "422: `assistant_id` of the request is missing"),
        (json!({ "assistant_id": 7 }), "422: `assistant_id` of the request cannot be read"),
        (
            json!({ "assistant_id": "a", "stream_mode": "tools" }),
            "422: `tools` is not a stream mode",
        ),
        (json!({ "assistant_id": "a", "durability": "never" }), "422: `never` is not a durability"),
        (json!({ "assistant_id": "a", "after_seconds": -1 }), "422: `after_seconds`"),
        (
            json!({ "assistant_id": "a", "config": { "configurable": { "x": 1 } },
                "context": { "y": 1 } }),
            "400: `config.configurable` and `context`",
        ),
        (
            json!({ "assistant_id": "a", "input": { "x": 1 }, "command": { "resume": 1 } }),
            "400: `input` and `command`",
        ),
        (json!({ "assistant_id": "a", "multitask_strategy": "wait" }), "422: `multitask_strategy`"),
        (json!([]), "422: "),
    ] {
        let refused = match run(body.clone()).unwrap_err() {
            RequestError::Unprocessable(why) => format!("422: {why}"),
            RequestError::BadRequest(why) => format!("400: {why}"),
        };
        assert!(refused.starts_with(expected), "{body}: {refused}");
    }
    assert!(parse::<RunCreate>(b"{").is_err() && parse::<RunCreate>(b"{} {}").is_err());
    // An array is not an object, although a derived deserializer would read its items as the
    // fields.
    for list in ["[]", "[null, null]", r#"{ "config": [] }"#, r#"{ "checkpoint": ["x"] }"#] {
        assert!(parse::<RunCreate>(list.as_bytes()).is_err(), "{list}");
    }
    assert!(run(json!({ "assistant_id": "a", "input": {}, "command": { "resume": 1 } })).is_ok());
}

#[test]
fn unpaired_surrogate_is_replaced() {
    let read: Value = parse(br#"{"input": {"content": "caf\ud83d"}}"#).unwrap();
    assert_eq!(read["input"]["content"], "caf\u{fffd}");
}

#[test]
fn null_in_a_command_is_a_missing_value() {
    let nothing = json!({ "assistant_id": "a", "command": { "resume": null, "update": null } });
    assert!(run(nothing).unwrap().command().is_none());
}

#[test]
fn messages_of_an_input_are_converted() {
    let channels = BTreeSet::from(["messages".to_owned()]);
    let read = |input: Value| {
        let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
        let mut context = ReadContext { new_id: &mut || "m".to_owned(), parse: &parse };
        let run = run(json!({ "assistant_id": "a", "input": input })).unwrap();
        run.read_input(&channels, &mut context)
    };
    let input = json!({ "messages": { "role": "user", "content": "hi" }, "other": [1] });
    let expected =
        json!({ "messages": [{ "id": "m", "role": "user", "content": "hi" }], "other": [1] });
    assert_eq!(read(input), Ok(Some(expected)));
    assert_eq!(read(Value::Null), Ok(None));
    let wrong = read(json!({ "messages": ["hi", { "role": "nobody", "content": "" }] }));
    let Err(RequestError::Unprocessable(why)) = wrong else { panic!("{wrong:?}") };
    assert!(why.starts_with("`messages`: message at index 1: `nobody`"), "{why}");
}

#[test]
fn thread_ttl_is_in_minutes() {
    let create: ThreadCreate = parse(br#"{ "ttl": 2 }"#).unwrap();
    let patch: ThreadPatch =
        parse(br#"{ "ttl": { "ttl": 0.5, "strategy": "keep_latest" } }"#).unwrap();
    let ttl = |input: Option<TtlInput>| input.unwrap().ttl().parse().unwrap().after_ms;
    assert_eq!((ttl(create.ttl), ttl(patch.ttl)), (120_000, 30_000));
    assert_eq!(patch.ttl.unwrap().ttl().strategy, TtlStrategy::KeepLatest);
    let never: ThreadCreate = parse(br#"{ "ttl": -1 }"#).unwrap();
    assert_eq!(never.ttl.unwrap().ttl().parse(), None);
}

#[test]
fn history_before_accepts_three_forms() {
    let before = |before: Value| {
        let body = json!({ "before": before }).to_string();
        let request: HistoryRequest = parse(body.as_bytes()).unwrap();
        request.before.as_ref().and_then(Before::id).map(str::to_owned)
    };
    for form in [
        json!("c"),
        json!({ "checkpoint_id": "c", "thread_id": "t" }),
        json!({ "configurable": { "checkpoint_id": "c" } }),
    ] {
        assert_eq!(before(form.clone()).as_deref(), Some("c"), "{form}");
    }
    assert!(parse::<HistoryRequest>(b"").unwrap().before.is_none());
}

#[test]
fn runs_are_cancelled_by_status_or_by_id() {
    for (body, is_ok) in [
        (json!({ "status": "all" }), true),
        (json!({ "thread_id": "t", "run_ids": ["r"] }), true),
        (json!({}), false),
        (json!({ "thread_id": "t" }), false),
        (json!({ "status": "done" }), false),
        (json!({ "status": "all", "thread_id": "t", "run_ids": [] }), false),
    ] {
        let cancel: CancelRuns = parse(body.to_string().as_bytes()).unwrap();
        assert_eq!(cancel.check().is_ok(), is_ok, "{body}");
    }
}
