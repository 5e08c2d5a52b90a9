//! Tests of the trace that is built from a log.

use serde_json::json;

use super::*;

fn build(log: &[Event]) -> Trace {
    let mut tracer = Tracer::default();
    for event in log {
        tracer.apply(event, &EventState::default());
    }
    tracer.finish(&ThreadId::new("thread").unwrap())
}

fn event(seq: u64, run: &str, kind: serde_json::Value) -> Event {
    let mut document = json!({ "seq": seq, "at_ms": 1_000 + seq * 10, "run": run });
    document.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
    serde_json::from_value(document).unwrap()
}

fn call(seq: u64, run: &str, call: u32) -> Event {
    let digest = "0".repeat(64);
    event(
        seq,
        run,
        json!({
            "type": "called", "task": "t1", "node": "extract", "call": call,
            "function": "llm.complete", "digest": digest, "request": { "route": "chat" },
            "result": { "Ok": { "text": "hi" } }, "started_ms": 1_020, "duration_us": 5_000,
            "summary": "chat (small)", "tokens": { "input": 12, "output": 3 }, "batch": call,
        }),
    )
}

fn started(seq: u64, run: &str, attempt: u32) -> Event {
    event(
        seq,
        run,
        json!({
            "type": "task_started", "task": "t1", "node": "extract", "step": 1, "attempt": attempt,
        }),
    )
}

#[test]
fn host_calls_of_a_tool_are_inside_the_tool_call() {
    let within = |seq, scope: serde_json::Value, number, function: &str| {
        let mut event = serde_json::to_value(call(seq, "r1", number)).unwrap();
        event["scope"] = scope;
        event["function"] = function.into();
        serde_json::from_value::<Event>(event).unwrap()
    };
    let log = [
        run_started(1, "r1", "input"),
        started(2, "r1", 1),
        within(3, json!([0]), 1, "http.send"),
        within(4, json!([0]), 0, "llm.complete"),
        within(5, json!([]), 0, "tools.call"),
    ];
    let trace = build(&log);
    let calls = &trace.runs[0].steps[0].tasks[0].attempts[0].calls;
    assert_eq!((calls.len(), calls[0].function.as_str()), (1, "tools.call"));
    let inner: Vec<&str> = calls[0].calls.iter().map(|call| call.function.as_str()).collect();
    assert_eq!(inner, ["llm.complete", "http.send"]);
}

fn run_started(seq: u64, run: &str, reason: &str) -> Event {
    event(
        seq,
        run,
        json!({
            "type": "run_started", "graph": "g", "digest": "0".repeat(64), "reason": reason,
        }),
    )
}

#[test]
fn large_trace_is_truncated() {
    let said = |text: &str| {
        let kind = json!({ "type": "progress", "task": "t1", "node": "extract", "message": text });
        event(3, "r1", kind)
    };
    let mebibyte = "x".repeat(1 << 20);
    for (text, most) in [("short", TRACE_ENTRIES - 4), (mebibyte.as_str(), 32)] {
        let (mut tracer, message) = (Tracer::default(), said(text));
        let mut is_taken = |event: &Event| {
            tracer.apply(event, &EventState::default());
            !tracer.is_over()
        };
        assert!(is_taken(&run_started(1, "r1", "input")));
        assert!(is_taken(&started(2, "r1", 1)));
        let mut taken = 0;
        while is_taken(&message) {
            taken += 1;
        }
        assert!(!is_taken(&started(4, "r1", 2)));
        let trace = tracer.finish(&ThreadId::new("thread").unwrap());
        // The run, its superstep, its task and the attempt also count as entries.
        let attempts = &trace.runs[0].steps[0].tasks[0].attempts;
        assert_eq!((taken, attempts.len()), (most, 1));
        assert_eq!((attempts[0].messages.len(), trace.truncated), (most, true));
    }
    assert!(!build(&[run_started(1, "r1", "input")]).truncated);
}

#[test]
fn subgraphs_are_inside_the_task_that_runs_them() {
    let within = |mut event: Event, namespace: &str, task: &str| {
        event.namespace = Namespace::new(namespace);
        match &mut event.kind {
            EventKind::TaskStarted(started) => started.task = TaskId::new(task).unwrap(),
            EventKind::Called(called) => called.task = TaskId::new(task).unwrap(),
            _ => {}
        }
        event
    };
    let log = [
        run_started(1, "r1", "input"),
        started(2, "r1", 1),
        within(started(3, "r1", 1), "extract:t1", "t2"),
        within(started(4, "r1", 1), "extract:t1|extract", "t3"),
        within(call(5, "r1", 0), "extract:t1|extract", "t3"),
        within(started(6, "r1", 1), "extract:t1.0", "t4"),
    ];
    let trace = build(&log);
    let outer = &trace.runs[0].steps[0].tasks[0].attempts[0];
    let names: Vec<&str> = outer.graphs.iter().map(|graph| graph.namespace.as_str()).collect();
    assert_eq!(names, ["extract:t1", "extract:t1.0"]);
    let middle = &outer.graphs[0].steps[0].tasks[0];
    let inner = &middle.attempts[0].graphs[0].steps[0].tasks[0];
    assert_eq!((middle.task.as_str(), inner.task.as_str()), ("t2", "t3"));
    assert_eq!(inner.attempts[0].calls.len(), 1);
    assert_eq!((trace.runs[0].steps.len(), trace.totals.calls), (1, 1));
}

