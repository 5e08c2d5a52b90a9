//! Access of commands to the API: through the server that has the store open, or in the process of
//! the command.

pub mod events;
mod pinned;
mod remote;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt as _;
use wattle_api::problem::ProblemDocument;
use wattle_api::{Operator, unguarded_router};
use wattle_graph::failure::code;
use wattle_graph::id::AppName;
use wattle_graph::principal::Principal;
use wattle_run::engine::Engine;

use crate::config::Config;
use crate::error::Error;
use crate::host::{Host, Overrides};
use crate::load::{self, Change, Severity};
use crate::output::Output;
use crate::server::server_file;

pub use crate::client::remote::Remote;

/// Maximum size of a response in bytes. States can be large, but a faulty server must not exhaust
/// the memory of the client.
const MAX_RESPONSE_BYTES: usize = 256 << 20;

/// Pause before a request is repeated while its app is being loaded.
const LOAD_RETRY_PERIOD: Duration = Duration::from_millis(500);

/// Maximum time for which a command without a server waits for another one that has the store open.
/// Most commands need the store for less than a second. One that still has it after this time
/// executes a run, or is a server that does not respond yet.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The parts of a host that a command loads if no server is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preload {
    /// Only the store.
    Store,
    /// The store, and the apps and plugins of its requests. Each request waits for its app.
    Apps,
    /// The store, and all apps and plugins.
    AllApps,
}

/// A client of the API.
pub enum Client {
    /// Sends requests to a running server.
    Remote(Remote),
    /// Handles requests in this process.
    Local(Box<Local>),
}

/// The API within this process.
pub struct Local {
    host: Host,
    router: Router,
}

/// A response body in chunks.
pub type ByteStream = BoxStream<'static, Result<Bytes, Error>>;

impl Client {
    /// Connects to the server of the data folder. Opens the store in this process if no server
    /// responds.
    ///
    /// # Errors
    ///
    /// The errors of [`find_server`] and [`Host::open`].
    pub async fn open(config: Config, preload: Preload) -> Result<Self, Error> {
        if let Some(remote) = find_server(&config).await? {
            return Ok(Self::Remote(remote));
        }
        Self::local(config, preload, Overrides::default()).await
    }

    /// Opens the store in this process, whether or not a server has it open. Waits a few seconds
    /// for another process that has it open.
    ///
    /// # Errors
    ///
    /// Those of [`Host::open`].
    pub async fn local(
        config: Config,
        preload: Preload,
        overrides: Overrides,
    ) -> Result<Self, Error> {
        let overrides = Overrides { lock_wait: LOCK_WAIT, ..overrides };
        let host = Box::pin(Host::open(config, overrides)).await?;
        if preload != Preload::Store {
            host.warnings.iter().for_each(|warning| Output::warning(warning));
            let (mut changes, mut later_changes) = host.load_apps(Output::note).await?;
            if preload == Preload::AllApps {
                changes.extend(later_changes.all(Output::note).await);
            }
            changes.iter().for_each(warn);
            // The remaining apps are loaded in the background. A request waits for its app.
            tokio::spawn(async move {
                while let Some(change) = later_changes.next().await {
                    warn(&change);
                }
            });
        }
        let router = unguarded_router(host.api_state()?);
        Ok(Self::Local(Box::new(Local { host, router })))
    }

    /// Returns true if a server serves the API.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Returns the engine, if this process serves the API.
    pub fn engine(&self) -> Option<&Engine> {
        match self {
            Self::Remote(_) => None,
            Self::Local(local) => Some(&local.host.engine),
        }
    }

    /// Sends a `GET` request and parses the response.
    ///
    /// # Errors
    ///
    /// [`Error::Problem`] if the response is a problem document, and [`Error::Server`] if the
    /// request fails or the response is invalid.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.call(Method::GET, path, None).await
    }

    /// Sends a `POST` request and parses the response.
    ///
    /// # Errors
    ///
    /// The errors of [`Client::get`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, Error> {
        let body = serde_json::to_value(body).unwrap_or_default();
        self.call(Method::POST, path, Some(body)).await
    }

    /// Sends a `POST` request and ignores the response body.
    ///
    /// # Errors
    ///
    /// Those of [`Client::get`].
    pub async fn post_empty(&self, path: &str, body: &Value) -> Result<(), Error> {
        self.send(Method::POST, path, Some(body.clone())).await.map(drop)
    }

    /// Sends a `GET` request and streams the response, which need not fit into memory.
    ///
    /// # Errors
    ///
    /// Those of [`Client::get`].
    pub async fn get_stream(&self, path: &str) -> Result<ByteStream, Error> {
        self.send(Method::GET, path, None).await
    }

    /// Sends a `DELETE` request and parses the response.
    ///
    /// # Errors
    ///
    /// Those of [`Client::get`].
    pub async fn delete_with_response<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.call(Method::DELETE, path, None).await
    }

    /// Sends a `DELETE` request and ignores the response body.
    ///
    /// # Errors
    ///
    /// Those of [`Client::get`].
    pub async fn delete(&self, path: &str) -> Result<(), Error> {
        self.send(Method::DELETE, path, None).await.map(drop)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<T, Error> {
        let chunks = self.send(method, path, body).await?;
        let bytes = collect(chunks).await?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Server {
            address: self.address(),
            message: format!("the response to `{path}` is invalid: {error}"),
        })
    }

    /// Sends a request and returns the body of a successful response. Repeats the request while
    /// its app is being loaded.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<ByteStream, Error> {
        let mut has_notified = false;
        loop {
            let (method, body) = (method.clone(), body.clone());
            let (status, chunks) = match self {
                Self::Remote(remote) => remote.send(method, path, body).await?,
                Self::Local(local) => local.send(method, path, body).await?,
            };
            if status.is_success() {
                return Ok(chunks);
            }
            let bytes = collect(chunks).await?;
            let Ok(problem) = serde_json::from_slice::<ProblemDocument>(&bytes) else {
                let message = format!("the response to `{path}` has status {status}");
                return Err(Error::Server { address: self.address(), message });
            };
            let Some(names) = loading_apps(&problem) else {
                return Err(self.error_of(path, problem));
            };
            if !has_notified {
                Output::note(&format!("waiting until the host has loaded {names}"));
                has_notified = true;
            }
            tokio::time::sleep(LOAD_RETRY_PERIOD).await;
        }
    }

    /// Returns the error for the response to a request.
    fn error_of(&self, path: &str, problem: ProblemDocument) -> Error {
        let problem = Box::new(problem);
        let app = match self {
            Self::Local(local) if problem.code == code::NOT_FOUND => local.app_not_loaded(path),
            _ => None,
        };
        match app {
            Some(app) => Error::AppNotLoaded { app, problem },
            None => Error::Problem(problem),
        }
    }

    fn address(&self) -> String {
        match self {
            Self::Remote(remote) => remote.address().to_owned(),
            Self::Local(_) => "this process".into(),
        }
    }

    /// Closes the store, if this process has opened it.
    pub async fn close(self) {
        if let Self::Local(local) = self {
            drop(local.router);
            local.host.close().await;
        }
    }
}

