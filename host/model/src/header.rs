//! Request headers that the operator configures for a provider, such as those of a gateway.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::config::ProviderConfig;
use crate::error::ConfigError;

/// Headers that the host sets. The operator cannot configure them.
const RESERVED: [&str; 6] =
    ["accept", "anthropic-version", "content-length", "content-type", "host", "transfer-encoding"];

/// Headers that contain the key of a provider.
const KEY_HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

/// Replaces the secret placeholders in the headers of a provider. The inner error names the missing
/// secret.
pub(crate) fn resolve(
    provider: &str,
    config: &ProviderConfig,
    fill: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Result<HeaderMap, String>, ConfigError> {
    let refused = |reason| ConfigError::ProviderHeader { provider: provider.to_owned(), reason };
    let mut headers = HeaderMap::new();
    for (name, text) in &config.headers {
        let header = HeaderName::try_from(name.as_str())
            .map_err(|_| refused(format!("`{name}` is not a header name")))?;
        if RESERVED.contains(&header.as_str()) {
            return Err(refused(format!("`{name}` is set by the host; remove it")));
        }
        if config.key_env.is_some() && KEY_HEADERS.contains(&header.as_str()) {
            return Err(refused(format!(
                "`{name}` and `key_env` both set a key; remove one of them"
            )));
        }
        let value = match fill(text) {
            Ok(value) => value,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| refused(format!("the value of `{name}` cannot be sent in a header")))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(Ok(headers))
}
