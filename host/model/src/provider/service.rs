//! The service of a provider: its address, and the key and headers of requests.

use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Url};
use wattle_run::credentials::{self, Credentials};

use crate::config::{ProviderConfig, ProviderKind};
use crate::error::ConfigError;
use crate::provider::key::ApiKey;

/// A service with its address, its key and its HTTP client.
pub(super) struct Service {
    /// The name of the provider.
    pub(super) name: String,
    pub(super) kind: ProviderKind,
    pub(super) base_url: String,
    pub(super) key: ApiKey,
    headers: HeaderMap,
    /// Keys and header secrets, which no message shows.
    credentials: Credentials,
    http: reqwest::Client,
}

impl Service {
    /// Creates the service of a provider from the settings of the provider.
    pub(super) fn new(
        name: &str,
        config: &ProviderConfig,
        key: ApiKey,
        http: reqwest::Client,
    ) -> Result<Self, ConfigError> {
        let default = config.kind.default_base_url();
        let credentials = Credentials::new(key.expose());
        Ok(Self {
            name: name.to_owned(),
            kind: config.kind,
            base_url: base_url(name, config.base_url.as_deref().unwrap_or(default))?,
            key,
            headers: HeaderMap::new(),
            credentials,
            http,
        })
    }

    /// Sets the headers of all requests.
    pub(super) fn set_headers(&mut self, headers: HeaderMap) {
        let values = headers.values().filter_map(|value| value.to_str().ok());
        let secrets = values.flat_map(credentials::header_secrets);
        let key = self.key.expose().map(str::to_owned);
        self.credentials = Credentials::new(key.into_iter().chain(secrets));
        self.headers = headers;
    }

    /// Builds a request to a path below the base URL, with the key in the header of the kind.
    pub(super) fn post(&self, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.base_url);
        let request = self.http.post(url).headers(self.headers.clone());
        match (self.key.expose(), self.kind) {
            (None, _) => request,
            (Some(key), ProviderKind::Openai) => request.bearer_auth(key),
            (Some(key), ProviderKind::Gemini) => request.header("x-goog-api-key", key),
            (Some(key), ProviderKind::Anthropic) => request.header("x-api-key", key),
        }
    }

    /// Masks keys and header secrets in a text, in case a provider or a library repeats them.
    pub(super) fn redact(&self, text: &str) -> String {
        self.credentials.redact(text)
    }
}

/// Endpoints that the host appends to a base URL, and that are often copied with it.
const ENDPOINTS: [&str; 4] = ["/chat/completions", "/completions", "/messages", "/models"];

/// Normalizes a base URL, so that paths such as `chat/completions` can be appended.
pub(crate) fn base_url(provider: &str, text: &str) -> Result<String, ConfigError> {
    let refused = |reason: &str| ConfigError::BaseUrl {
        provider: provider.to_owned(),
        url: text.to_owned(),
        reason: reason.to_owned(),
    };
    let mut url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("the scheme is neither https nor http"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Messages show the URL.
        return Err(ConfigError::BaseUrl {
            provider: provider.to_owned(),
            url: url.host_str().unwrap_or_default().to_owned(),
            reason: "it contains a user name or password; use `key_env`".to_owned(),
        });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("it has a query or a fragment"));
    }
    let path = url.path().trim_end_matches('/');
    if let Some(ending) = ENDPOINTS.iter().find(|ending| path.ends_with(**ending)) {
        return Err(refused(&format!(
            "it ends with `{ending}`, which the host appends itself; remove this"
        )));
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url.into())
}
