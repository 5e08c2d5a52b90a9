//! Checks of an export, whose author may be hostile: the nesting of subgraphs, and the limits of
//! its own code.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_graph::id::{Namespace, PluginName};

use super::OperatorPolicy;
use crate::grant::Grants;
use crate::limit::{self, MAX_EXPORT_LIMITS};
use crate::ports::store::StoredBatch;

impl OperatorPolicy {
    /// Returns the grants with limits of at most [`MAX_EXPORT_LIMITS`], since the code that they
    /// bound comes from the same file.
    pub fn bounded_grants(&self) -> BTreeMap<PluginName, Arc<Grants>> {
        let bounded = |grants: &Grants| {
            let limits = grants.limits.min(&MAX_EXPORT_LIMITS);
            Arc::new(Grants { limits, ..grants.clone() })
        };
        self.grants.iter().map(|(plugin, grants)| (plugin.clone(), bounded(grants))).collect()
    }
}

/// Returns why a batch is invalid, if it names a subgraph that is nested deeper than the engine
/// allows.
pub(super) fn nesting_violation(batch: &StoredBatch) -> Option<String> {
    let made = batch.checkpoint.iter().flat_map(|meta| {
        let others = meta.parent_graphs.keys().chain(meta.subgraph_checkpoints.keys());
        std::iter::once(&meta.namespace).chain(others)
    });
    let all = batch.events.iter().map(|event| &event.namespace).chain(made);
    let depth = all.map(Namespace::depth).max().filter(|depth| *depth > limit::GRAPH_DEPTH)?;
    let allowed = limit::GRAPH_DEPTH;
    Some(format!("a subgraph is nested {depth} levels deep, and {allowed} are allowed"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn batch(namespace: &str) -> StoredBatch {
        let made = json!({
            "seq": 1, "at_ms": 0, "run": "r", "namespace": namespace, "type": "checkpointed",
            "checkpoint": 1, "step": 0, "source": "input", "changed": [], "next": []
        });
        let events = vec![serde_json::from_value(made).unwrap()];
        let values = BTreeMap::new();
        StoredBatch { base: None, events, checkpoint: None, values, seal: None }
    }

    #[test]
    fn subgraphs_within_the_depth_limit_are_accepted() {
        let deep = |levels| vec!["node"; levels].join("|");
        assert_eq!(nesting_violation(&batch("")), None);
        assert_eq!(nesting_violation(&batch(&deep(limit::GRAPH_DEPTH))), None);
        let refused = nesting_violation(&batch(&deep(100_000))).unwrap();
        assert!(refused.contains("100000 levels deep"), "{refused}");
    }

    #[test]
    fn limits_of_exported_code_are_capped() {
        let plugin = PluginName::new("asset").unwrap();
        let rules = |limits: serde_json::Value| {
            let rules = json!({ "grants": { "asset": { "limits": limits } }, "settings": {} });
            let rules: OperatorPolicy = serde_json::from_value(rules).unwrap();
            rules.bounded_grants()[&plugin].limits.clone()
        };
        let usual = limit::Limits::default();
        assert_eq!(rules(json!({})), usual);
        assert_eq!(rules(json!({ "cpu_ms": 3_000 })).cpu_ms, 3_000);
        let greedy = json!({
            "memory_bytes": u64::MAX, "cpu_ms": u64::MAX, "node_timeout_ms": u64::MAX,
            "host_calls": u32::MAX, "host_call_bytes": u64::MAX, "output_bytes": u64::MAX,
            "lift_bytes": u64::MAX, "net": { "redirects": u32::MAX }, "sql": { "rows": u64::MAX }
        });
        let net = limit::NetLimits { redirects: MAX_EXPORT_LIMITS.net.redirects, ..usual.net };
        let sql = limit::SqlLimits { rows: MAX_EXPORT_LIMITS.sql.rows, ..usual.sql };
        assert_eq!(rules(greedy), limit::Limits { net, sql, ..MAX_EXPORT_LIMITS });
    }
}
