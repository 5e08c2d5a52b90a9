//! How commands reach threads and apps: through the server that holds the store, or else through
//! the same API in their own process.

pub mod events;
mod pinned;
mod remote;

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
use wattle_graph::principal::Principal;

use crate::config::Config;
use crate::error::Error;
use crate::load::Change;
use crate::output::Output;
use crate::server::place;
use crate::wire::{Host, Overrides};

pub use crate::client::remote::Remote;

/// Bytes of an answer: states may be large, but a broken server must not fill the memory.
const ANSWER_LIMIT_BYTES: usize = 256 << 20;

/// What a command needs loaded, if it works in its own process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The store only.
    Store,
    /// Apps and plugins, too.
    Apps,
}

/// A connection to the API.
pub enum Client {
    /// A server answers.
    Remote(Remote),
    /// This process answers.
    Local(Box<Local>),
}

/// The API in this process.
pub struct Local {
    host: Host,
    router: Router,
}

/// Pieces of a body.
pub type Pieces = BoxStream<'static, Result<Bytes, Error>>;

impl Client {
    /// Connects: to the server of the data folder if one answers, else opens the store.
    ///
    /// # Errors
    ///
    /// Those of [`Host::open`].
    pub async fn open(config: Config, needs: Needs) -> Result<Self, Error> {
        if let Some(remote) = server_of(&config).await? {
            return Ok(Self::Remote(remote));
        }
        let host = Box::pin(Host::open(config, Overrides::default())).await?;
        if needs == Needs::Apps {
            host.warnings.iter().for_each(|warning| Output::warning(warning));
            for change in host.load_apps().await? {
                match change {
                    Change::Problem { path, message } => {
                        Output::warning(&format!("`{}` is not loaded: {message}", path.display()));
                    }
                    Change::App { notes, .. } => notes.iter().for_each(|it| Output::warning(it)),
                    _ => {}
                }
            }
        }
        let router = unguarded_router(host.api_state()?);
        Ok(Self::Local(Box::new(Local { host, router })))
    }

    /// Whether a server answers.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Reads a document.
    ///
    /// # Errors
    ///
    /// [`Error::Problem`] as the API says it, [`Error::Server`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.call(Method::GET, path, None).await
    }

    /// Sends a document and reads the answer.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, Error> {
        let body = serde_json::to_value(body).unwrap_or_default();
        self.call(Method::POST, path, Some(body)).await
    }

    /// Sends a document to an endpoint that answers nothing.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    pub async fn post_empty(&self, path: &str, body: &Value) -> Result<(), Error> {
        self.send(Method::POST, path, Some(body.clone())).await.map(drop)
    }

    /// Reads an answer that is too long to be held as a whole.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    pub async fn pieces(&self, path: &str) -> Result<Pieces, Error> {
        self.send(Method::GET, path, None).await
    }

    /// Deletes things and reads what was deleted.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    pub async fn delete_for<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.call(Method::DELETE, path, None).await
    }

    /// Deletes something.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    pub async fn delete(&self, path: &str) -> Result<(), Error> {
        self.send(Method::DELETE, path, None).await.map(drop)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<T, Error> {
        let pieces = self.send(method, path, body).await?;
        let bytes = collect(pieces).await?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Server {
            address: self.address(),
            message: format!("its answer to `{path}` is not what was expected: {error}"),
        })
    }

    /// Sends a request and answers with the body of a success.
    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Result<Pieces, Error> {
        let (status, pieces) = match self {
            Self::Remote(remote) => remote.send(method, path, body).await?,
            Self::Local(local) => local.send(method, path, body).await?,
        };
        if status.is_success() {
            return Ok(pieces);
        }
        let bytes = collect(pieces).await?;
        let problem = serde_json::from_slice::<ProblemDocument>(&bytes);
        Err(problem.map_or_else(
            |_| Error::Server {
                address: self.address(),
                message: format!("it answered `{path}` with status {status}"),
            },
            |problem| Error::Problem(Box::new(problem)),
        ))
    }

    fn address(&self) -> String {
        match self {
            Self::Remote(remote) => remote.address().to_owned(),
            Self::Local(_) => "this process".into(),
        }
    }

    /// Closes what was opened.
    pub async fn close(self) {
        if let Self::Local(local) = self {
            drop(local.router);
            local.host.close().await;
        }
    }
}

impl Local {
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(StatusCode, Pieces), Error> {
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
        let pieces = response.into_body().into_data_stream();
        let pieces = pieces.map_err(move |error| internal(error.to_string()));
        Ok((status, pieces.boxed()))
    }
}

/// Who runs this command: without a server, what it may do is up to the rights of its user on the
/// files of the store.
fn local_principal() -> Principal {
    #[cfg(unix)]
    let user = Some(format!("uid:{}", rustix::process::getuid().as_raw()));
    #[cfg(not(unix))]
    let user = None;
    Principal { user, local: true, ..Principal::default() }
}

/// The server that holds the data folder, if one answers.
///
/// # Errors
///
/// [`Error::Server`] if nothing can be asked at all.
pub async fn server_of(config: &Config) -> Result<Option<Remote>, Error> {
    match place::read(config) {
        Some(place) => Remote::connect(place, config).await,
        None => Ok(None),
    }
}

async fn collect(mut pieces: Pieces) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.try_next().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > ANSWER_LIMIT_BYTES {
            let message = format!("its answer is larger than {ANSWER_LIMIT_BYTES} bytes");
            return Err(Error::Server { address: "the server".into(), message });
        }
    }
    Ok(bytes)
}

/// Encodes a name for use as one segment of a path.
pub fn segment(name: &str) -> String {
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
    fn names_become_one_segment() {
        assert_eq!(segment("a-b_1.x"), "a-b_1.x");
        assert_eq!(segment("a/b c?线"), "a%2Fb%20c%3F%E7%BA%BF");
    }
}
