//! Metrics for Prometheus.
//!
//! Each label value is a series that stays in memory, so the sets of label values are bounded:
//! names of apps, graphs and nodes, routes and models that the operator configured, codes of the
//! host, and a limited number of tools. All other values, which guests, tenants, models and
//! services choose, share one label.

pub(crate) mod run_metrics;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use wattle_graph::event::RunStatus;
use wattle_graph::id::{AppName, GraphName};
use wattle_project::spans::status_word;

/// Content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the histogram buckets, in seconds: from a node without host calls to a slow
/// model.
const DURATION_BUCKETS: [f64; 12] =
    [0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

/// Maximum number of tools that are counted by name. A server may list 1,000 tools, and a model
/// calls few of them. While a tool source cannot be listed, a model may also call tools that do not
/// exist. Further tools are counted together.
pub const MAX_TOOLS: usize = 1_000;

/// Maximum length of a tool name that becomes a label, in bytes. Tools with longer names are
/// counted together.
pub const TOOL_NAME_BYTES: usize = 512;

/// All metrics of a host. Clones refer to the same metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    runs: Family<RunLabels, Counter>,
    active: Family<GraphLabels, Gauge>,
    nodes: Family<NodeLabels, Histogram, fn() -> Histogram>,
    attempts_failed: Family<FaultLabels, Counter>,
    model_calls: Family<ModelLabels, Counter>,
    model_seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    tokens: Family<TokenLabels, Counter>,
    tool_calls: Family<ToolLabels, Counter>,
    /// Names of the tools that are counted by name.
    tools: Arc<Mutex<BTreeSet<String>>>,
    call_failures: Family<CallLabels, Counter>,
    pub(crate) export: ExportMetrics,
}

/// Metrics of the trace export.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportMetrics {
    /// Runs in the export queue.
    pub(crate) waiting_runs: Gauge,
    /// Spans in the export queue.
    pub(crate) waiting_spans: Gauge,
    /// Runs that were dropped, because the queue was full or the log of the run could not be read.
    pub(crate) dropped_runs: Counter,
    /// Spans that were dropped, because the queue was full or the service did not accept them.
    pub(crate) dropped_spans: Counter,
    /// Spans that the service accepted.
    pub(crate) sent_spans: Counter,
    /// Export requests that failed, including requests that were retried.
    pub(crate) failed_requests: Counter,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RunLabels {
    app: String,
    graph: String,
    status: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct GraphLabels {
    app: String,
    graph: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NodeLabels {
    app: String,
    graph: String,
    node: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FaultLabels {
    app: String,
    graph: String,
    node: String,
    fault: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ModelLabels {
    route: String,
    model: String,
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TokenLabels {
    route: String,
    model: String,
    direction: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    function: String,
    code: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let times: fn() -> Histogram = || Histogram::new(DURATION_BUCKETS);
        let mut metrics = Self {
            registry: Arc::default(),
            runs: Family::default(),
            active: Family::default(),
            nodes: Family::new_with_constructor(times),
            attempts_failed: Family::default(),
            model_calls: Family::default(),
            model_seconds: Family::new_with_constructor(times),
            tokens: Family::default(),
            tool_calls: Family::default(),
            tools: Arc::default(),
            call_failures: Family::default(),
            export: ExportMetrics::default(),
        };
        metrics.registry = Arc::new(metrics.build_registry());
        metrics
    }
}

impl Metrics {
    /// Returns all metrics as text, in the format of [`CONTENT_TYPE`].
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::warn!(%error, "cannot encode the metrics");
        }
        text
    }

    pub(crate) fn run_started(&self, app: &AppName, graph: &GraphName) {
        self.active.get_or_create(&graph_labels(app, graph)).inc();
    }

    pub(crate) fn run_ended(&self, app: &AppName, graph: &GraphName, status: RunStatus) {
        self.active.get_or_create(&graph_labels(app, graph)).dec();
        let GraphLabels { app, graph } = graph_labels(app, graph);
        let status = status_word(status).to_owned();
        self.runs.get_or_create(&RunLabels { app, graph, status }).inc();
    }

    fn build_registry(&self) -> Registry {
        let mut all = Registry::with_prefix("wattle");
        let nodes = "Wall time of successful tasks";
        let failures = "Host calls that failed, by function and code";
        all.register("runs", "Runs that ended or were interrupted, by status", self.runs.clone());
        all.register("active_runs", "Runs in progress", self.active.clone());
        all.register("node_seconds", nodes, self.nodes.clone());
        let attempts = self.attempts_failed.clone();
        all.register("attempts_failed", "Failed attempts of tasks", attempts);
        let models = self.model_calls.clone();
        all.register("model_calls", "Model calls by route, model and outcome", models);
        all.register("model_call_seconds", "Time of model calls", self.model_seconds.clone());
        all.register("model_tokens", "Tokens read and written by models", self.tokens.clone());
        all.register("tool_calls", "Tool calls by tool and outcome", self.tool_calls.clone());
        all.register("host_call_failures", failures, self.call_failures.clone());
        self.export.register(all.sub_registry_with_prefix("telemetry"));
        all
    }
}

impl ExportMetrics {
    fn register(&self, own: &mut Registry) {
        let dropped = "Spans that the queue or the service did not accept";
        own.register("waiting_runs", "Runs in the export queue", self.waiting_runs.clone());
        own.register("waiting_spans", "Spans in the export queue", self.waiting_spans.clone());
        own.register("dropped_runs", "Runs dropped from telemetry", self.dropped_runs.clone());
        own.register("dropped_spans", dropped, self.dropped_spans.clone());
        own.register("sent_spans", "Spans that the service accepted", self.sent_spans.clone());
        own.register("failed_requests", "Failed export requests", self.failed_requests.clone());
    }
}

fn graph_labels(app: &AppName, graph: &GraphName) -> GraphLabels {
    GraphLabels { app: app.to_string(), graph: graph.to_string() }
}
