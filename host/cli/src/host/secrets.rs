//! Secrets that the host itself uses.

use crate::config::{Config, Secret};
use crate::env::ReadEnv;

/// Returns the value of a secret, or a message with the reason why it is missing.
pub(crate) fn find_secret(config: &Config, env: &ReadEnv, name: &str) -> Result<String, String> {
    let source = config.secrets.get(name).ok_or_else(|| {
        format!("there is no secret `{name}`; add it under `[secrets]` in wattle.toml")
    })?;
    match source.value(&config.base, &**env) {
        Ok(Secret::Value(value)) => Ok(value),
        Ok(Secret::Token(_)) => Err(format!(
            "the secret `{name}` is a managed token, which only requests of guests can use; name a \
             secret with a value instead"
        )),
        Err(reason) => Err(format!("the secret `{name}` is missing: {reason}")),
    }
}
