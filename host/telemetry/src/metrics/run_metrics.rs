//! Records the metrics of a run.

use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::event::{Called, EventKind, TaskFault};
use wattle_graph::failure::code;

use crate::metrics::{
    CallLabels, FaultLabels, Metrics, ModelLabels, NodeLabels, RouteLabels, TokenLabels, ToolLabels,
};
use crate::run_log::RunLog;

/// Label of tools that do not exist or are not granted, whose names a model can choose.
const NO_TOOL: &str = "(none)";

/// Microseconds per second.
const MICROS_PER_SECOND: f64 = 1_000_000.0;

impl Metrics {
    /// Records a run.
    pub(crate) fn record_run(&self, record: &RunLog) {
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
                    let (node, fault) = (it.node.to_string(), fault_name(it.fault).to_owned());
                    let labels = FaultLabels { app: app(), graph: graph(), node, fault };
                    self.attempts_failed.get_or_create(&labels).inc();
                }
                EventKind::Called(called) => self.record_call(called),
                _ => {}
            }
        }
    }

    fn record_call(&self, called: &Called) {
        match called.kind() {
            // A reused completion was counted in the run that received it.
            Some(kind) if kind.is_model_call() && called.reused.is_none() => {
                self.record_model_call(called);
            }
            Some(CallKind::CallTool) => self.record_tool_call(called),
            _ => {}
        }
        if let Err(failure) = &called.result {
            let (function, code) = (called.function.clone(), failure.code.clone());
            self.call_failures.get_or_create(&CallLabels { function, code }).inc();
        }
    }

    fn record_model_call(&self, called: &Called) {
        let route = called.route().unwrap_or_default().to_owned();
        let model = completing_model(called).unwrap_or_default();
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

    fn record_tool_call(&self, called: &Called) {
        let outcome = match called.tool_output() {
            Some(output) if output.is_error => "error".to_owned(),
            _ => outcome(&called.result),
        };
        let made_up = [code::NOT_FOUND, code::DENIED].contains(&outcome.as_str());
        let tool = called.tool_request().filter(|_| !made_up).map(|request| request.tool);
        let tool = tool.unwrap_or_else(|| NO_TOOL.to_owned());
        self.tool_calls.get_or_create(&ToolLabels { tool, outcome }).inc();
    }
}

/// Returns the model that answered a call. For images, returns the model that the first image
/// names.
fn completing_model(called: &Called) -> Option<String> {
    let by_images = || called.images()?.into_iter().next().map(|image| image.model);
    called.completion().map(|answer| answer.model).or_else(by_images)
}

fn outcome(result: &Result<Value, wattle_graph::failure::Failure>) -> String {
    result.as_ref().err().map_or_else(|| "ok".to_owned(), |failure| failure.code.clone())
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / MICROS_PER_SECOND
}

fn fault_name(fault: TaskFault) -> &'static str {
    match fault {
        TaskFault::Failure => "failure",
        TaskFault::Trap => "trap",
        TaskFault::Limit => "limit",
        TaskFault::Timeout => "timeout",
        TaskFault::Divergence => "divergence",
        TaskFault::Host => "host",
    }
}