#[test]
fn a_log_becomes_a_tree() {
    let log = [
        run_started(1, "r1", "input"),
        started(2, "r1", 1),
        event(
            3,
            "r1",
            json!({
                "type": "call_started", "task": "t1", "call": 0, "function": "llm.complete",
                "summary": "chat",
            }),
        ),
        call(4, "r1", 0),
        event(
            5,
            "r1",
            json!({
                "type": "asked", "interrupt": "q", "task": "t1", "node": "extract", "call": 1,
                "payload": {},
            }),
        ),
        event(6, "r1", json!({ "type": "run_ended", "status": "interrupted" })),
        run_started(7, "r2", "resume"),
        started(8, "r2", 1),
        event(
            9,
            "r2",
            json!({
                "type": "task_finished", "task": "t1", "node": "extract", "base": 0,
                "writes": [{ "channel": "x", "value": "y" }], "duration_us": 900,
            }),
        ),
        event(10, "r2", json!({ "type": "run_ended", "status": "completed" })),
    ];
    insta::assert_json_snapshot!(build(&log));
}

#[test]
fn trace_contains_the_principals_of_requests() {
    let by = |name: &str, mut kind: serde_json::Value| {
        kind["principal"] = json!({ "key": name, "user": "jane" });
        kind
    };
    let started = json!({
        "type": "run_started", "graph": "g", "digest": "0".repeat(64), "reason": "resume",
    });
    let answered = json!({ "type": "answered", "interrupt": "q", "task": "t", "answer": 1 });
    let ended = json!({ "type": "run_ended", "status": "cancelled" });
    let settled = json!({
        "type": "settled", "task": "t", "call": 2, "decision": { "kind": "retry" }, "by": "",
    });
    let made = json!({
        "type": "checkpointed", "checkpoint": 4, "step": 1, "source": "update",
        "changed": ["x"], "next": [],
    });
    let migrated = json!({ "type": "migrated", "from": "0".repeat(64), "to": "1".repeat(64) });
    let log = [
        event(1, "r1", by("start", started)),
        event(2, "r1", by("answer", answered)),
        event(3, "r1", by("cancel", ended)),
        event(4, "e1", by("edit", made.clone())),
        event(5, "e2", by("settle", settled)),
        event(6, "e3", by("move", migrated)),
        event(7, "e3", made),
    ];
    let trace = build(&log);
    let key = |principal: &Option<crate::trace::PrincipalTrace>| {
        let principal = principal.as_ref().unwrap();
        assert_eq!(principal.user.as_deref(), Some("jane"));
        principal.key.clone().unwrap()
    };
    let run = &trace.runs[0];
    assert_eq!(key(&run.principal), "start");
    assert_eq!(key(&run.answers[0].principal), "answer");
    assert_eq!(key(&run.cancelled_by), "cancel");
    let told = trace.changes.iter().map(|it| (it.seq, it.change.as_str(), it.summary.as_str()));
    let told: Vec<_> = told.collect();
    assert_eq!(told[0], (4, "edited", "checkpoint 4 -> x"));
    assert_eq!(told[1], (5, "settled", "call 2 of task t: retry"));
    assert_eq!(told[2], (6, "migrated", "from 000000000000 to 111111111111"));
    let keys: Vec<_> = trace.changes.iter().map(|it| key(&it.principal)).collect();
    assert_eq!(keys, ["edit", "settle", "move"]);
}

