//! Requests like those of the official clients, and streams.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::load::frame::{Frame, Parser};

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    url: Arc<str>,
}

impl Client {
    /// Creates a client with connections of its own.
    ///
    /// # Errors
    ///
    /// If the HTTP client cannot be created.
    pub fn new(url: &str) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { http, url: url.trim_end_matches('/').into() })
    }

    /// Returns a request that the caller can still change.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    /// Reads a document.
    ///
    /// # Errors
    ///
    /// If the request fails, or the status is not 200.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let response = answered(self.request(Method::GET, path)).await?;
        response.json().await.with_context(|| format!("`{path}` returned no document"))
    }

    /// Sends a document and reads one.
    ///
    /// # Errors
    ///
    /// As for [`Client::get`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let response = answered(self.request(Method::POST, path).json(body)).await?;
        response.json().await.with_context(|| format!("`{path}` returned no document"))
    }

    /// Creates a thread and returns its id.
    ///
    /// # Errors
    ///
    /// As for [`Client::get`].
    pub async fn create_thread(&self) -> Result<String> {
        let made = self.post("/threads", &json!({ "metadata": {} })).await?;
        let id = made["thread_id"].as_str().with_context(|| format!("no thread: {made}"))?;
        Ok(id.to_owned())
    }

    /// Sends a request whose response is a stream.
    ///
    /// # Errors
    ///
    /// As for [`Client::get`].
    pub async fn stream(&self, request: RequestBuilder) -> Result<Frames> {
        Ok(Frames { response: answered(request).await?, parser: Parser::default() })
    }
}

async fn answered(request: RequestBuilder) -> Result<Response> {
    let response = request.send().await?;
    let status = response.status();
    if status != reqwest::StatusCode::OK {
        let path = response.url().path().to_owned();
        bail!("`{path}` returned {status}: {}", response.text().await.unwrap_or_default());
    }
    Ok(response)
}

/// The server-sent events of a stream, as they arrive.
#[derive(Debug)]
pub struct Frames {
    response: Response,
    parser: Parser,
}

impl Frames {
    /// Returns the id of the run of the stream.
    pub fn run(&self) -> Option<&str> {
        let place = self.response.headers().get("content-location")?.to_str().ok()?;
        Some(place.rsplit_once("/runs/")?.1)
    }

    /// Returns the next server-sent event, or `None` at the end. This function is cancel safe:
    /// dropping its future loses no event.
    ///
    /// # Errors
    ///
    /// If the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.parser.pop() {
                return Ok(Some(frame));
            }
            match self.response.chunk().await? {
                Some(piece) => self.parser.push(&piece),
                None => return Ok(None),
            }
        }
    }
}
