//! One provider: its HTTP client, its key and its concurrency limit.

mod anthropic;
mod arguments;
mod error;
mod exchange;
mod gemini;
mod idle;
mod image;
mod key;
mod names;
mod openai;
mod provider_state;
mod schema;
mod sse;
mod think_tags;
mod throttle;
mod turn_response;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use reqwest::dns::Resolve;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Url};
use tokio::sync::Semaphore;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{CompletionRequest, ResponseSchema};
use wattle_run::caller_id::CallerId;
use wattle_run::credentials::{self, Credentials};

use crate::chat::Chat;
use crate::config::{ProviderConfig, ProviderKind, RouteConfig, StructuredMode};
use crate::error::ConfigError;
use crate::extra::{self, Extra};
use crate::provider::error::ProviderError;
pub(crate) use crate::provider::error::WITHHELD;
pub(crate) use crate::provider::image::{ImageBytes, ImageSpec};
pub(crate) use crate::provider::key::ApiKey;
use crate::provider::provider_state::StateOwner;
use crate::provider::schema::SchemaAdapter;
pub use crate::provider::schema::schema_changes;
pub(crate) use crate::provider::turn_response::TurnResponse;
use crate::retry::Backoff;
use crate::sink::CallSink;

/// Maximum concurrent requests to one provider, which protects the provider and bounds memory.
/// Further requests wait.
const MAX_CONCURRENCY: usize = 32;

/// Timeout of a connection attempt. A provider that takes longer is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The `user-agent` of all requests.
const USER_AGENT: &str = concat!("wattle/", env!("CARGO_PKG_VERSION"));

/// A provider with its HTTP client.
pub(crate) struct Provider {
    name: String,
    kind: ProviderKind,
    structured: StructuredMode,
    stream: bool,
    extra: Extra,
    base_url: String,
    key: ApiKey,
    headers: HeaderMap,
    /// Keys and header secrets, which no message shows.
    credentials: Credentials,
    /// Why the headers cannot be sent; `None` if they can.
    header_error: Option<String>,
    http: reqwest::Client,
    schemas: SchemaAdapter,
    concurrency: Semaphore,
    backoff: Backoff,
}

/// Parameters of one attempt: the model, its timeout and retries, and the setting that messages
/// name.
#[derive(Clone, Copy)]
pub(crate) struct AttemptSpec<'a> {
    pub(crate) route: &'a str,
    /// The model that is called.
    pub(crate) model: &'a str,
    /// The model as the route names it.
    pub(crate) configured_model: &'a str,
    /// The setting that names the model, for messages.
    pub(crate) setting_text: &'a str,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) requests: &'a RequestCount,
    /// Whom the work on the response counts for.
    pub(crate) owner: CallerId,
}

/// The number of HTTP requests of one attempt.
#[derive(Debug, Default)]
pub(crate) struct RequestCount(AtomicU32);

impl RequestCount {
    /// Returns the number of requests so far.
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The request of one turn.
pub(crate) struct TurnRequest<'a> {
    /// The conversation with its tools, and with the repair turn if there is one.
    pub(crate) chat: &'a Chat<'a>,
    /// The request of the guest.
    pub(crate) request: &'a CompletionRequest,
    /// The route. Its settings apply where the request sets none.
    pub(crate) route: &'a RouteConfig,
    /// The format of the response.
    pub(crate) format: ResponseFormat<'a>,
    /// Provider-specific body fields that the operator configured.
    pub(crate) extra: &'a Extra,
}

/// The response format that a provider is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResponseFormat<'a> {
    /// Text without constraints.
    Text,
    /// Any JSON object.
    JsonObject,
    /// A JSON object that matches this schema.
    Schema(&'a ResponseSchema),
}

/// Builds an HTTP client. `resolver` replaces the DNS resolver of the system.
pub(crate) fn http_client(resolver: Option<Arc<dyn Resolve>>) -> Result<reqwest::Client, String> {
    let mut client = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect to another host would send it the keys in custom headers.
        .redirect(Policy::none())
        .no_proxy()
        .tcp_nodelay(true);
    if let Some(resolver) = resolver {
        client = client.dns_resolver(resolver);
    }
    client.build().map_err(|error| error.to_string())
}

impl Provider {
    /// Creates a provider from its settings. A missing key is no error here;
    /// [`Provider::unusable_reason`] reports it.
    pub(crate) fn new(
        name: &str,
        config: &ProviderConfig,
        key: ApiKey,
        http: reqwest::Client,
    ) -> Result<Self, ConfigError> {
        let default = config.kind.default_base_url();
        if let Some(reason) = extra::invalid_reason(config.kind, &config.extra) {
            return Err(ConfigError::ProviderExtra { provider: name.to_owned(), reason });
        }
        let credentials = Credentials::new(key.expose());
        Ok(Self {
            name: name.to_owned(),
            kind: config.kind,
            structured: config.structured,
            stream: config.stream,
            extra: config.extra.clone(),
            base_url: base_url(name, config.base_url.as_deref().unwrap_or(default))?,
            key,
            headers: HeaderMap::new(),
            credentials,
            header_error: None,
            http,
            schemas: SchemaAdapter::new(name, config.kind),
            concurrency: Semaphore::new(MAX_CONCURRENCY),
            backoff: Backoff::default(),
        })
    }

    /// Adds headers to all requests. An error marks the provider as unusable.
    pub(crate) fn with_headers(mut self, headers: Result<HeaderMap, String>) -> Self {
        match headers {
            Ok(headers) => {
                let values = headers.values().filter_map(|value| value.to_str().ok());
                let secrets = values.flat_map(credentials::header_secrets);
                self.credentials =
                    Credentials::new(self.key().map(str::to_owned).into_iter().chain(secrets));
                self.headers = headers;
            }
            Err(reason) => self.header_error = Some(reason),
        }
        self
    }

