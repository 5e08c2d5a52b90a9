//! Checks the policies of nodes: retries, timeouts, caches and error handlers.

use crate::check::context::CheckContext;
use crate::check::problem::Problems;
use crate::definition::{CacheDef, GraphDef, HumanDuration, NodeDef, RetryDef, TimeoutDef};
use crate::expr::expression::CelExpression;
use crate::graph::CachePolicy;
use crate::id::NodeName;

/// Variables of the expression for a cache key.
const KEY_VARIABLES: [&str; 2] = ["input", "context"];

/// Returns the error handler of a node. The default error handler of the graph does not apply to
/// the handler node itself.
pub(super) fn on_error<'d>(def: &'d GraphDef, node: &NodeName) -> Option<&'d NodeName> {
    let own = def.nodes.get(node)?.on_error.as_ref();
    own.or_else(|| def.defaults.on_error.as_ref().filter(|handler| *handler != node))
}

/// Compiles a cache policy. Returns `None` for an invalid key, which [`check_cache`] reports.
pub(super) fn cache(def: &CacheDef) -> Option<CachePolicy> {
    let key = def.key.as_ref().map(|text| CelExpression::parse(text, &KEY_VARIABLES));
    Some(CachePolicy { key: key.transpose().ok()?, ttl_ms: def.ttl.map(HumanDuration::as_ms) })
}

/// Checks the default policies of the graph.
pub(super) fn check_defaults(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) {
    let (path, defaults) = (format!("{}.defaults", ctx.path), &ctx.def.defaults);
    check_retries(&path, &defaults.retry, problems);
    check_timeout(&path, defaults.timeout.as_ref(), problems);
    check_cache(&path, defaults.cache.as_ref(), problems);
    if let Some(handler) = &defaults.on_error {
        ctx.require_node(&format!("{path}.on_error"), handler, problems);
    }
}

/// Checks the policies that a node sets.
pub(super) fn check(
    ctx: &CheckContext<'_>,
    path: &str,
    name: &NodeName,
    def: &NodeDef,
    problems: &mut Problems<'_>,
) {
    check_retries(path, &def.retry, problems);
    check_timeout(path, def.timeout.as_ref(), problems);
    check_cache(path, def.cache.as_ref(), problems);
    let Some(handler) = &def.on_error else { return };
    let path = format!("{path}.on_error");
    ctx.require_node(&path, handler, problems);
    if handler == name {
        problems.add(path, "a node cannot handle its own failure");
    } else if has_handler_cycle(ctx.def, name) {
        let message = format!("the error handlers of `{name}` lead back to it");
        problems.add_with_hint(path, message, "remove `on_error` from the last handler");
    }
}

/// Returns true if the chain of error handlers of a node leads back to the node.
fn has_handler_cycle(def: &GraphDef, node: &NodeName) -> bool {
    let mut at = node;
    // A chain with more handlers than the graph has nodes is a cycle that does not contain `node`.
    for _ in 0..def.nodes.len() {
        match on_error(def, at) {
            None => return false,
            Some(next) if next == node => return true,
            Some(next) => at = next,
        }
    }
    false
}

fn check_retries(path: &str, retries: &[RetryDef], problems: &mut Problems<'_>) {
    for (index, retry) in retries.iter().enumerate() {
        let alone = retries.len() == 1;
        let path = if alone { format!("{path}.retry") } else { format!("{path}.retry[{index}]") };
        check_retry(&path, retry, problems);
    }
}

fn check_retry(path: &str, retry: &RetryDef, problems: &mut Problems<'_>) {
    if retry.attempts == Some(0) {
        problems.add_with_hint(path, "`attempts` must be at least 1", "1 means no retry");
    }
    if retry.factor.is_some_and(|factor| !factor.is_finite() || factor < 1.0) {
        problems.add(path, "`factor` must be a number of at least 1");
    }
    if retry.on.as_ref().is_some_and(std::collections::BTreeSet::is_empty) {
        problems.add_with_hint(path, "`on` names no failure code", "leave it out to retry on all");
    }
}

fn check_timeout(path: &str, timeout: Option<&TimeoutDef>, problems: &mut Problems<'_>) {
    let path = format!("{path}.timeout");
    let both = match timeout {
        None => return,
        Some(TimeoutDef::Run(run)) => {
            require_nonzero(&path, Some(*run), problems);
            return;
        }
        Some(TimeoutDef::Detailed(both)) => both,
    };
    require_nonzero(&format!("{path}.run"), both.run, problems);
    require_nonzero(&format!("{path}.idle"), both.idle, problems);
    if let (Some(run), Some(idle)) = (both.run, both.idle)
        && idle.as_ms() > run.as_ms()
    {
        problems.add(format!("{path}.idle"), "cannot be longer than `run`");
    }
}

fn check_cache(path: &str, cache: Option<&CacheDef>, problems: &mut Problems<'_>) {
    let Some(cache) = cache else { return };
    require_nonzero(&format!("{path}.cache.ttl"), cache.ttl, problems);
    let Some(key) = &cache.key else { return };
    if let Err(error) = CelExpression::parse(key, &KEY_VARIABLES) {
        problems.add(format!("{path}.cache.key"), error);
    }
}

fn require_nonzero(path: &str, time: Option<HumanDuration>, problems: &mut Problems<'_>) {
    if time.is_some_and(|time| time.as_ms() == 0) {
        problems.add(path, "must be longer than zero");
    }
}
