//! Tests of projections. One property is that arbitrary input never panics.

use std::sync::Arc;

use proptest::prelude::{Strategy as _, any, prop, prop_oneof, proptest};
use serde_json::{Value, json};

use super::{
    EventContext, FileProjection, ProjectionBudget, RunFileProjector, RunInfo, StreamMessage,
    StreamProjection, StreamProjector,
};
use crate::event::Event;
use crate::limit::Exceeded;

const STREAM: &str = r#"
    prelude = "hello"
    heartbeat = "2s"
    [constants.texts]
    draft = "writing"
    [[messages]]
    on = "checkpointed"
    when = "event.source == 'input'"
    event = "begin"
    data = { session = "=thread", seq = "=seq", at = "=time", plain = "==1" }
    [[messages]]
    on = ["task_started", "task_finished"]
    node = "draft"
    event = "=event.type == 'task_started' ? 'step_start' : 'step_end'"
    data = { text = "=constants.texts[event.node]", seq = "=seq", "gone?" = "=event.none" }
    [[messages]]
    on = "streamed"
    each = "event.deltas.filter(d, d.kind == 'text')"
    data = { delta = "=item.text", seq = "=seq" }
    [[messages]]
    on = "run_ended"
    event = "end"
    data = { answer = "=state.answer", none = "=null" }
    [[messages]]
    on = "run_ended"
    text = "[DONE]"
"#;

fn event(seq: u64, kind: Value) -> Event {
    let mut document = json!({ "seq": seq, "at_ms": 0, "run": "r" });
    let Value::Object(fields) = kind else { panic!("an object") };
    document.as_object_mut().unwrap().extend(fields);
    serde_json::from_value(document).unwrap()
}