#[test]
fn failures_have_their_details() {
    let failure = |details| json!(Failure::new("internal", "it failed").with_details(details));
    let failed = |seq, details| {
        let kind = json!({
            "type": "task_failed", "task": "t1", "node": "extract", "attempt": 1,
            "fault": "failure", "failure": failure(details),
        });
        event(seq, "r1", kind)
    };
    let stack = json!({ "exception": "TypeError", "stack": ["price (src/index.ts:7)"] });
    let ended = json!({
        "type": "run_ended", "status": "failed", "failure": failure(json!({ "limit": "cpu" })),
    });
    let trace = build(&[
        run_started(1, "r1", "input"),
        started(2, "r1", 1),
        failed(3, stack.clone()),
        event(4, "r1", ended),
    ]);
    let run = &trace.runs[0];
    assert_eq!(run.failure_details, Some(json!({ "limit": "cpu" })));
    let attempt = &run.steps[0].tasks[0].attempts[0];
    assert_eq!(attempt.failure.as_deref(), Some("internal: it failed"));
    assert_eq!(attempt.failure_details, Some(stack));

    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    for (levels, is_kept) in [(MAX_DETAILS_DEPTH, true), (MAX_DETAILS_DEPTH + 1, false)] {
        let log = [run_started(1, "r1", "input"), started(2, "r1", 1), failed(3, nested(levels))];
        let trace = build(&log);
        let attempt = &trace.runs[0].steps[0].tasks[0].attempts[0];
        assert_eq!(attempt.failure_details.is_some(), is_kept, "{levels}");
    }

    // Details count towards the size of the trace.
    let large = failed(3, "x".repeat(TRACE_BYTES as usize).into());
    let trace = build(&[run_started(1, "r1", "input"), started(2, "r1", 1), large.clone(), large]);
    assert!(trace.truncated);
}

/// A node may catch the failure of a tool, so that no other event has its details.
#[test]
fn failed_calls_have_the_details_of_their_failures() {
    let failed = |details: serde_json::Value| {
        let mut event = serde_json::to_value(call(3, "r1", 0)).unwrap();
        let failure = Failure::new("internal", "it failed").with_details(details);
        event["result"] = json!({ "Err": failure });
        serde_json::from_value::<Event>(event).unwrap()
    };
    let log = |calls: Vec<Event>| {
        [vec![run_started(1, "r1", "input"), started(2, "r1", 1)], calls].concat()
    };
    let stack = json!({ "exception": "TypeError", "stack": ["price (src/index.ts:7)"] });
    let trace = build(&log(vec![failed(stack.clone())]));
    let call = &trace.runs[0].steps[0].tasks[0].attempts[0].calls[0];
    assert_eq!(call.failure.as_deref(), Some("internal: it failed"));
    assert_eq!(call.failure_details, Some(stack));

    // Details count towards the size of the trace.
    let large = failed("x".repeat(TRACE_BYTES as usize).into());
    assert!(build(&log(vec![large.clone(), large])).truncated);
}

#[test]
fn reused_result_is_not_a_model_call() {
    let mut again = serde_json::to_value(call(6, "r2", 0)).unwrap();
    again["reused"] = 3.into();
    again.as_object_mut().unwrap().remove("tokens");
    let log = [
        run_started(1, "r1", "input"),
        started(2, "r1", 1),
        call(3, "r1", 0),
        run_started(4, "r2", "input"),
        started(5, "r2", 1),
        serde_json::from_value(again).unwrap(),
    ];
    let trace = build(&log);
    let call = &trace.runs[1].steps[0].tasks[0].attempts[0].calls[0];
    assert_eq!((call.reused, call.input_tokens), (Some(3), None));
    assert_eq!((trace.totals.calls, trace.totals.model_calls), (2, 1));
    assert_eq!(trace.totals.input_tokens, 12);
}

#[test]
fn recovery_continues_the_trace_of_the_run() {
    let log = [
        run_started(1, "r1", "input"),
        started(2, "r1", 1),
        call(3, "r1", 0),
        run_started(4, "r1", "recovery"),
        started(5, "r1", 1),
    ];
    let trace = build(&log);
    assert_eq!(trace.runs.len(), 1);
    assert_eq!(trace.runs[0].recoveries, 1);
    let attempts = &trace.runs[0].steps[0].tasks[0].attempts;
    assert_eq!((attempts.len(), attempts[1].replayed), (2, 1));
    let outcomes: Vec<&str> = attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["cut", "running"]);
}

#[test]
fn a_recovery_cuts_the_executions_of_subgraphs_that_have_not_ended() {
    let within = |seq, kind: serde_json::Value| {
        let namespace = Namespace::new("extract:t1");
        Event { namespace, ..event(seq, "r1", kind) }
    };
    let begun = |task: &str| {
        json!({
            "type": "task_started", "task": task, "node": "inner", "step": 1, "attempt": 1,
        })
    };
    let finished = json!({
        "type": "task_finished", "task": "t2", "node": "inner", "base": 0, "writes": [],
        "duration_us": 900,
    });
    let trace = build(&[
        run_started(1, "r1", "input"),
        started(2, "r1", 1),
        within(3, begun("t2")),
        within(4, begun("t3")),
        within(5, finished),
        run_started(6, "r1", "recovery"),
    ]);
    let outer = &trace.runs[0].steps[0].tasks[0].attempts[0];
    let tasks = outer.graphs[0].steps[0].tasks.iter();
    let outcomes: Vec<&str> = tasks.map(|task| task.attempts[0].outcome.as_str()).collect();
    assert_eq!((outer.outcome.as_str(), outcomes), ("cut", vec!["finished", "cut"]));
}
