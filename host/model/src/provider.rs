//! One provider: its service, its concurrency limit and its retries.

mod anthropic;
mod arguments;
mod attempt;
mod body_format;
mod compression;
mod error;
mod event_data;
mod exchange;
mod finish_reason;
mod gemini;
mod idle;
mod image;
mod key;
mod left_out;
mod model_family;
mod names;
mod openai;
mod optional_fields;
mod provider_state;
mod rejected_schemas;
mod rejections;
mod schema;
mod service;
mod sse;
mod think_tags;
mod thought_signature;
mod throttle;
mod token_counts;
mod turn_response;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::Resolve;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{CompletionRequest, ResponseSchema};
use wattle_run::places::Places;

use crate::chat::Chat;
use crate::config::{ProviderConfig, ProviderKind, RouteConfig, StructuredMode};
use crate::error::ConfigError;
use crate::extra::{self, Extra};
pub(crate) use crate::provider::attempt::{AttemptSpec, CallScope, RequestCount};
use crate::provider::error::ProviderError;
pub(crate) use crate::provider::error::{WITHHELD, rejection_words};
pub(crate) use crate::provider::image::{ImageBytes, ImageSpec};
pub(crate) use crate::provider::key::ApiKey;
use crate::provider::left_out::LeftOutLog;
use crate::provider::optional_fields::{FieldRejections, TurnFields};
use crate::provider::provider_state::StateOwner;
use crate::provider::rejected_schemas::RejectedSchemas;
pub use crate::provider::schema::schema_changes;
use crate::provider::schema::{SchemaAdapter, closed};
use crate::provider::service::Service;
pub(crate) use crate::provider::service::base_url;
pub(crate) use crate::provider::turn_response::TurnResponse;
use crate::retry::Backoff;
use crate::sink::CallSink;

/// Maximum concurrent requests to one provider, which protects the provider and bounds the memory
/// of the host. Callers share the places of these requests, and further requests wait.
const MAX_CONCURRENCY: usize = 64;

/// Timeout of a connection attempt. A provider that needs more time to accept a connection counts
/// as down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The `user-agent` of all requests.
const USER_AGENT: &str = concat!("wattle/", env!("CARGO_PKG_VERSION"));

/// A provider with its service.
pub(crate) struct Provider {
    service: Service,
    structured: StructuredMode,
    rejected_schemas: RejectedSchemas,
    stream: bool,
    extra: Extra,
    /// The reason why the configured headers cannot be sent; `None` if they can.
    header_error: Option<String>,
    schemas: SchemaAdapter,
    left_out: LeftOutLog,
    rejected_fields: FieldRejections,
    /// Places for requests.
    places: Places,
    backoff: Backoff,
}

