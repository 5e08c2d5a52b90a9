//! Runs the reducers of plugins.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::id::ChannelName;
use wattle_graph::step::PluginReduction;

use crate::app::App;
use crate::ports::sandbox::GuestError;

/// Combines the writes of channels whose reducers are exported by plugins.
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
        let reduced_value = code.reduce(&app.name, &reducer, current, updates, &grants).await;
        let value = reduced_value.map_err(|ended| {
            let failure = match ended {
                GuestError::Failure(f)
                | GuestError::Trap(f)
                | GuestError::Limit(f)
                | GuestError::Host(f) => f,
                GuestError::Unwound(_) => Failure::internal("a reducer must not call an import"),
            };
            Failure {
                message: format!("reducer `{reducer}` of channel `{channel}`: {}", failure.message),
                ..failure
            }
        })?;
        reduced.insert(channel, value);
    }
    Ok(reduced)
}
