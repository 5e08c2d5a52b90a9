//! Tests of the spans of tasks.

use std::collections::BTreeMap;

use wattle_graph::event::{Event, EventKind, RunReason, RunStatus};
use wattle_graph::id::{AppName, GraphName, RunId, TaskId};

use super::{Attribute, Route, Run, Span, View, spans};
use crate::sample::{
    event, interrupt_raised, run_ended, run_started, task_failed, task_started, thread,
};

/// Returns the span of the node `agent` in an interrupted run with these events.
fn span_of_agent(log: &[Event]) -> Span {
    let (app, graph) = (AppName::new("app").unwrap(), GraphName::new("g").unwrap());
    let (thread, run) = (thread(), RunId::new("run").unwrap());
    let run = Run {
        app: &app,
        graph: &graph,
        thread: &thread,
        run: &run,
        tenant: None,
        status: RunStatus::Interrupted,
        failure: None,
        truncated: false,
        input: None,
        output: None,
    };
    let route = |_: &str| -> Option<Route> { None };
    let view = View { content: false, route: &route };
    spans(&run, log, &view).into_iter().find(|span| span.name == "agent").unwrap()
}

#[test]
fn task_that_waits_after_a_failed_attempt_has_no_error() {
    let task = TaskId::new("task-0").unwrap();
    let mut log = vec![run_started(RunReason::Input), task_started(0), task_failed(0)];
    assert_eq!(span_of_agent(&log).error.as_deref(), Some("unavailable"));
    log.extend([
        task_started(0),
        event(EventKind::InterruptRaised(interrupt_raised(&task, "agent", 0))),
        run_ended(RunStatus::Interrupted),
    ]);
    let span = span_of_agent(&log);
    assert_eq!(span.error, None);
    let events: Vec<&str> = span.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(events, ["exception", log[4].kind.name()]);
    let attributes: BTreeMap<String, Attribute> = span.attributes.into_iter().collect();
    assert_eq!(attributes.get("langfuse.observation.level"), None);
    assert_eq!(attributes["wattle.attempts"], Attribute::Number(2));
    assert_eq!(attributes["wattle.outcome"], Attribute::Text(log[4].kind.name().to_owned()));
}

#[test]
fn attempt_without_an_end_does_not_keep_the_failure_of_the_attempt_before() {
    let span = span_of_agent(&[
        run_started(RunReason::Input),
        task_started(0),
        task_failed(0),
        task_started(0),
        run_ended(RunStatus::Interrupted),
    ]);
    assert_eq!(span.error, None);
    let attributes: BTreeMap<String, Attribute> = span.attributes.into_iter().collect();
    assert_eq!(attributes["wattle.outcome"], Attribute::Text("cut".to_owned()));
}
