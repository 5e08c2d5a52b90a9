//! Tests of error handlers and of outcomes for the parent graph.

use std::sync::Arc;

use serde_json::json;

use super::{Plan, Task, plan, possible_tasks, tasks_of};
use crate::event::{EventKind, Reopened};
use crate::graph::Graph;
use crate::id::TaskId;
use crate::lineage::Lineage;
use crate::step::{advance, parent_outcome};
use crate::testing::{
    ScriptedResult, at, event, failed, finished, graph, interrupt_raised, node, ready, start,
    thread,
};

const HANDLED: &str = r#"
    [graphs.g]
    entry = ["a", "b", "c"]
    channels.log.reducer = "append"
    nodes.a = { on_error = "h" }
    nodes.b = { on_error = "h" }
    nodes.c = {}
    nodes.h = { on_error = "k" }
    nodes.k = {}
    nodes.next = {}
    nodes.saved = {}
    edges = [{ from = ["a"], to = "next" }, { from = "h", to = "saved" }]
"#;

fn begin() -> (Graph, Lineage, Vec<Task>) {
    let graph = graph(HANDLED);
    let lineage = start(&graph, &json!({})).unwrap();
    let tasks = ready(&graph, &lineage);
    (graph, lineage, tasks)
}

fn finish(lineage: &mut Lineage, task: &Task) {
    let base = lineage.checkpoint.meta.id;
    lineage.apply(&finished(task, base, ScriptedResult::write("log", task.node.to_string())));
}

fn all(graph: &Graph, lineage: &Lineage) -> Vec<TaskId> {
    match plan(graph, &thread(), lineage, 1) {
        Plan::Tasks { all, .. } => all,
        other => panic!("{other:?}"),
    }
}

#[test]
fn error_handler_replaces_the_failed_task() {
    let (graph, mut lineage, tasks) = begin();
    let [a, b, c] = tasks.try_into().unwrap();
    assert!(a.handler.is_some() && a.handler != b.handler && c.handler.is_none());
    finish(&mut lineage, &b);
    finish(&mut lineage, &c);
    lineage.apply(&failed(&a));
    let handler = ready(&graph, &lineage).remove(0);
    assert_eq!((Some(&handler.id), handler.node.as_str()), (a.handler.as_ref(), "h"));
    let input = handler.input(&graph, &lineage.checkpoint.values);
    assert_eq!((&handler.from, input.to_value()), (&Some(node("a")), json!({})));
    assert_eq!(handler.handles.as_ref().unwrap().task, a.id);
    assert_eq!(all(&graph, &lineage), [handler.id.clone(), b.id.clone(), c.id.clone()]);
    finish(&mut lineage, &handler);
    assert!(ready(&graph, &lineage).is_empty());
    let next = advance(&graph, &lineage, &[].into(), at(2)).unwrap();
    let led: Vec<&str> = next.meta.next.iter().map(|trigger| trigger.node.as_str()).collect();
    assert_eq!(led, ["saved"], "the edges of the failed node are not followed");
    assert_eq!(next.state()["log"], json!(["b", "c", "h"]));
}

#[test]
fn each_failure_has_its_own_handler() {
    let (graph, mut lineage, tasks) = begin();
    lineage.apply(&failed(&tasks[1]));
    lineage.apply(&failed(&tasks[0]));
    let handlers: Vec<Task> = ready(&graph, &lineage).into_iter().take(2).collect();
    let nodes: Vec<&str> = handlers.iter().map(|task| task.node.as_str()).collect();
    assert_eq!(nodes, ["h", "h"]);
    assert!(handlers[0].id != handlers[1].id && handlers[0].index != handlers[1].index);
    // An error handler can fail, and can have an error handler, too.
    lineage.apply(&failed(&handlers[0]));
    let second = ready(&graph, &lineage).remove(0);
    assert_eq!((second.node.as_str(), second.from.unwrap()), ("k", node("h")));
    assert_eq!((Some(second.id), second.handler), (handlers[0].handler.clone(), None));
}

#[test]
fn failed_task_without_a_handler_runs_again() {
    let (graph, mut lineage, tasks) = begin();
    lineage.apply(&failed(&tasks[2]));
    assert_eq!(ready(&graph, &lineage), tasks);
}

