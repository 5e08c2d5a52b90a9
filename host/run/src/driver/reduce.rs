//! Runs the reducers of plugins.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ChannelName;
use wattle_graph::step::PluginReduction;

use crate::app::App;
use crate::ports::sandbox::GuestError;

/// Combines the writes of channels whose reducers are exported by plugins. The wall time of each
/// reducer is limited like that of any call of its plugin. Nothing else ends a reducer that waits:
/// a reducer has no gate, and a superstep is also applied after a cancel.
pub(crate) async fn reduce(
    app: &App,
    reductions: Vec<PluginReduction>,
) -> Result<BTreeMap<ChannelName, Value>, Failure> {
    let mut reduced = BTreeMap::new();
    for PluginReduction { channel, plugin, reducer, current, updates } in reductions {
        let Some(code) = app.plugins.get(&plugin) else {
            return Err(Failure::internal(format!("plugin `{plugin}` is not loaded")));
        };
        let grants = app.grants_of(&plugin);
        let allowed_ms = grants.limits.node_timeout_ms;
        let work = code.reduce(&app.name, &reducer, current, updates, &grants);
        let within = async {
            let ended = tokio::time::timeout(Duration::from_millis(allowed_ms), work).await;
            ended.unwrap_or_else(|_elapsed| {
                let raise = grants.raise_limit(&app.name, &plugin, "call_deadline");
                let failure = timed_out(allowed_ms, &raise);
                Err(GuestError::Failure(failure))
            })
        };
        let reduced_value = app.count(&plugin, within).await.map_err(into_failure);
        let value = reduced_value.map_err(|failure| Failure {
            message: format!("reducer `{reducer}` of channel `{channel}`: {}", failure.message),
            ..failure
        })?;
        reduced.insert(channel, value);
    }
    Ok(reduced)
}

fn into_failure(ended: GuestError) -> Failure {
    match ended {
        GuestError::Failure(failure)
        | GuestError::Trap(failure)
        | GuestError::Limit(failure)
        | GuestError::Host(failure) => failure,
        GuestError::Unwound(_) => Failure::internal("a reducer must not call an import"),
    }
}

/// Returns the failure of a reducer that exceeded its wall time. `raise` says how to raise the
/// limit.
fn timed_out(allowed_ms: u64, raise: &str) -> Failure {
    let message = format!(
        "took longer than {allowed_ms} ms; a reducer computes and waits for nothing, so correct the \
         plugin, or {raise}"
    );
    let details = json!({ "limit": "timeout", "allowed_ms": allowed_ms });
    Failure::new(code::TIMEOUT, message).retryable().with_details(details)
}
