//! Sends one export request, with retries.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use secrecy::ExposeSecret as _;
use url::Url;
use wattle_project::spans::Attributes;

use crate::config::OtlpConfig;
use crate::error::ConfigError;
use crate::metrics::ExportMetrics;
use crate::otlp;

/// Header that makes Langfuse show the data immediately instead of minutes later. Other services
/// ignore this header.
const INGESTION_VERSION: (&str, &str) = ("x-langfuse-ingestion-version", "4");

/// Timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of attempts of one request. With the delays between them, the attempts take about
/// two minutes. This is enough for a restart of the service, but not for an outage.
const MAX_ATTEMPTS: u32 = 8;

/// Delay before the second attempt. The delay doubles with each attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);

/// Maximum delay between two attempts, which also bounds the delay of a `retry-after` header.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Sends spans to one service.
#[derive(Debug)]
pub(crate) struct OtlpSender {
    client: Client,
    url: Url,
    headers: HeaderMap,
    metrics: ExportMetrics,
    /// Whether a warning about the current outage was logged.
    has_warned: bool,
}

/// Result of one attempt.
enum SendResult {
    Accepted,
    /// A transient error, with the delay of the `retry-after` header.
    Retry(String, Option<Duration>),
    Rejected(String),
}

impl OtlpSender {
    pub(crate) fn new(config: &OtlpConfig, metrics: ExportMetrics) -> Result<Self, ConfigError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let (name, value) = INGESTION_VERSION;
        headers.insert(name, HeaderValue::from_static(value));
        for (name, value) in &config.headers {
            let problem = || ConfigError::Header { header: name.clone() };
            let header = HeaderName::try_from(name.as_str()).map_err(|_| problem())?;
            let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| problem())?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let client = Client::builder()
            .timeout(TIMEOUT)
            // A redirect must not send keys to another origin.
            .redirect(Policy::none())
            .build()
            .map_err(|error| ConfigError::Client { reason: error.to_string() })?;
        Ok(Self { client, url: config.url.clone(), headers, metrics, has_warned: false })
    }

    /// Sends spans. Returns true if the service accepted them.
    pub(crate) async fn send(&mut self, spans: Vec<Span>) -> bool {
        let body = export_request(spans).encode_to_vec();
        let mut pause = INITIAL_BACKOFF;
        for attempt in 1..=MAX_ATTEMPTS {
            match self.attempt(body.clone()).await {
                SendResult::Accepted => {
                    self.has_warned = false;
                    return true;
                }
                SendResult::Rejected(reason) => {
                    self.metrics.failed_requests.inc();
                    self.warn(&reason);
                    return false;
                }
                SendResult::Retry(reason, wanted) => {
                    self.metrics.failed_requests.inc();
                    self.warn(&reason);
                    if attempt < MAX_ATTEMPTS {
                        tokio::time::sleep(wanted.unwrap_or(pause).min(MAX_BACKOFF)).await;
                        pause *= 2;
                    }
                }
            }
        }
        false
    }

    async fn attempt(&self, body: Vec<u8>) -> SendResult {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let response = match request.body(body).send().await {
            Ok(response) => response,
            Err(error) => return SendResult::Retry(root_cause(&error.without_url()), None),
        };
        let status = response.status();
        let reason = format!("the service responded with status {status}");
        match status {
            status if status.is_success() => SendResult::Accepted,
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let seconds = response.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok());
                let seconds = seconds.and_then(|it| it.parse().ok());
                SendResult::Retry(reason, seconds.map(Duration::from_secs))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => SendResult::Rejected(format!(
                "{reason}; check the keys and `headers` under `[telemetry]`"
            )),
            _ => SendResult::Rejected(reason),
        }
    }

    /// Logs one warning for each outage, so that an outage does not fill the log.
    fn warn(&mut self, reason: &str) {
        if !self.has_warned {
            self.has_warned = true;
            let host = self.url.host_str().unwrap_or_default();
            tracing::warn!(host, "trace export failed, spans may be dropped: {reason}");
        }
    }
}

fn export_request(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let mut attributes = Attributes::default();
    attributes.text("service.name", "wattle");
    attributes.text("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource { attributes: otlp::attributes(attributes), ..Resource::default() };
    let scope = InstrumentationScope {
        name: "wattle".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![spans],
            ..ResourceSpans::default()
        }],
    }
}

/// Returns the innermost cause of an error as text.
fn root_cause(error: &reqwest::Error) -> String {
    let first: &dyn std::error::Error = error;
    let mut cause = first;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
