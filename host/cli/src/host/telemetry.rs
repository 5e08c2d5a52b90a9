//! Opens metrics and traces.

use std::sync::Arc;

use wattle_run::ports::{Model, Store};
use wattle_telemetry::Telemetry;

use crate::config::Config;
use crate::env::ReadEnv;
use crate::error::Error;
use crate::host::secrets::find_secret;

pub(super) fn open_telemetry(
    config: &Config,
    env: &ReadEnv,
    store: &Arc<dyn Store>,
    model: &Arc<dyn Model>,
    warnings: &mut Vec<String>,
) -> Result<Arc<Telemetry>, Error> {
    let secret = |name: &str| find_secret(config, env, name);
    let settings = config.telemetry.settings(&secret, &**env, warnings);
    Telemetry::start(&settings, store.clone(), model.clone())
        .map(Arc::new)
        .map_err(|error| Error::Setup { what: "telemetry", message: error.to_string() })
}
