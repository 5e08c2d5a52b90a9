//! Servers over streamable HTTP.

mod bounded_client;
mod client;
mod error;
mod events;
mod full_response;
mod redirect;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::ExposeSecret as _;
use tokio_util::sync::CancellationToken;
use url::Url;
use wattle_graph::failure::{Failure, code};
use wattle_run::lookups::{Lookup, SystemResolver};
use wattle_run::service_memory::ServiceMemory;

use crate::calls::Calls;
use crate::config::{AddressPolicy, HttpConfig};
use crate::connect::guarded_resolver::{BlockedAddress, GuardedResolver};
use crate::connect::http::bounded_client::BoundedClient;
use crate::connect::http::client::NormalizingClient;
use crate::error::ConfigError;
use crate::normalize::Normalizer;
use crate::server::MAX_CALLS;

/// Timeout of a connection attempt. A connection to a reachable server takes milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum concurrent requests of a session; further requests wait. Requests for the tool list do
/// not wait for calls.
///
/// Held calls are not among [`MAX_CALLS`], and need no requests of their own here. `rmcp` counts a
/// request until its response is complete or begins as a stream of events. An elicitation arrives
/// in the stream of its call, whose request then no longer counts. An elicitation that arrives
/// elsewhere reserves the session for its call, so no other call begins on that session.
const MAX_CONCURRENT_REQUESTS: usize = MAX_CALLS + 4;

/// Headers that the protocol or the HTTP client sets.
const RESERVED_HEADERS: [&str; 9] = [
    "accept",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// The HTTP transport of a server.
pub(crate) struct HttpTransport {
    client: reqwest::Client,
    url: Url,
    headers: HashMap<HeaderName, HeaderValue>,
    blocked: Option<BlockedAddress>,
}

/// The output omits the headers, which are secret, and the query, which may be secret.
impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReach").field("host", &self.url.host()).finish_non_exhaustive()
    }
}

impl HttpTransport {
    pub(super) fn new(
        server: &str,
        config: &HttpConfig,
        policy: AddressPolicy,
    ) -> Result<Self, ConfigError> {
        if !matches!(config.url.scheme(), "http" | "https") || config.url.host().is_none() {
            return Err(ConfigError::Url { server: server.into(), url: config.url.to_string() });
        }
        let (allow_private, lookup) = (config.private, SystemResolver);
        let guard = GuardedResolver { policy, allow_private, lookup };
        let blocked = guard.check(&config.url).err();
        let client = http_client(guard).map_err(|error| ConfigError::Client {
            server: server.into(),
            reason: error.to_string(),
        })?;
        let headers = headers(server, config)?;
        Ok(Self { client, url: config.url.clone(), headers, blocked })
    }

    /// Returns the transport of a new session. Responses count as `memory`. Cancelling `abandoned`
    /// before the session is open ends all requests of the session.
    pub(super) fn transport(
        &self,
        server: &str,
        normalizer: Normalizer,
        calls: Calls,
        memory: ServiceMemory,
        abandoned: CancellationToken,
    ) -> Result<StreamableHttpClientTransport<BoundedClient>, Failure> {
        if let Some(refused) = &self.blocked {
            let message = format!("access to the MCP server `{server}` is denied: {refused}");
            return Err(Failure::new(code::DENIED, message));
        }
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(self.headers.clone())
            .max_concurrent_requests(MAX_CONCURRENT_REQUESTS)
            .reinit_on_expired_session(true);
        let client = NormalizingClient::new(self.client.clone(), normalizer, calls.clone(), memory);
        let client = BoundedClient::new(client, calls, abandoned);
        Ok(StreamableHttpClientTransport::with_client(client, config))
    }
}

/// Creates the client of a server. A proxy from environment variables would connect to addresses
/// that the host has not checked.
pub(super) fn http_client(guard: GuardedResolver<impl Lookup>) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .dns_resolver(guard)
        // Headers with secrets must not follow a redirect to another origin.
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
}

fn headers(
    server: &str,
    config: &HttpConfig,
) -> Result<HashMap<HeaderName, HeaderValue>, ConfigError> {
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        let invalid = || ConfigError::Header { server: server.into(), header: name.clone() };
        let header = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
        if RESERVED_HEADERS.contains(&header.as_str()) {
            let (server, header) = (server.to_owned(), name.clone());
            return Err(ConfigError::ReservedHeader { server, header });
        }
        let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
