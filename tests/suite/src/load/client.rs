//! Requests as the official clients send them, and answers that are streams.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::load::frame::{Frame, Parser};

/// Calls one server.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    url: Arc<str>,
}

impl Client {
    /// A client with connections of its own.
    ///
    /// # Errors
    ///
    /// If the system does not let it.
    pub fn new(url: &str) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { http, url: url.trim_end_matches('/').into() })
    }

    /// A request that may still be changed.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    /// Reads a document.
    ///
    /// # Errors
    ///
    /// If there is no answer, or one that is not 200.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let response = answered(self.request(Method::GET, path)).await?;
        response.json().await.with_context(|| format!("`{path}` answers with no document"))
    }

    /// Sends a document and reads one.
    ///
    /// # Errors
    ///
    /// As of [`Client::get`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let response = answered(self.request(Method::POST, path).json(body)).await?;
        response.json().await.with_context(|| format!("`{path}` answers with no document"))
    }

    /// Makes a thread and answers with its id.
    ///
    /// # Errors
    ///
    /// As of [`Client::get`].
    pub async fn create_thread(&self) -> Result<String> {
        let made = self.post("/threads", &json!({ "metadata": {} })).await?;
        let id = made["thread_id"].as_str().with_context(|| format!("no thread: {made}"))?;
        Ok(id.to_owned())
    }

    /// Sends a request whose answer is a stream.
    ///
    /// # Errors
    ///
    /// As of [`Client::get`].
    pub async fn stream(&self, request: RequestBuilder) -> Result<Frames> {
        Ok(Frames { response: answered(request).await?, parser: Parser::default() })
    }
}

async fn answered(request: RequestBuilder) -> Result<Response> {
    let response = request.send().await?;
    let status = response.status();
    if status != reqwest::StatusCode::OK {
        let path = response.url().path().to_owned();
        bail!("`{path}` answers with {status}: {}", response.text().await.unwrap_or_default());
    }
    Ok(response)
}

/// The frames of a stream, as they come.
#[derive(Debug)]
pub struct Frames {
    response: Response,
    parser: Parser,
}

impl Frames {
    /// The run that the stream is of.
    pub fn run(&self) -> Option<&str> {
        let place = self.response.headers().get("content-location")?.to_str().ok()?;
        Some(place.rsplit_once("/runs/")?.1)
    }

    /// The next one; `None` at the end. Nothing is lost if it is not waited for.
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