    pub(crate) fn kind(&self) -> ProviderKind {
        self.kind
    }

    pub(crate) fn structured(&self) -> StructuredMode {
        self.structured
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn extra(&self) -> &Extra {
        &self.extra
    }

    /// Returns why the provider cannot be used, and the correction; `None` if it can be used.
    pub(crate) fn unusable_reason(&self) -> Option<String> {
        if let Some(reason) = &self.header_error {
            return Some(format!(
                "the model provider `{}` cannot be used: {reason}; see its `headers`",
                self.name
            ));
        }
        match &self.key {
            ApiKey::Missing { variable } => Some(format!(
                "the model provider `{}` has no key; set the environment variable `{variable}`",
                self.name
            )),
            ApiKey::None | ApiKey::Variable { .. } | ApiKey::Tenant(_) => None,
        }
    }

    /// Sends one turn and retries transient errors. Does not retry once a delta was emitted.
    pub(crate) async fn turn(
        &self,
        spec: AttemptSpec<'_>,
        ask: &TurnRequest<'_>,
        sink: &CallSink<'_>,
    ) -> Result<TurnResponse, Failure> {
        self.ensure_usable()?;
        let mut tried = 0;
        loop {
            match self.try_once(spec, ask, sink).await {
                Ok(reply) => return Ok(reply),
                Err(error) if sink.has_emitted() => return Err(error.failure),
                Err(error) => self.wait_before_retry(spec, error, tried).await?,
            }
            tried += 1;
        }
    }

    /// Generates images, at least one. The provider may return fewer than requested.
    pub(crate) async fn generate_images(
        &self,
        spec: AttemptSpec<'_>,
        image_spec: ImageSpec<'_>,
    ) -> Result<Vec<ImageBytes>, Failure> {
        self.ensure_usable()?;
        image::generate(self, spec, image_spec).await
    }

    fn ensure_usable(&self) -> Result<(), Failure> {
        match self.unusable_reason() {
            Some(problem) => Err(Failure::new(code::UNAVAILABLE, problem)),
            None => Ok(()),
        }
    }

    /// Waits before the next try, after `tried` retries. Returns the failure if there is no further
    /// try.
    async fn wait_before_retry(
        &self,
        spec: AttemptSpec<'_>,
        error: ProviderError,
        tried: u32,
    ) -> Result<(), Failure> {
        let Some(pause) = self.backoff.delay(error.retry, tried, spec.retries) else {
            return Err(error.failure);
        };
        tracing::debug!(
            provider = %self.name, model = %spec.model, code = %error.failure.code,
            pause_ms = pause.as_millis() as u64, "retrying the model call"
        );
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Sends one request. The timeout starts after the wait for a free slot.
    async fn try_once(
        &self,
        spec: AttemptSpec<'_>,
        ask: &TurnRequest<'_>,
        sink: &CallSink<'_>,
    ) -> Result<TurnResponse, ProviderError> {
        let _place = self.concurrency.acquire().await;
        spec.requests.increment();
        let (owner, streams) = (self.state_owner(spec), self.wants_stream(sink));
        let request = match self.kind {
            ProviderKind::Openai => openai::request(self, ask, &owner, spec.model, streams),
            ProviderKind::Gemini => gemini::request(self, ask, &owner, spec.model, streams),
            ProviderKind::Anthropic => anthropic::request(self, ask, &owner, spec.model, streams),
        };
        exchange::send(self, spec, sink, request).await
    }

    /// Returns the owner of the provider state in a response to this attempt.
    fn state_owner(&self, spec: AttemptSpec<'_>) -> StateOwner {
        StateOwner::new(&self.name, spec.model)
    }

    /// Reads a response with a success status.
    pub(crate) async fn read_response(
        &self,
        spec: AttemptSpec<'_>,
        sink: &CallSink<'_>,
        response: reqwest::Response,
    ) -> Result<TurnResponse, ProviderError> {
        let owner = self.state_owner(spec);
        match self.kind {
            ProviderKind::Openai => {
                let builder = openai::OpenAiResponse::new(owner, spec.model, sink);
                exchange::read(self, spec, sink, response, builder).await
            }
            ProviderKind::Gemini => {
                let builder = gemini::GeminiResponse::new(owner, spec.model, sink);
                exchange::read(self, spec, sink, response, builder).await
            }
            ProviderKind::Anthropic => {
                let builder = anthropic::AnthropicResponse::new(owner, spec.model, sink);
                exchange::read(self, spec, sink, response, builder).await
            }
        }
    }

    /// Returns whether the provider is asked for a stream.
    fn wants_stream(&self, sink: &CallSink<'_>) -> bool {
        sink.stream_override().unwrap_or(self.stream)
    }

    fn schemas(&self) -> &SchemaAdapter {
        &self.schemas
    }

    /// Builds a request to a path below the base URL, with the key in the header of the kind.
    fn post(&self, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.base_url);
        let request = self.http.post(url).headers(self.headers.clone());
        match (self.key(), self.kind) {
            (None, _) => request,
            (Some(key), ProviderKind::Openai) => request.bearer_auth(key),
            (Some(key), ProviderKind::Gemini) => request.header("x-goog-api-key", key),
            (Some(key), ProviderKind::Anthropic) => request.header("x-api-key", key),
        }
    }

    fn key(&self) -> Option<&str> {
        self.key.expose()
    }

    /// Masks keys and header secrets in a text, in case a provider or a library repeats them.
    fn redact(&self, text: &str) -> String {
        self.credentials.redact(text)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
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

/// Providers by name.
pub(crate) type Providers = HashMap<String, Arc<Provider>>;
