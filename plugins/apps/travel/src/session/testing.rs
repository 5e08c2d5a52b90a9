//! Test support that several modules share: event logs, written by what happens.

use wattle_plugin::prelude::{Value, json};
use wattle_plugin::runs::{RunLog, by_run};

use crate::channel::AGENT;

/// An event log that grows.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) events: Vec<Value>,
    run: String,
    turn: u32,
}

impl Log {
    /// Creates a log with a run that has started.
    pub(crate) fn of_run(run: &str) -> Self {
        let mut log = Self::default();
        log.begin(run);
        log
    }

    /// Starts a further run.
    pub(crate) fn begin(&mut self, run: &str) {
        run.clone_into(&mut self.run);
        self.add(
            json!({"type": "run_started", "graph": "travel", "digest": "x", "reason": "input"}),
        );
    }

    /// Adds an event, one second after the last one.
    pub(crate) fn add(&mut self, mut event: Value) {
        let seq = self.events.len() + 1;
        event["seq"] = json!(seq);
        event["at_ms"] = json!(seq * 1_000);
        event["run"] = json!(self.run);
        self.events.push(event);
    }

    /// Adds deltas of the model in its current turn.
    pub(crate) fn says(&mut self, text: &str) {
        let task = self.agent();
        self.add(json!({"type": "streamed", "task": task, "node": "agent", "call": 1,
            "deltas": [{"kind": "reasoning", "text": "hm"}, {"kind": "text", "text": text}]}));
    }

    /// Completes a model call, with the requested tool calls: ids, names and arguments.
    pub(crate) fn answers(&mut self, text: &str, calls: &[(&str, &str, Value)]) {
        let (task, turn) = (self.agent(), self.turn);
        let parts = json!([{"reasoning": "hm"}, {"text": text}]);
        self.add(json!({"type": "called", "task": task, "node": "agent", "call": 1, "digest": "x",
            "function": "llm.complete", "request": {}, "result": {"Ok": {"parts": parts}},
            "started_ms": 1, "duration_us": 1, "batch": 1}));
        let calls: Vec<Value> = calls
            .iter()
            .map(|(id, name, arguments)| json!({"id": id, "name": name, "arguments": arguments}))
            .collect();
        let message = json!({"role": "assistant", "content": text, "tool_calls": calls});
        self.add(json!({"type": "task_finished", "task": task, "node": "agent", "base": "b",
            "writes": [{"channel": "messages", "value": [message]}], "duration_us": 1}));
        self.turn = turn + 1;
    }

    /// Starts a tool call.
    pub(crate) fn calls(&mut self, tool: &str, call: u32) {
        let task = self.tools();
        self.add(json!({"type": "call_started", "task": task, "call": call,
            "function": "tools.call", "summary": format!("travel/{tool}")}));
        // A model call inside of the tool.
        self.add(json!({"type": "call_started", "task": task, "scope": [call], "call": 0,
            "function": "llm.complete", "summary": "x"}));
    }

    /// Ends a tool call.
    pub(crate) fn returns(&mut self, tool: &str, call: u32, result: Value) {
        let task = self.tools();
        self.add(json!({"type": "called", "task": task, "node": "tools", "call": call,
            "digest": "x", "function": "tools.call", "request": {"head": "{", "bytes": 20_000},
            "result": result, "started_ms": 1, "duration_us": 1_500_000, "batch": call,
            "summary": format!("travel/{tool}")}));
    }

    /// Ends the run.
    pub(crate) fn ends(&mut self, status: &str) {
        self.add(json!({"type": "run_ended", "status": status}));
    }

    /// Returns the runs so far.
    pub(crate) fn runs(&self) -> Vec<RunLog> {
        by_run(self.events.iter().map(|event| AGENT.read(event).unwrap()).collect())
    }

    /// Returns the only run.
    pub(crate) fn run(&self) -> RunLog {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }

    fn agent(&self) -> String {
        format!("agent-{}-{}", self.run, self.turn)
    }

    fn tools(&self) -> String {
        format!("tools-{}-{}", self.run, self.turn)
    }
}

/// Returns the result of a tool that succeeded.
pub(crate) fn good(output: Value, updates: Value) -> Value {
    let content = json!([{"text": "for the model"}]);
    json!({"Ok": {"content": content, "structured": output, "updates": updates}})
}

/// Returns a result that a model reads as an error.
pub(crate) fn bad(text: &str) -> Value {
    json!({"Ok": {"content": [{"text": text}], "is_error": true}})
}
