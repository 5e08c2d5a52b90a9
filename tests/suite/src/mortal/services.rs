//! A model and HTTP over the real sockets of a stand-in, which counts requests.

use async_trait::async_trait;
use reqwest::{Client, Method, RequestBuilder};
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{
    Completion, CompletionRequest, FinishReason, GeneratedImage, ImageRequest, Part, Usage,
};
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::{BlobStore, Caller, Model, Net};

/// Model and HTTP port with one base URL.
pub struct Services {
    base: String,
    client: Client,
}

impl Services {
    /// Creates the services of a stand-in.
    pub fn new(base: &str) -> Self {
        Self { base: base.to_owned(), client: Client::new() }
    }

    /// Sends a request. Connection errors and server errors are retryable failures.
    async fn answer(&self, request: RequestBuilder) -> Result<HttpResponse, Failure> {
        let away = |why: String| Failure::new(code::UNAVAILABLE, why).retryable();
        let response = request.send().await.map_err(|error| away(error.to_string()))?;
        let (status, url) = (response.status(), response.url().to_string());
        if status.is_server_error() {
            return Err(away(format!("the service returned {status}")));
        }
        let body = response.bytes().await.map_err(|error| away(error.to_string()))?;
        Ok(HttpResponse { status: status.as_u16(), headers: Vec::new(), body, url })
    }
}

#[async_trait]
impl Net for Services {
    async fn send(
        &self,
        _: &Caller,
        _: &Grants,
        request: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        let method = Method::from_bytes(request.method.as_bytes()).unwrap_or_default();
        let mut sent = self.client.request(method, format!("{}{}", self.base, request.url));
        if let Some(key) = &request.idempotency_key {
            sent = sent.header("idempotency-key", key);
        }
        if let HttpBody::Text(text) = &request.body {
            sent = sent.body(text.clone());
        }
        self.answer(sent).await
    }
}

#[async_trait]
impl Model for Services {
    fn has_route(&self, _: &Caller, route: &str) -> bool {
        route == "chat"
    }

    fn route(&self, caller: &Caller, route: &str) -> Option<RouteInfo> {
        self.has_route(caller, route).then(|| RouteInfo {
            provider: "standin".into(),
            model: "standin".into(),
            has_fallback: false,
            candidates: 1,
        })
    }

    async fn complete(
        &self,
        _: &Caller,
        _: &CompletionRequest,
        _: &dyn BlobStore,
        _: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        let answer = self.answer(self.client.post(format!("{}/echo/model", self.base))).await?;
        Ok(Completion {
            id: None,
            parts: vec![Part::Text(format!("the model answered {}", answer.status))],
            structured: None,
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            model: "standin".into(),
            attempts: Vec::new(),
        })
    }

    async fn generate_images(
        &self,
        _: &Caller,
        _: &ImageRequest,
        _: &dyn BlobStore,
    ) -> Result<Vec<GeneratedImage>, Failure> {
        Err(Failure::unsupported("pictures"))
    }
}
