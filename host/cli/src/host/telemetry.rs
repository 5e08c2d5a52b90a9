//! Opens metrics, traces and statistics.

use std::sync::Arc;

use wattle_run::ports::{Clock, Memory, Model, Store};
use wattle_telemetry::{RunStatistics, Telemetry};

use crate::config::Config;
use crate::env::ReadEnv;
use crate::error::Error;
use crate::host::secrets::find_secret;

/// Opens the statistics, which are kept in the long-term memory that all hosts of the store share.
pub(super) fn open_statistics(
    config: &Config,
    memory: &Arc<dyn Memory>,
    clock: &Arc<dyn Clock>,
) -> RunStatistics {
    let model = &config.model;
    let mut prices = model.prices.clone();
    // Statistics contain the model name of the route, even if an alias replaces the model.
    for (name, alias) in &model.aliases {
        if let Some(price) = model.prices.get(&alias.model) {
            prices.entry(name.clone()).or_insert(*price);
        }
    }
    RunStatistics::new(memory.clone(), clock.clone(), prices)
}

pub(super) fn open_telemetry(
    config: &Config,
    env: &ReadEnv,
    store: &Arc<dyn Store>,
    model: &Arc<dyn Model>,
    statistics: &RunStatistics,
    warnings: &mut Vec<String>,
) -> Result<Arc<Telemetry>, Error> {
    let secret = |name: &str| find_secret(config, env, name);
    let settings = config.telemetry.settings(&secret, &**env, warnings);
    Telemetry::start(&settings, store.clone(), model.clone(), Some(statistics.clone()))
        .map(Arc::new)
        .map_err(|error| Error::Setup { what: "telemetry", message: error.to_string() })
}
