//! The interrupts of an earlier checkpoint, answered or not.
//!
//! A task can raise several interrupts from one checkpoint. The history shows the interrupts that
//! were pending when the last run on this checkpoint ended.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::event::{Event, EventKind, Reopened};
use wattle_graph::id::{CheckpointId, InterruptId, Namespace, NodeName, TaskId};
use wattle_graph::interrupt::Interrupt;

/// Returns the last interrupts that the tasks of a checkpoint waited for, oldest first, each with
/// the namespace of its graph. `events` are the events since the checkpoint, or since the
/// checkpoint of the parent graph.
pub(crate) fn past_interrupts(
    namespace: &Namespace,
    checkpoint: CheckpointId,
    events: &[Event],
) -> Vec<(Namespace, Interrupt)> {
    let mut past = InterruptHistory {
        namespace,
        checkpoint,
        is_current: true,
        run_ends: 0,
        interrupts: BTreeMap::new(),
    };
    for event in events {
        past.apply(event);
    }
    past.mark_run_end();
    past.last_interrupts()
}

/// Folds the events since a checkpoint.
struct InterruptHistory<'a> {
    namespace: &'a Namespace,
    checkpoint: CheckpointId,
    /// True while the last applied `checkpointed` or `reopened` event names this checkpoint.
    is_current: bool,
    /// Number of run ends so far.
    run_ends: u32,
    interrupts: BTreeMap<InterruptId, PastInterrupt>,
}

struct PastInterrupt {
    graph: Namespace,
    interrupt: Interrupt,
    is_pending: bool,
    /// The last run end at which the interrupt was pending.
    last_run_end: Option<u32>,
}

impl InterruptHistory<'_> {
    fn apply(&mut self, event: &Event) {
        let graph = &event.namespace;
        match &event.kind {
            EventKind::Reopened(reopened) => self.reopen(event, reopened),
            EventKind::Checkpointed(made) if graph == self.namespace => {
                self.is_current = made.checkpoint == self.checkpoint;
                if self.is_current {
                    self.interrupts.clear();
                }
            }
            _ if !self.is_current => {}
            // The end of a run is an event of the root graph.
            EventKind::RunEnded(_) if graph.is_root() => self.mark_run_end(),
            _ if graph != self.namespace && !graph.is_nested_in(self.namespace) => {}
            EventKind::Checkpointed(_) => {
                self.clear_pending(|known| {
                    known.graph == *graph || known.graph.is_nested_in(graph)
                });
            }
            EventKind::InterruptRaised(raised) => {
                let new = || PastInterrupt {
                    graph: graph.clone(),
                    interrupt: Interrupt {
                        raised: raised.clone(),
                        raised_ms: event.at_ms,
                        raised_seq: event.seq,
                        run: event.run.clone(),
                        answer: None,
                    },
                    is_pending: !raised.answered,
                    last_run_end: None,
                };
                self.interrupts.entry(raised.interrupt.clone()).or_insert_with(new);
            }
            EventKind::Answered(answered) => {
                self.clear_pending(|known| known.interrupt.raised.interrupt == answered.interrupt);
            }
            EventKind::TaskFinished(done) => {
                self.clear_pending(|known| known.belongs_to(graph, &done.task, &done.node));
            }
            EventKind::TaskFailed(failed) if failed.handler.is_some() => {
                self.clear_pending(|known| known.belongs_to(graph, &failed.task, &failed.node));
            }
            _ => {}
        }
    }

    /// Makes the interrupts of discarded answers pending again. Removes the interrupts that the
    /// same tasks raised since then in the run that the answers had started.
    fn reopen(&mut self, event: &Event, reopened: &Reopened) {
        let is_again = |id: &InterruptId| reopened.interrupts.contains(id);
        if event.namespace == *self.namespace {
            self.is_current = reopened.to == self.checkpoint;
        } else {
            self.is_current |= self.interrupts.keys().any(is_again);
        }
        if !self.is_current {
            return;
        }
        let again = self.interrupts.iter().filter(|(id, _)| is_again(id));
        let again: BTreeSet<String> =
            again.map(|(_, known)| known.owning_task(self.namespace)).collect();
        self.interrupts.retain(|id, known| {
            let is_since = known.interrupt.run == event.run && !is_again(id);
            !(is_since && again.contains(&known.owning_task(self.namespace)))
        });
        for (_, known) in self.interrupts.iter_mut().filter(|(id, _)| is_again(id)) {
            known.is_pending = true;
        }
    }

    fn clear_pending(&mut self, is_over: impl Fn(&PastInterrupt) -> bool) {
        for known in self.interrupts.values_mut().filter(|known| is_over(known)) {
            known.is_pending = false;
        }
    }

    fn mark_run_end(&mut self) {
        for known in self.interrupts.values_mut().filter(|known| known.is_pending) {
            known.last_run_end = Some(self.run_ends);
        }
        self.run_ends += 1;
    }

    /// Returns the interrupts of the last run end of each task.
    fn last_interrupts(self) -> Vec<(Namespace, Interrupt)> {
        let mut newest: BTreeMap<String, u32> = BTreeMap::new();
        for known in self.interrupts.values() {
            if let Some(stop) = known.last_run_end {
                let last = newest.entry(known.owning_task(self.namespace)).or_default();
                *last = stop.max(*last);
            }
        }
        let is_last = |known: &PastInterrupt| {
            known
                .last_run_end
                .is_some_and(|stop| newest.get(&known.owning_task(self.namespace)) == Some(&stop))
        };
        let last = self.interrupts.into_values().filter(is_last);
        let mut last: Vec<_> = last.map(|known| (known.graph, known.interrupt)).collect();
        last.sort_by_key(|(_, question)| question.raised_seq);
        last
    }
}

