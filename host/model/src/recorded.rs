//! Recorded answers, read without a connection: for checks of what a provider's bytes can do.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::PoisonError;

use bytes::Bytes;
use futures::stream;
use reqwest::{Body, Response};
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, Delta};
use wattle_run::ports::model::Deltas;

use crate::config::{DEFAULT_TIMEOUT, ProviderConfig, ProviderKind, Structured};
use crate::error::ConfigError;
use crate::extra::Extra;
use crate::provider::{self, Aim, Asks, Key, Provider};
use crate::sink::Sink;

/// Reads answers in the format of one kind of provider.
#[derive(Debug)]
pub struct Recorded(Provider);

impl Recorded {
    /// A reader.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Client`] if there can be no client for HTTP.
    pub fn new(kind: ProviderKind) -> Result<Self, ConfigError> {
        let config = ProviderConfig {
            kind,
            base_url: None,
            key_env: None,
            structured: Structured::default(),
            stream: true,
            extra: Extra::default(),
            headers: BTreeMap::new(),
        };
        let http = provider::http(None).map_err(|reason| ConfigError::Client { reason })?;
        Provider::new("recorded", &config, Key::None, http).map(Self)
    }

    /// Reads the body of one answer with status 200, a stream of events or a whole document, that
    /// arrives in these pieces. Answers with what it says, and with what is handed on meanwhile.
    pub async fn read(&self, pieces: Vec<Bytes>) -> (Result<Completion, Failure>, Vec<Delta>) {
        let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
        let response = Response::from(http::Response::new(Body::wrap_stream(pieces)));
        let (told, asks) = (Told::default(), Asks::default());
        let sink = Sink::new(&told);
        let aim = Aim {
            route: "recorded",
            model: "recorded",
            name: "recorded",
            setting: "model",
            timeout: DEFAULT_TIMEOUT,
            retries: 0,
            asks: &asks,
        };
        let read = self.0.read(aim, &sink, response).await;
        let read = read.map(|reply| reply.completion(None)).map_err(|fault| fault.failure);
        (read, told.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps the pieces.
#[derive(Default)]
struct Told(Mutex<Vec<Delta>>);

impl Deltas for Told {
    fn push(&self, delta: Delta) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(delta);
    }
}
