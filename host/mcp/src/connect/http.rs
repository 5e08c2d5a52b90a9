//! Servers over streamable HTTP.

mod client;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::ExposeSecret as _;
use url::Url;
use wattle_graph::failure::{Failure, code};

use crate::calls::Calls;
use crate::config::{HttpConfig, Reachable};
use crate::connect::guard::{Guard, Refused};
use crate::connect::http::client::Lenient;
use crate::error::ConfigError;
use crate::mend::Mender;

/// Timeout of a connection attempt. Reachable servers take milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Concurrent requests of a session; further ones wait.
const CONCURRENT_CALLS: usize = 32;

/// Headers that the protocol or the HTTP client sets.
const RESERVED: [&str; 9] = [
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
pub(crate) struct HttpReach {
    client: reqwest::Client,
    url: Url,
    headers: HashMap<HeaderName, HeaderValue>,
    refused: Option<Refused>,
}

/// Headers are secret, and the query may be.
impl fmt::Debug for HttpReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReach").field("host", &self.url.host()).finish_non_exhaustive()
    }
}

impl HttpReach {
    pub(super) fn new(
        server: &str,
        config: &HttpConfig,
        reachable: Reachable,
    ) -> Result<Self, ConfigError> {
        if !matches!(config.url.scheme(), "http" | "https") || config.url.host().is_none() {
            return Err(ConfigError::Url { server: server.into(), url: config.url.to_string() });
        }
        let guard = Guard { reachable, private: config.private };
        let refused = guard.check(&config.url).err();
        let client = reqwest::Client::builder()
            .dns_resolver(guard)
            // Headers with secrets must not follow a redirect to another origin.
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(|error| ConfigError::Client {
                server: server.into(),
                reason: error.to_string(),
            })?;
        let headers = headers(server, config)?;
        Ok(Self { client, url: config.url.clone(), headers, refused })
    }

    /// Returns the transport of a new session.
    pub(super) fn transport(
        &self,
        server: &str,
        mender: Mender,
        calls: Calls,
    ) -> Result<StreamableHttpClientTransport<Lenient>, Failure> {
        if let Some(refused) = &self.refused {
            let message = format!("access to the MCP server `{server}` is denied: {refused}");
            return Err(Failure::new(code::DENIED, message));
        }
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(self.headers.clone())
            .max_concurrent_requests(CONCURRENT_CALLS)
            .reinit_on_expired_session(true);
        let client = Lenient::new(self.client.clone(), mender, calls);
        Ok(StreamableHttpClientTransport::with_client(client, config))
    }
}

fn headers(
    server: &str,
    config: &HttpConfig,
) -> Result<HashMap<HeaderName, HeaderValue>, ConfigError> {
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        let invalid = || ConfigError::Header { server: server.into(), header: name.clone() };
        let header = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
        if RESERVED.contains(&header.as_str()) {
            let (server, header) = (server.to_owned(), name.clone());
            return Err(ConfigError::ReservedHeader { server, header });
        }
        let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