impl PastInterrupt {
    /// Returns true if a task of a graph, or the subgraph that the task runs, raised the interrupt.
    fn belongs_to(&self, graph: &Namespace, task: &TaskId, node: &NodeName) -> bool {
        let own = self.graph == *graph && self.interrupt.raised.task == *task;
        own || self.graph.is_run_by(graph, task, node)
    }

    /// Returns the task of a graph that raised the interrupt or whose subgraph raised it.
    fn owning_task(&self, graph: &Namespace) -> String {
        match self.graph.child_of(graph) {
            None => self.interrupt.raised.task.to_string(),
            Some(level) => {
                level.task().map_or_else(|| level.node().to_owned(), |task| task.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Builds a log from lines of kind, graph, task and interrupt. Every run ends with `STOP`.
    fn log(lines: &[(&str, &str, &str, &str)]) -> Vec<Event> {
        let event = |(place, line): (usize, &(&str, &str, &str, &str))| {
            let (kind, graph, task, question) = *line;
            let fields = match kind {
                "asked" => json!({ "interrupt": question, "task": task, "node": "n", "call": 0,
                    "payload": question }),
                "answered" => json!({ "interrupt": question, "task": task, "answer": "yes" }),
                "checkpointed" => json!({ "checkpoint": task.parse::<u64>().unwrap(), "step": 1,
                    "source": "loop", "changed": [], "next": [] }),
                "task_finished" => json!({ "task": task, "node": "n", "base": 1, "writes": [],
                    "duration_us": 0 }),
                "run_ended" => json!({ "status": "interrupted" }),
                "reopened" => json!({ "to": 1, "interrupts": [question] }),
                other => panic!("{other}"),
            };
            let runs = lines[..place].iter().filter(|(kind, ..)| *kind == "run_ended").count();
            let run = format!("r{runs}");
            let mut event = json!({ "seq": place + 1, "at_ms": 0, "run": run, "type": kind });
            if !graph.is_empty() {
                event["namespace"] = graph.into();
            }
            for (name, value) in fields.as_object().unwrap() {
                event[name] = Value::clone(value);
            }
            serde_json::from_value(event).unwrap()
        };
        lines.iter().enumerate().map(event).collect()
    }

    #[track_caller]
    fn check(graph: &str, lines: &[(&str, &str, &str, &str)], expected: &[&str]) {
        let raised = past_interrupts(&Namespace::new(graph), CheckpointId(1), &log(lines));
        let ids: Vec<&str> =
            raised.iter().map(|(_, question)| question.raised.interrupt.as_str()).collect();
        assert_eq!(ids, expected);
    }

    const STOP: (&str, &str, &str, &str) = ("run_ended", "", "", "");

    #[test]
    fn history_shows_the_last_interrupts_of_each_task() {
        let mut lines = vec![
            ("asked", "", "a", "a1"),
            ("asked", "", "b", "b1"),
            STOP,
            ("answered", "", "a", "a1"),
            ("asked", "", "a", "a2"),
            STOP,
        ];
        check("", &lines, &["b1", "a2"]);
        lines.extend([
            ("answered", "", "a", "a2"),
            ("task_finished", "", "a", ""),
            STOP,
            ("answered", "", "b", "b1"),
            ("task_finished", "", "b", ""),
            ("checkpointed", "", "2", ""),
            ("asked", "", "c", "c1"),
            STOP,
        ]);
        check("", &lines, &["b1", "a2"]);
        lines.extend([("reopened", "", "", "a1"), STOP]);
        check("", &lines, &["a1", "b1"]);
    }

    #[test]
    fn interrupts_after_a_discarded_answer_are_not_shown() {
        let lines = [
            ("asked", "", "a", "a1"),
            ("asked", "", "b", "b1"),
            STOP,
            ("answered", "", "a", "a1"),
            ("asked", "", "a", "a2"),
            ("reopened", "", "", "a1"),
            STOP,
        ];
        check("", &lines, &["a1", "b1"]);
    }

    #[test]
    fn interrupts_that_no_run_waited_for_are_not_shown() {
        // The answer came while another task was running.
        let lines =
            [("asked", "", "a", "a1"), ("answered", "", "a", "a1"), ("asked", "", "b", "b1"), STOP];
        check("", &lines, &["b1"]);
        check("", &[("asked", "", "a", "a1"), ("task_finished", "", "a", ""), STOP], &[]);
    }

    #[test]
    fn tasks_show_the_interrupts_of_their_subgraphs() {
        let lines = [
            ("checkpointed", "n:aa", "1", ""),
            ("asked", "n:aa", "x", "x1"),
            ("asked", "n:aa.0|m", "y", "y1"),
            ("asked", "n:bb", "z", "z1"),
            STOP,
            ("answered", "n:aa", "x", "x1"),
            ("checkpointed", "n:aa", "2", ""),
            ("asked", "n:aa", "x", "x2"),
            STOP,
            ("answered", "n:aa", "x", "x2"),
            ("task_finished", "", "aa", ""),
            STOP,
        ];
        check("", &lines, &["y1", "z1", "x2"]);
        // The subgraph itself leaves the checkpoint when it reaches the next checkpoint.
        check("n:aa", &lines, &["x1"]);
        check("n:bb", &lines, &["z1"]);
    }
}
