//! Cache of task outcomes.
//!
//! An entry is a document in the long-term memory, in the scope of the host. An entry therefore
//! outlives the host process, can be cleared by app, graph and node, and cannot be forged by a
//! guest. A cache that cannot be read or written does not fail the run.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_graph::definition::SubgraphState;
use wattle_graph::event::{EventKind, Log, Send, TaskFinished, Write};
use wattle_graph::expr::expression::Variables;
use wattle_graph::failure::Failure;
use wattle_graph::graph::{CachePolicy, Node, NodeKind};
use wattle_graph::id::{AppName, Digest, GraphName, NodeName};
use wattle_graph::json_text::JsonWithText;
use wattle_graph::plan::Task;

use crate::ports::memory::{MemoryScope, PutItem};
use crate::task::context::{GraphContext, StepContext, handled_failure};
use crate::task::outcome::check_in_turn;

/// Root namespace of the cache.
const ROOT_NAMESPACE: [&str; 2] = ["wattle", "cache"];

/// Returns the namespace of the entries of an app, of one of its graphs, or of one of its nodes.
pub(crate) fn namespace(
    app: &AppName,
    graph: Option<&GraphName>,
    node: Option<&NodeName>,
) -> Vec<String> {
    let graph = graph.map(ToString::to_string);
    let node = node.filter(|_| graph.is_some()).map(ToString::to_string);
    ROOT_NAMESPACE
        .map(str::to_owned)
        .into_iter()
        .chain([app.to_string()])
        .chain(graph)
        .chain(node)
        .collect()
}

/// The cache entry of one task.
pub(super) struct CacheEntry {
    scope: MemoryScope,
    namespace: Vec<String>,
    key: String,
    ttl_ms: Option<u64>,
}

/// A cached outcome.
#[derive(Serialize, Deserialize)]
struct CachedOutcome {
    writes: Vec<Write>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    goto: Option<Vec<NodeName>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sends: Vec<Send>,
}

impl CacheEntry {
    /// Returns the entry of a task whose node has a cache. A subgraph with `state = "own"` has no
    /// entry, because its outcome depends on more than its input. An error handler has no entry
    /// either.
    pub(super) fn of(context: &StepContext, task: &Task, node: &Node) -> Option<Self> {
        let cache = node.cache.as_ref().filter(|_| handled_failure(context, task).is_none())?;
        if matches!(node.body, NodeKind::Graph { state: SubgraphState::Own, .. }) {
            return None;
        }
        match key(context, task, node, cache) {
            Ok(key) => Some(Self {
                scope: MemoryScope::Host(context.record.tenant.clone()),
                namespace: namespace(
                    &context.app.name,
                    Some(&context.graph_version.graph.name),
                    Some(&node.name),
                ),
                key,
                ttl_ms: cache.ttl_ms,
            }),
            Err(message) => {
                warn(context, task, &format!("cannot compute the cache key: {message}"));
                None
            }
        }
    }

    /// Returns the cached outcome of an equal task as an outcome of this task. Returns `None` if
    /// the cache has none that is valid in this graph.
    pub(super) async fn find(&self, context: &StepContext, task: &Task) -> Option<TaskFinished> {
        let started = Instant::now();
        let (memory, now_ms) = (&context.ports.memory, context.ports.clock.now_ms());
        let item = match memory.get(&self.scope, &self.namespace, &self.key, now_ms).await {
            Ok(item) => item?,
            Err(failure) => {
                warn(context, task, &format!("cannot read the cache: {failure}"));
                return None;
            }
        };
        let CachedOutcome { writes, goto, sends } = serde_json::from_value(item.value).ok()?;
        // The graph may have changed since, even if the node's code did not.
        let graph = &context.graph_version.graph;
        let (caller, cancel, goto_nodes) = (context.caller, &context.cancel, goto.as_deref());
        let checked =
            check_in_turn(caller, cancel, graph, &task.node, &writes, goto_nodes, &sends).await;
        checked?.ok()?;
        Some(TaskFinished {
            task: task.id.clone(),
            node: task.node.clone(),
            index: task.index,
            base: context.base,
            writes,
            goto,
            sends,
            for_parent: false,
            child: None,
            cached: true,
            duration_us: started.elapsed().as_micros() as u64,
        })
    }