impl Local {
    /// Returns the app of a request if this process has found its folder and cannot load it.
    fn app_not_loaded(&self, path: &str) -> Option<String> {
        let segment = path.strip_prefix("/api/v1/apps/")?.split(['/', '?']).next()?;
        let mut found = load::apps(&self.host.config).into_keys();
        let name = found.find(|name| encode_segment(name) == segment)?;
        let catalog = self.host.engine.catalog();
        let is_loaded = name.parse::<AppName>().is_ok_and(|name| catalog.app(&name).is_some());
        (!is_loaded).then_some(name)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(StatusCode, ByteStream), Error> {
        let internal = |message: String| Error::Server { address: "this process".into(), message };
        let request = Request::builder().method(method).uri(path);
        let request = request.extension(Operator).extension(local_principal());
        let request = match body {
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        let request = request.map_err(|error| internal(error.to_string()))?;
        let response =
            self.router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
        let status = response.status();
        let chunks = response.into_body().into_data_stream();
        let chunks = chunks.map_err(move |error| internal(error.to_string()));
        Ok((status, chunks.boxed()))
    }
}

/// Prints the messages about a change, except notes.
fn warn(change: &Change) {
    for (severity, text) in change.messages() {
        match severity {
            Severity::Progress => Output::note(&text),
            Severity::Note => {}
            Severity::Warning | Severity::Error => Output::warning(&text),
        }
    }
}

/// Returns the names of the apps that a rejected request must wait for, if the request was rejected
/// because these apps are being loaded.
fn loading_apps(problem: &ProblemDocument) -> Option<String> {
    let is_unavailable = problem.status == StatusCode::SERVICE_UNAVAILABLE.as_u16();
    let names = problem.details.as_ref().filter(|_| is_unavailable)?.get("loading")?.as_array()?;
    let names: Vec<String> =
        names.iter().filter_map(|name| Some(format!("`{}`", name.as_str()?))).collect();
    Some(names.join(", "))
}

/// Returns the principal of a command that needs no server. The file permissions of the store
/// determine what the user of the process may do.
fn local_principal() -> Principal {
    #[cfg(unix)]
    let user = Some(format!("uid:{}", rustix::process::getuid().as_raw()));
    #[cfg(not(unix))]
    let user = None;
    Principal { user, local: true, ..Principal::default() }
}

/// Connects to the server of the data folder. Returns `None` if no server responds.
///
/// # Errors
///
/// [`Error::Setup`] if `server.tls.cert` cannot be used, and [`Error::Server`] if the HTTP client
/// cannot be built.
pub async fn find_server(config: &Config) -> Result<Option<Remote>, Error> {
    match server_file::read(config) {
        Some(server_file) => Remote::connect(server_file, config).await,
        None => Ok(None),
    }
}

async fn collect(mut chunks: ByteStream) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.try_next().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_RESPONSE_BYTES {
            let message = format!("the response is larger than {MAX_RESPONSE_BYTES} bytes");
            return Err(Error::Server { address: "the server".into(), message });
        }
    }
    Ok(bytes)
}

/// Encodes a name as one segment of a URL path.
pub fn encode_segment(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_as_one_path_segment() {
        assert_eq!(encode_segment("a-b_1.x"), "a-b_1.x");
        assert_eq!(encode_segment("a/b c?线"), "a%2Fb%20c%3F%E7%BA%BF");
    }

    #[test]
    fn only_a_503_response_that_names_loading_apps_is_retried() {
        let problem = |status: u16, details: Value| {
            let document = serde_json::json!({ "type": "", "title": "", "status": status,
                "detail": "", "code": "unavailable", "details": details });
            loading_apps(&serde_json::from_value(document).unwrap())
        };
        let loading = serde_json::json!({ "loading": ["asset", "travel"] });
        assert_eq!(problem(503, loading.clone()).as_deref(), Some("`asset`, `travel`"));
        assert_eq!(problem(500, loading), None);
        assert_eq!(problem(503, serde_json::json!({ "version": "x" })), None);
    }
}