#[test]
fn a_handled_failure_stays_handled_after_later_events_of_its_task() {
    let (graph, mut lineage, tasks) = begin();
    lineage.apply(&failed(&tasks[0]));
    let before = lineage.clone();
    let EventKind::TaskFailed(mut again) = failed(&tasks[0]).kind else { panic!() };
    again.handler = None;
    lineage.apply(&event(EventKind::TaskFailed(again)));
    finish(&mut lineage, &tasks[0]);
    assert_eq!((&lineage, ready(&graph, &lineage).len()), (&before, 3));
}

#[test]
fn a_reopened_interrupt_discards_the_error_handlers_of_its_task() {
    let (graph, mut lineage, tasks) = begin();
    let base = lineage.checkpoint.meta.id;
    let question = interrupt_raised(&tasks[0].id, "a", 0);
    lineage.apply(&event(EventKind::InterruptRaised(question.clone())));
    lineage.apply(&failed(&tasks[1]));
    let made_good = ready(&graph, &lineage).remove(0);
    finish(&mut lineage, &made_good);
    let before = lineage.clone();
    // The task fails after the answer. Its error handler raises an interrupt and then fails, too.
    lineage.apply(&event(EventKind::Answered(crate::event::Answered {
        interrupt: question.interrupt.clone(),
        task: tasks[0].id.clone(),
        answer: json!("yes"),
        principal: None,
    })));
    lineage.apply(&failed(&tasks[0]));
    let handler = ready(&graph, &lineage).remove(0);
    lineage.apply(&event(EventKind::InterruptRaised(interrupt_raised(&handler.id, "h", 0))));
    assert_eq!(lineage.pending_interrupts().len(), 1, "a handled task has no pending interrupt");
    lineage.apply(&failed(&handler));
    lineage.apply(&event(EventKind::Reopened(Reopened {
        to: base,
        interrupts: vec![question.interrupt],
        tasks: Vec::new(),
        failure: None,
    })));
    assert_eq!(lineage, before, "other handled failures stay handled");
}

#[test]
fn task_can_return_an_outcome_for_the_parent_graph() {
    let (graph, mut lineage, tasks) = begin();
    let base = lineage.checkpoint.meta.id;
    finish(&mut lineage, &tasks[1]);
    assert_eq!(parent_outcome(&lineage), None);
    for (task, goto) in [(&tasks[2], Some(vec!["x", "y"])), (&tasks[0], Some(vec!["y"]))] {
        let goto = goto.map(|names| names.into_iter().map(node).collect());
        let did = ScriptedResult { goto, ..ScriptedResult::write("log", task.node.to_string()) };
        let mut event = finished(task, base, did);
        if let EventKind::TaskFinished(finished) = &mut event.kind {
            Arc::make_mut(finished).for_parent = true;
        }
        assert!(matches!(plan(&graph, &thread(), &lineage, 1), Plan::Tasks { .. }));
        lineage.apply(&event);
    }
    assert_eq!(plan(&graph, &thread(), &lineage, 1), Plan::ParentOutcome);
    let outcome = parent_outcome(&lineage).unwrap();
    let values: Vec<_> = outcome.writes.iter().map(|write| &write.value).collect();
    assert_eq!(values, ["a", "c"], "in task order");
    assert_eq!(outcome.goto, Some(vec![node("y"), node("x")]));
    let own = advance(&graph, &lineage, &[].into(), at(2)).unwrap();
    assert_eq!((own.state()["log"].clone(), own.meta.next.len()), (json!(["b"]), 0));
}

#[test]
fn checkpoint_determines_the_next_tasks() {
    let (graph, lineage, tasks) = begin();
    let told = tasks_of(&thread(), &lineage.checkpoint.meta).into_iter().map(|(id, _)| id);
    assert_eq!(told.collect::<Vec<_>>(), all(&graph, &lineage));
    assert_eq!(tasks.len(), 3);
}

#[test]
fn possible_tasks_contains_every_task() {
    let (graph, mut lineage, tasks) = begin();
    let meta = lineage.checkpoint.meta.clone();
    let nodes = graph.nodes().keys();
    let known = possible_tasks(&thread(), &meta.namespace, meta.id, nodes, meta.next.len() as u32);
    lineage.apply(&failed(&tasks[1]));
    let handler = ready(&graph, &lineage).remove(1);
    assert_eq!(handler.node.as_str(), "h");
    for task in tasks.iter().chain([&handler]) {
        assert_eq!(known.get(&task.id), Some(&(task.node.clone(), task.index)));
    }
}