    /// Stores the outcome of the task.
    pub(super) async fn store(self, context: &GraphContext, task: &Task, finished: &TaskFinished) {
        if finished.for_parent {
            return;
        }
        let TaskFinished { writes, goto, sends, .. } = finished.clone();
        if let Err(failure) = self.put(context, CachedOutcome { writes, goto, sends }).await {
            warn(context, task, &format!("cannot write the cache: {failure}"));
        }
    }

    async fn put(self, context: &GraphContext, kept: CachedOutcome) -> Result<(), Failure> {
        let Self { scope, namespace, key, ttl_ms } = self;
        let item = PutItem { namespace, key, value: json!(kept), ttl_ms, refresh_on_read: false };
        item.check()?;
        let app = &context.app.name;
        let documents = (scope, self::namespace(app, None, None));
        context.quotas.put_cached(&context.ports, app, documents, item).await
    }
}

/// Returns the key, which is equal for equal tasks. The key depends on code and configuration, and
/// on the value of the author's key expression or, without an expression, the whole input.
fn key(
    context: &StepContext,
    task: &Task,
    node: &Node,
    cache: &CachePolicy,
) -> Result<String, String> {
    let code = match &node.body {
        NodeKind::Plugin { plugin, export } => {
            let digest = context.app.plugins.get(plugin).map(|plugin| plugin.info().digest);
            json!([digest, export])
        }
        NodeKind::Graph { graph, .. } => json!([context.graph_version.version, graph]),
    };
    let input = context.input_of(task);
    match &cache.key {
        None => digest(&code, &node.config, false, &input),
        Some(formula) => {
            let input = input.to_value();
            let run: &Value = &context.run_context;
            let key = formula.eval(&Variables::from([("input", &input), ("context", run)]))?;
            digest(&code, &node.config, true, &key)
        }
    }
}

/// Returns the key of a cache entry: the digest of the arguments, serialized as a JSON list. `key`
/// is the value of the key expression of the cache policy, or the task's input if there is no
/// expression.
fn digest(
    code: &Value,
    config: &JsonWithText,
    has_expression: bool,
    key: &impl Serialize,
) -> Result<String, String> {
    let parts = serde_json::to_vec(&(code, config, has_expression, key));
    Ok(Digest::of(&parts.map_err(|error| error.to_string())?).to_hex())
}

fn warn(context: &GraphContext, task: &Task, message: &str) {
    context.log.push(EventKind::Log(Log {
        task: task.id.clone(),
        node: task.node.clone(),
        level: "warn".to_owned(),
        message: message.to_owned(),
        fields: Value::Null,
    }));
}

#[cfg(test)]
mod tests {
    use wattle_graph::checkpoint::ChannelValue;
    use wattle_graph::id::ChannelName;
    use wattle_graph::plan::TaskInput;

    use super::*;

    /// The key of an entry must not change, because an update of the host would then lose the
    /// entries.
    #[test]
    fn cache_key_is_the_digest_of_its_parts_as_a_json_list() {
        let (code, config) = (json!(["digest", "node"]), json!({ "route": "chat", "a": 1.0 }));
        let values = [("b", json!({ "z": 1, "a": "\n" })), ("a", json!([null, 2.5]))];
        let values = values
            .map(|(name, value)| (ChannelName::new(name).unwrap(), ChannelValue::from(value)));
        let input = TaskInput::State { values: values.into(), reads: None };
        let list = json!([code, config, false, { "a": [null, 2.5], "b": { "z": 1, "a": "\n" } }]);
        let config = JsonWithText::from(config);
        let expected = Digest::of(list.to_string().as_bytes()).to_hex();
        assert_eq!(digest(&code, &config, false, &input), Ok(expected));
        let expected = Digest::of(json!([code, config, true, "x"]).to_string().as_bytes()).to_hex();
        assert_eq!(digest(&code, &config, true, &json!("x")), Ok(expected));
    }
}