fn task(kind: &str, node: &str) -> Value {
    let mut event = json!({ "type": kind, "task": "ab".repeat(16), "node": node });
    let more = match kind {
        "task_started" => json!({ "step": 1, "attempt": 1 }),
        "streamed" => json!({ "call": 0, "deltas": [
            { "kind": "text", "text": "a" }, { "kind": "restart" }, { "kind": "text", "text": "b" },
        ] }),
        "custom" => json!({ "name": "node_io", "data": { "session_id": "../a b", "n": 1 } }),
        "task_failed" => json!({ "attempt": 1, "fault": "trap",
            "failure": { "code": "trap", "message": "it broke", "retryable": false } }),
        other => panic!("{other}"),
    };
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn subject() -> RunInfo {
    RunInfo { app: "a".into(), thread: "t".into(), run: "r".into(), settings: json!({}) }
}

fn stream(text: &str) -> StreamProjector {
    let mapping = StreamProjection::parse(text).unwrap_or_else(|error| panic!("{error}"));
    StreamProjector::new(Arc::new(mapping), subject())
}

#[test]
fn events_become_messages() {
    let mut stream = stream(STREAM);
    let state = json!({ "answer": { "b": 1, "a": 2 } });
    let moment = EventContext { time: "2025-01-15T10:30:45+08:00", state: &state };
    let begun = json!({ "type": "checkpointed", "checkpoint": 1, "step": 0, "source": "input",
        "changed": [], "next": [] });
    let ended = json!({ "type": "run_ended", "status": "completed" });
    let mut lines = Vec::new();
    for (index, kind) in [
        begun,
        task("task_started", "draft"),
        task("task_started", "other"),
        task("streamed", "draft"),
        ended,
    ]
    .into_iter()
    .enumerate()
    {
        let event = event(index as u64 + 1, kind);
        let messages = stream.apply(&event, moment, &mut ProjectionBudget::default()).unwrap();
        for message in messages {
            lines.push(format!("{}: {}", message.event.unwrap_or_default(), message.data));
        }
    }
    assert_eq!(
        lines,
        [
            r#"begin: {"at":"2025-01-15T10:30:45+08:00","plain":"=1","seq":1,"session":"t"}"#,
            r#"step_start: {"seq":2,"text":"writing"}"#,
            r#": {"delta":"a","seq":3}"#,
            r#": {"delta":"b","seq":4}"#,
            r#"end: {"answer":{"b":1,"a":2},"none":null}"#,
            ": [DONE]",
        ]
    );
}

/// Applies the end of a run to a stream with `rules` rules that are alike.
fn apply_rules(
    rule: &str,
    rules: usize,
    budget: &mut ProjectionBudget,
) -> Result<Vec<StreamMessage>, Exceeded> {
    let constants = format!(
        "[constants]\nlist = {:?}\ntext = {:?}\nlines = {:?}\n",
        [0; 400],
        "x".repeat(4_000),
        "\n".repeat(4_000)
    );
    let rule = format!("[[messages]]\non = 'run_ended'\n{rule}\n");
    let mut stream = stream(&format!("{constants}{}", rule.repeat(rules)));
    let ended = event(1, json!({ "type": "run_ended", "status": "completed" }));
    let first = stream.apply(&ended, EventContext { time: "", state: &Value::Null }, budget);
    if first.is_err() {
        // The failed attempt sent nothing, so the messages have the same numbers as without it.
        let whole = &mut ProjectionBudget::default();
        let messages =
            stream.apply(&ended, EventContext { time: "", state: &Value::Null }, whole).unwrap();
        assert_eq!(messages.first().and_then(|it| it.event.as_deref()), Some("1"));
    }
    first
}

#[test]
fn all_expressions_and_messages_of_an_event_share_one_budget() {
    for (rule, fits, limit) in [
        ("event = '=string(seq)'\ntext = '=constants.list.all(a, a == 0)'", 1, "projection_steps"),
        // The text of an expression counts, however few values the expression reads.
        ("event = '=string(seq)'\neach = 'constants.list'\ntext = '=item'", 1, "projection_steps"),
        ("event = '=string(seq)'\ntext = '=constants.text'", 10, "projection_bytes"),
        ("event = '=string(seq)'\ntext = '=constants.lines'", 5, "projection_bytes"),
    ] {
        let messages = apply_rules(rule, fits, &mut ProjectionBudget::short());
        assert!(messages.is_ok_and(|messages| !messages.is_empty()), "{rule}");
        let exceeded = apply_rules(rule, 100, &mut ProjectionBudget::short()).unwrap_err();
        assert_eq!(exceeded.limit, limit, "{rule}");
        assert!(exceeded.message.contains("together"), "{}", exceeded.message);
    }
}

#[test]
fn an_expression_with_too_many_steps_alone_is_null() {
    let budget = &mut ProjectionBudget::default();
    let rule = "data = '=constants.list.all(a, constants.list.all(b, a + b == 0))'";
    assert_eq!(apply_rules(rule, 1, budget).unwrap()[0].data, "null");
}

#[test]
fn state_is_needed_only_where_a_rule_uses_it() {
    let stream = stream(STREAM);
    assert!(!stream.wants_state(&event(1, task("streamed", "draft"))));
    assert!(!stream.wants_state(&event(1, task("task_started", "draft"))));
    let ended = json!({ "type": "run_ended", "status": "completed" });
    assert!(stream.wants_state(&event(1, ended)));
}

#[test]
fn invalid_streams_are_rejected_with_the_reason() {
    for (text, part) in [
        ("[[messages]]\non = 'run_over'\ntext = ''", "message 1: unknown kind of event `run_over`"),
        ("[[messages]]\non = 'log'", "write either `data` or `text`"),
        ("[[messages]]\non = 'log'\ntext = 'x'\ndata = 1", "write either `data` or `text`"),
        ("[[messages]]\non = 'log'\ndata = { a = '=evnt.x' }", "`evnt` is not known here"),
        ("[[messages]]\non = 'log'\nwhen = '1 +'\ntext = 'x'", "message 1"),
        ("\ncolor = 1", "line 2"),
        ("heartbeat = '1ms'", "at least"),
    ] {
        let error = StreamProjection::parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    let deep = format!("\nconstants = {}1{}", "{ a.a = ".repeat(60), "}".repeat(60));
    let error = StreamProjection::parse(&deep).unwrap_err();
    assert_eq!(error, "line 2: tables and arrays are nested deeper than 100 levels");
}

const FILES: &str = r#"
    event = "node_io"
    dir = "local_logs/node_io"
    path = "{session_id}/{stamp}-{status}.json"
    nodes = ["draft"]
    [failed]
    session_id = "=state.session"
    status = "failed"
    why = "=event.failure.message"
"#;

#[test]
fn events_become_files() {
    let mapping: FileProjection = toml::from_str(FILES).unwrap();
    let subject = subject();
    let state = json!({ "session": "会话/1" });
    let moment = EventContext { time: "", state: &state };
    let apply = |files: &mut RunFileProjector<'_>, seq: u64, kind: Value| {
        let mut budget = ProjectionBudget::default();
        files.apply(&event(seq, kind), moment, "20250115-10-30-45-123", &mut budget).unwrap()
    };
    let mut files = RunFileProjector::new(&mapping, &subject);
    let written = apply(&mut files, 7, task("custom", "draft")).unwrap();
    assert_eq!(written.path, "_.._a_b/20250115-10-30-45-123007-_.json");
    assert_eq!(written.content, json!({ "session_id": "../a b", "n": 1 }));
    // The task already has a file.
    assert_eq!(apply(&mut files, 8, task("task_failed", "draft")), None);

    // A task whose subgraph already has a file gets none.
    let mut files = RunFileProjector::new(&mapping, &subject);
    let outer = task("task_failed", "draft");
    let mut inner = task("task_failed", "draft");
    inner["namespace"] = format!("draft:{}", outer["task"].as_str().unwrap()).into();
    inner["task"] = "cd".repeat(16).into();
    assert!(apply(&mut files, 8, inner).is_some());
    assert_eq!(apply(&mut files, 9, outer), None);

    let mut files = RunFileProjector::new(&mapping, &subject);
    assert_eq!(apply(&mut files, 8, task("task_failed", "other")), None);
    let failed = apply(&mut files, 1_009, task("task_failed", "draft")).unwrap();
    assert_eq!(failed.path, "会话_1/20250115-10-30-45-123009-failed.json");
    assert_eq!(failed.content["why"], "it broke");
}

#[test]
fn path_has_the_first_120_bytes_of_a_value() {
    let text = FILES.replace("{session_id}/{stamp}-{status}.json", "{value}");
    let mapping: FileProjection = toml::from_str(&text).unwrap();
    let (subject, moment) = (subject(), EventContext { time: "", state: &Value::Null });
    for (value, path) in [
        (json!("x".repeat(300)), "x".repeat(120)),
        (json!("会".repeat(100)), "会".repeat(40)),
        (json!(["x".repeat(300)]), format!("__{}", "x".repeat(118))),
        (json!(["会".repeat(100)]), format!("__{}", "会".repeat(39))),
        (json!(vec![1; 1_000]), format!("_{}1", "1_".repeat(59))),
        (json!({ "a": true }), "__a__true_".to_owned()),
    ] {
        let mut custom = task("custom", "draft");
        custom["data"] = json!({ "value": value });
        let mut files = RunFileProjector::new(&mapping, &subject);
        let budget = &mut ProjectionBudget::default();
        let written = files.apply(&event(1, custom), moment, "s", budget).unwrap();
        assert_eq!(written.unwrap().path, path);
    }
}

#[test]
fn all_files_of_a_run_share_the_steps_of_one_budget() {
    let mapping: FileProjection = toml::from_str(FILES).unwrap();
    let (subject, state) = (subject(), json!({ "session": "s" }));
    let moment = EventContext { time: "", state: &state };
    let mut files = RunFileProjector::new(&mapping, &subject);
    let failed = |number: usize| {
        let mut failed = task("task_failed", "draft");
        failed["task"] = format!("{number:032x}").into();
        event(number as u64, failed)
    };
    let mut budget = ProjectionBudget::short();
    let mut written = 0;
    let exceeded = loop {
        let failed = failed(written + 1);
        assert!(files.evaluates(&failed));
        match files.apply(&failed, moment, "s", &mut budget) {
            Ok(file) => assert!(file.is_some()),
            Err(exceeded) => break exceeded,
        }
        budget = budget.of_next_file();
        written += 1;
    };
    assert_eq!(exceeded.limit, "projection_steps");
    assert!((10..1_000).contains(&written), "{written}");
    // The failed attempt did not count as a file of the task.
    let mut whole = ProjectionBudget::default();
    assert!(files.apply(&failed(written + 1), moment, "s", &mut whole).unwrap().is_some());
}

#[test]
fn the_fixed_parts_of_a_path_end_at_the_first_placeholder() {
    for (path, fixed) in [
        ("a b/c/{x}.json", vec!["a_b", "c"]),
        ("a/{x}/b.json", vec!["a"]),
        ("a-{x}/b.json", vec![]),
        ("a/b.json", vec!["a", "b.json"]),
    ] {
        let text = FILES.replace("{session_id}/{stamp}-{status}.json", path);
        let mapping: FileProjection = toml::from_str(&text).unwrap();
        assert_eq!(mapping.fixed_parts(), fixed, "{path}");
    }
}

#[test]
fn invalid_file_projections_are_rejected() {
    for (from, to) in [
        ("dir = \"local_logs/node_io\"", "dir = \"../x\""),
        ("dir = \"local_logs/node_io\"", "dir = \"/etc\""),
        ("{session_id}/", "../"),
        ("{session_id}/", "{session_id/"),
        ("=state.session", "=sate.session"),
    ] {
        let text = FILES.replace(from, to);
        assert!(toml::from_str::<FileProjection>(&text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_input_never_panics(
        expression in "[a-z.()\\[\\]'=+*?:&|!<>0-9 ]{0,40}",
        data in json_value(),
        name in ".{0,40}",
    ) {
        let quoted = Value::from(expression.clone()).to_string();
        let text = format!(
            "[[messages]]\non = 'custom'\nwhen = {quoted}\neach = {quoted}\ndata = {quoted}\n\
             [[messages]]\non = 'custom'\nevent = '=event.name'\neach = 'event.data.list'\n\
             data = {{ a = '=event.data', b = '=item.x.y', c = '=string(event.data)' }}\n"
        );
        let custom = json!({ "type": "custom", "task": "ab".repeat(16), "node": "n",
            "name": name, "data": data });
        let moment = EventContext { time: "", state: &data };
        if let Ok(mapping) = StreamProjection::parse(&text) {
            let mut stream = StreamProjector::new(Arc::new(mapping), subject());
            let event = event(1, custom.clone());
            let _ = stream.apply(&event, moment, &mut ProjectionBudget::default());
        }
        let path = format!("event = {:?}\ndir = \"d\"\npath = \"{{a}}/{{b}}.json\"", "node_io");
        let mapping: FileProjection = toml::from_str(&path).unwrap();
        let mut custom = custom;
        custom["name"] = "node_io".into();
        let subject = subject();
        let mut files = RunFileProjector::new(&mapping, &subject);
        let budget = &mut ProjectionBudget::default();
        let written = files.apply(&event(1, custom), moment, "s", budget).unwrap();
        let path = written.unwrap().path;
        assert!(path.split('/').all(|part| !part.starts_with('.') && part.len() <= 245), "{path}");
    }
}

fn json_value() -> impl proptest::strategy::Strategy<Value = Value> {
    let leaf = prop_oneof![
        proptest::strategy::Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}|list|\\PC{0,3}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
