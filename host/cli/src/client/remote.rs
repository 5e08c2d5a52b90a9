//! Access to the API of a server.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use wattle_api::document::Health;

use crate::client::{ByteStream, pinned};
use crate::config::Config;
use crate::env::environment;
use crate::error::Error;
use crate::server::server_file::ServerInfo;

/// Environment variable with the API key that commands send.
const KEY_VARIABLE: &str = "WATTLE_API_KEY";

/// Timeout for the connection and the health check. The server file can be left over from a server
/// that is no longer running.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A client of a server.
pub struct Remote {
    client: reqwest::Client,
    address: String,
    key: Option<String>,
}

impl Remote {
    /// Connects to the server if it is still running. The health check detects that another server
    /// now uses the address.
    pub(super) async fn connect(info: ServerInfo, config: &Config) -> Result<Option<Self>, Error> {
        let ServerInfo { address, instance, .. } = info;
        let mut client = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT_TIMEOUT);
        if let Some(tls) = &config.server.tls {
            let tls = pinned::config(&config.base.join(&tls.cert));
            let tls = tls.map_err(|message| Error::Setup { what: "TLS", message })?;
            client = client.tls_backend_preconfigured(tls);
        }
        let client = client.build().map_err(|error| request_error(&address, &error))?;
        let key = environment()(KEY_VARIABLE);
        let health = client.get(format!("{address}/api/v1/health")).timeout(CONNECT_TIMEOUT);
        let Ok(response) = health.send().await else { return Ok(None) };
        let is_ours =
            response.json::<Health>().await.is_ok_and(|health| health.instance == instance);
        Ok(is_ours.then_some(Self { client, address, key }))
    }

    /// Returns the URL of the server.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(StatusCode, ByteStream), Error> {
        let mut request = self.client.request(method, format!("{}{path}", self.address));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response =
            request.send().await.map_err(|error| request_error(&self.address, &error))?;
        let (status, address) = (response.status(), self.address.clone());
        let chunks = response.bytes_stream().map_err(move |error| request_error(&address, &error));
        Ok((status, chunks.boxed()))
    }
}

fn request_error(address: &str, error: &reqwest::Error) -> Error {
    Error::Server { address: address.to_owned(), message: error.to_string() }
}
