//! Opens model routes.

use wattle_model::{ConfigError, ModelConfig, Routes};

use crate::config::{Config, expand_secrets};
use crate::env::ReadEnv;
use crate::host::secrets::find_secret;

/// Opens the routes of a `[model]` section. Inserts secrets of the configuration into their
/// headers.
pub(crate) fn open_routes(
    model: ModelConfig,
    config: &Config,
    env: &ReadEnv,
) -> Result<Routes, ConfigError> {
    let secret = |name: &str| find_secret(config, env, name);
    Routes::open(model, &**env, &|text| expand_secrets(text, &secret))
}