/// The request of one turn.
pub(crate) struct TurnRequest<'a> {
    /// The conversation with its tools, and with the repair turn if there is one.
    pub(crate) chat: &'a Chat<'a>,
    /// The request of the guest.
    pub(crate) request: &'a CompletionRequest,
    /// The route. A setting of the route applies if the request does not have the setting.
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
        // Following a redirect to another host would send that host the keys in custom headers.
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
        if let Some(reason) = extra::invalid_reason(config.kind, &config.extra) {
            return Err(ConfigError::ProviderExtra { provider: name.to_owned(), reason });
        }
        Ok(Self {
            service: Service::new(name, config, key, http)?,
            structured: config.structured,
            rejected_schemas: RejectedSchemas::default(),
            stream: config.stream,
            extra: config.extra.clone(),
            header_error: None,
            schemas: SchemaAdapter::new(name, config.kind),
            left_out: LeftOutLog::new(name),
            rejected_fields: FieldRejections::default(),
            places: Places::new(MAX_CONCURRENCY),
            backoff: Backoff::default(),
        })
    }

    /// Adds headers to all requests. An error marks the provider as unusable.
    pub(crate) fn with_headers(mut self, headers: Result<HeaderMap, String>) -> Self {
        match headers {
            Ok(headers) => self.service.set_headers(headers),
            Err(reason) => self.header_error = Some(reason),
        }
        self
    }

    pub(crate) fn kind(&self) -> ProviderKind {
        self.service.kind
    }

    /// Returns the mode in which a call begins to request output that matches a schema: the
    /// configured mode, or a weaker one for a schema that the provider has rejected, or that
    /// Anthropic rejects.
    pub(crate) fn structured_mode(
        &self,
        spec: AttemptSpec<'_>,
        schema: &ResponseSchema,
    ) -> StructuredMode {
        let accepted = self.rejected_schemas.accepted_mode(spec.route, spec.model, schema);
        if let Some(mode) = accepted {
            return mode;
        }
        let is_rejected = || {
            self.kind() == ProviderKind::Anthropic && closed::to_closed(&schema.schema).is_none()
        };
        match self.structured {
            StructuredMode::Schema if is_rejected() => StructuredMode::Prompt,
            mode => mode,
        }
    }

    /// Remembers the mode in which the provider accepted a call after it had rejected the schema in
    /// a stronger mode.
    pub(crate) fn remember_mode(
        &self,
        spec: AttemptSpec<'_>,
        schema: &ResponseSchema,
        mode: StructuredMode,
    ) {
        if self.rejected_schemas.remember(spec.route, spec.model, schema, mode) {
            tracing::info!(
                provider = %self.service.name, route = %spec.route, model = %spec.model,
                schema = %schema.name, ?mode,
                "the provider rejects the response schema, so calls with it begin in a weaker mode"
            );
        }
    }

    pub(crate) fn extra(&self) -> &Extra {
        &self.extra
    }

    /// Returns why the provider cannot be used, and the correction; `None` if it can be used.
    pub(crate) fn unusable_reason(&self) -> Option<String> {
        if let Some(reason) = &self.header_error {
            return Some(format!(
                "the model provider `{}` cannot be used: {reason}; see its `headers`",
                self.service.name
            ));
        }
        match &self.service.key {
            ApiKey::Missing { variable } => Some(format!(
                "the model provider `{}` has no key; set the environment variable `{variable}`",
                self.service.name
            )),
            ApiKey::None | ApiKey::Variable { .. } | ApiKey::Tenant(_) => None,
        }
    }

    /// Returns one sentence for each optional field of requests to a model that its service rejects.
    pub(crate) fn rejection_notes(&self, model: &str) -> Vec<String> {
        self.rejected_fields.notes(model)
    }

    /// Sends one turn and retries transient errors. Does not retry once a delta was emitted. A
    /// request with an optional field that the service rejects is sent without the field.
    pub(crate) async fn turn(
        &self,
        spec: AttemptSpec<'_>,
        ask: &TurnRequest<'_>,
        sink: &CallSink<'_>,
    ) -> Result<TurnResponse, Failure> {
        self.ensure_usable()?;
        let mut tried = 0;
        let known = self.rejected_fields.of_model(spec.model);
        let mut optional = TurnFields::new(known);
        loop {
            let error = match self.try_once(spec, ask, sink, &mut optional).await {
                Ok(reply) => {
                    let rejected = optional.rejected();
                    if rejected != known {
                        self.rejected_fields.remember(&self.service.name, spec.model, rejected);
                    }
                    return Ok(reply);
                }
                Err(error) if sink.has_emitted() => return Err(error.failure),
                Err(error) => error,
            };
            if !optional.reject(&error.failure, spec.model) {
                self.wait_before_retry(spec, error, tried).await?;
                tried += 1;
            }
        }
    }

    /// Generates at least one image. The provider may return fewer than requested.
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

    /// Waits before the next try, after `tried` retries. Returns the failure if there is no next
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
            provider = %self.service.name, model = %spec.model, code = %error.failure.code,
            pause_ms = pause.as_millis() as u64, "retrying the model call"
        );
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Sends one request without the optional fields that the service rejects. The timeout starts
    /// after the wait for a place.
    async fn try_once(
        &self,
        spec: AttemptSpec<'_>,
        ask: &TurnRequest<'_>,
        sink: &CallSink<'_>,
        optional: &mut TurnFields,
    ) -> Result<TurnResponse, ProviderError> {
        let _place = self.places.take(spec.owner()).await;
        spec.requests.increment();
        let (owner, streams) = (self.state_owner(spec), self.wants_stream(sink));
        let request = match self.service.kind {
            ProviderKind::Openai => {
                openai::request(self, ask, &owner, spec.model, streams, optional)
            }
            ProviderKind::Gemini => gemini::request(self, ask, &owner, spec.model, streams),
            ProviderKind::Anthropic => {
                anthropic::request(self, ask, &owner, spec.model, streams, optional)
            }
        };
        exchange::send(self, spec, sink, request).await
    }

    /// Returns the owner of the provider state in a response to this attempt.
    fn state_owner(&self, spec: AttemptSpec<'_>) -> StateOwner {
        StateOwner::new(&self.service.name, spec.model)
    }

    /// Reads a response with a success status.
    pub(crate) async fn read_response(
        &self,
        spec: AttemptSpec<'_>,
        sink: &CallSink<'_>,
        response: reqwest::Response,
    ) -> Result<TurnResponse, ProviderError> {
        let (owner, log) = (self.state_owner(spec), &self.left_out);
        match self.service.kind {
            ProviderKind::Openai => {
                let builder = openai::OpenAiResponse::new(owner, spec.model, sink, log);
                exchange::read(&self.service, log, spec, sink, response, builder).await
            }
            ProviderKind::Gemini => {
                let builder = gemini::GeminiResponse::new(owner, spec.model, sink);
                exchange::read(&self.service, log, spec, sink, response, builder).await
            }
            ProviderKind::Anthropic => {
                let builder = anthropic::AnthropicResponse::new(owner, spec.model, sink);
                exchange::read(&self.service, log, spec, sink, response, builder).await
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
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.service.name)
            .field("kind", &self.service.kind)
            .field("base_url", &self.service.base_url)
            .finish_non_exhaustive()
    }
}

/// Providers by name.
pub(crate) type Providers = HashMap<String, Arc<Provider>>;
