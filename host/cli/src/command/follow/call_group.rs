//! Consecutive calls of one task to one function of clock or random numbers, as one line.
//!
//! The runtime of a language may draw random bytes at the start of each node and each tool call,
//! and their lines would hide the calls of the author.

use std::collections::BTreeMap;

use wattle_graph::event::Called;
use wattle_graph::id::{NodeName, TaskId};
use wattle_run::hostcall::clock;

use crate::command::format;

/// The calls that are not shown yet, by task.
#[derive(Debug, Default)]
pub(super) struct CallGroups(BTreeMap<TaskId, CallGroup>);

/// Successful calls of one task to one function.
#[derive(Debug)]
struct CallGroup {
    node: NodeName,
    function: String,
    calls: u64,
    /// Sum of the durations.
    duration_us: u64,
}

impl CallGroups {
    /// Adds a call to the group of its task. Returns false if the call does not belong to it.
    pub(super) fn extend(&mut self, call: &Called) -> bool {
        let group = self.0.get_mut(&call.task);
        let group = group.filter(|group| group.function == call.function && call.result.is_ok());
        let Some(group) = group else { return false };
        group.calls += 1;
        group.duration_us = group.duration_us.saturating_add(call.duration_us);
        true
    }

    /// Begins a group with a call, whose task has no group. Returns false if the call is not one of
    /// clock or random numbers.
    pub(super) fn begin(&mut self, call: &Called) -> bool {
        if call.result.is_err() || !clock::FUNCTIONS.contains(&call.function.as_str()) {
            return false;
        }
        let group = CallGroup {
            node: call.node.clone(),
            function: call.function.clone(),
            calls: 1,
            duration_us: call.duration_us,
        };
        self.0.insert(call.task.clone(), group);
        true
    }

    /// Ends the group of a task, and returns its line.
    pub(super) fn end(&mut self, task: &TaskId) -> Option<String> {
        self.0.remove(task).map(|group| group.line())
    }

    /// Ends all groups, and returns their lines.
    pub(super) fn end_all(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).into_values().map(|group| group.line()).collect()
    }
}

impl CallGroup {
    fn line(&self) -> String {
        let Self { node, function, calls, duration_us } = self;
        let count = if *calls > 1 { format!(" ({calls} calls)") } else { String::new() };
        format!("{node}: {function}{count} {}", format::duration(*duration_us))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::failure::Failure;
    use wattle_graph::id::Digest;

    use super::*;

    fn called(task: &str, function: &str, duration_us: u64) -> Called {
        let document = json!({
            "task": task, "node": format!("node_{task}"), "call": 0, "function": function,
            "digest": Digest::of(b""), "request": 16, "result": { "Ok": [] }, "started_ms": 0,
            "duration_us": duration_us, "batch": 0,
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn consecutive_calls_of_a_task_are_one_line() {
        let mut groups = CallGroups::default();
        let [a, b] = ["a", "b"].map(|task| called(task, clock::RANDOM, 6));
        assert!(!groups.extend(&a) && groups.begin(&a) && groups.begin(&b));
        assert!(groups.extend(&a) && groups.extend(&a));
        let now = called("a", clock::NOW, 2);
        assert!(!groups.extend(&now), "it is another function");
        assert_eq!(groups.end(&now.task).as_deref(), Some("node_a: random.bytes (3 calls) 18us"));
        assert!(groups.begin(&now));
        assert_eq!(groups.end_all(), ["node_a: clock.now 2us", "node_b: random.bytes 6us"]);
        assert_eq!(groups.end(&a.task), None);
    }

    #[test]
    fn other_calls_and_failed_calls_are_shown_alone() {
        let mut groups = CallGroups::default();
        assert!(!groups.begin(&called("a", "memory.get", 6)));
        let mut failed = called("a", clock::TO_ZONE, 6);
        assert!(groups.begin(&failed));
        failed.result = Err(Failure::internal("no such zone"));
        assert!(!groups.extend(&failed));
        groups.end_all();
        assert!(!groups.begin(&failed));
    }
}
