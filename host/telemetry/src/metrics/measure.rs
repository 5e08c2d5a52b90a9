//! What a run adds to the metrics.

use serde_json::Value;
use wattle_graph::event::{Called, EventKind, TaskFault};
use wattle_graph::failure::code;

use crate::metrics::{
    CallLabels, FaultLabels, Metrics, ModelLabels, NodeLabels, RouteLabels, TokenLabels, ToolLabels,
};
use crate::source::Record;

/// Stands for a tool that a model made up.
const NO_TOOL: &str = "(none)";

/// Microseconds of a second.
const MICROS: f64 = 1_000_000.0;

impl Metrics {
    /// Adds a run.
    pub(crate) fn measure(&self, record: &Record) {
        let app = || record.note.app.to_string();
        let graph = || record.note.graph.to_string();
        for event in &record.events {
            match &event.kind {
                EventKind::TaskFinished(it) => {
                    let node = it.node.to_string();
                    let labels = NodeLabels { app: app(), graph: graph(), node };
                    self.nodes.get_or_create(&labels).observe(seconds(it.duration_us));
                }
                EventKind::TaskFailed(it) => {
                    let (node, fault) = (it.node.to_string(), fault_word(it.fault).to_owned());
                    let labels = FaultLabels { app: app(), graph: graph(), node, fault };
                    self.attempts_failed.get_or_create(&labels).inc();
                }
                EventKind::Called(called) => self.call(called),
                _ => {}
            }
        }
    }

    fn call(&self, called: &Called) {
        match called.function.as_str() {
            // An answer of before was counted when it was given.
            "llm.complete" | "llm.stream" | "llm.generate-images" if called.reused.is_none() => {
                self.model_call(called);
            }
            "tools.call" => self.tool_call(called),
            _ => {}
        }
        if let Err(failure) = &called.result {
            let (function, code) = (called.function.clone(), failure.code.clone());
            self.call_failures.get_or_create(&CallLabels { function, code }).inc();
        }
    }

    fn model_call(&self, called: &Called) {
        let route = called.request["route"].as_str().unwrap_or_default().to_owned();
        let answer = called.result.as_ref().ok();
        let model = answer.and_then(answered_by).unwrap_or_default();
        let model = model.to_owned();
        let took = self.model_seconds.get_or_create(&RouteLabels { route: route.clone() }).clone();
        took.observe(seconds(called.duration_us));
        if let Some(tokens) = called.tokens {
            for (direction, count) in [("input", tokens.input), ("output", tokens.output)] {
                let labels = TokenLabels { route: route.clone(), model: model.clone(), direction };
                self.tokens.get_or_create(&labels).inc_by(count);
            }
        }
        let outcome = outcome(&called.result);
        self.model_calls.get_or_create(&ModelLabels { route, model, outcome }).inc();
    }

    fn tool_call(&self, called: &Called) {
        let outcome = match &called.result {
            Ok(answer) if answer["is_error"] == true => "error".to_owned(),
            result => outcome(result),
        };
        let made_up = [code::NOT_FOUND, code::DENIED].contains(&outcome.as_str());
        let tool = called.request["tool"].as_str().filter(|_| !made_up).unwrap_or(NO_TOOL);
        self.tool_calls.get_or_create(&ToolLabels { tool: tool.to_owned(), outcome }).inc();
    }
}

/// The model that answered; pictures come as a list, each with the model that made it.
fn answered_by(answer: &Value) -> Option<&str> {
    answer.get("model").or_else(|| answer.get(0)?.get("model"))?.as_str()
}

fn outcome(result: &Result<Value, wattle_graph::failure::Failure>) -> String {
    result.as_ref().err().map_or_else(|| "ok".to_owned(), |failure| failure.code.clone())
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / MICROS
}

fn fault_word(fault: TaskFault) -> &'static str {
    match fault {
        TaskFault::Failure => "failure",
        TaskFault::Trap => "trap",
        TaskFault::Limit => "limit",
        TaskFault::Timeout => "timeout",
        TaskFault::Divergence => "divergence",
        TaskFault::Host => "host",
    }
}
