//! Image generation by a provider.
//!
//! Responses are not streamed. The host detects the type of each image from its bytes.

mod gemini;
mod imagen;
mod openai;
mod picture;

use std::pin::pin;

use futures::StreamExt as _;
use futures::stream;
use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_run::limit::BATCH_CONCURRENCY;

use crate::chat::PICTURE_BYTES;
use crate::config::ProviderKind;
use crate::provider::fault::{self, Fault};
pub(crate) use crate::provider::image::picture::Picture;
use crate::provider::{Aim, Provider};

/// Maximum bytes of one response, whatever its number of images: a host holds several responses in
/// memory at once.
const ANSWER_BYTES: usize = 64 << 20;

/// Maximum bytes of a response with one image: the largest image in base64, and some text.
const ONE_PICTURE_BYTES: usize = (PICTURE_BYTES as usize / 3 + 1) * 4 + (1 << 20);

/// A request for images.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// The description of the images.
    pub(crate) prompt: &'a str,
    /// The number of images.
    pub(crate) count: u32,
    /// The aspect ratio, such as `16:9`.
    pub(crate) aspect_ratio: Option<&'a str>,
}

/// The API that generates the images.
#[derive(Clone, Copy, Debug)]
enum Wire {
    /// Google's `predict`.
    Imagen,
    /// Google's `generateContent`.
    Gemini,
    /// OpenAI's `images/generations`.
    Openai,
}

/// Why a response has no image.
#[derive(Debug, PartialEq, Eq)]
enum Unfit {
    /// The provider withheld the image, for this reason.
    Withheld(String),
    /// The response is malformed.
    Broken(String),
}

/// Generates images, in as many requests as the model needs. Returns fewer than requested if the
/// provider withholds some, or if a request fails or times out: images that were generated are paid
/// for, so they are kept.
pub(super) async fn make(
    provider: &Provider,
    aim: Aim<'_>,
    wish: Wish<'_>,
) -> Result<Vec<Picture>, Failure> {
    let Some(wire) = Wire::of(provider.kind(), aim.model) else {
        return Err(unsupported(provider));
    };
    let shares = shares(wish.count, wire.most(aim.model));
    let turns: Vec<_> =
        shares.map(|count| turn(provider, aim, wire, Wish { count, ..wish })).collect();
    let mut answers = pin!(stream::iter(turns).buffer_unordered(BATCH_CONCURRENCY));
    let (mut pictures, mut failed) = (Vec::new(), None);
    loop {
        let next = answers.next();
        // A request that times out must not lose the images of the others.
        let answer = if pictures.is_empty() {
            next.await
        } else {
            tokio::time::timeout(aim.timeout, next).await.unwrap_or(None)
        };
        match answer {
            Some(Ok(made)) => pictures.extend(made),
            Some(Err(failure)) => failed = failed.or(Some(failure)),
            None => break,
        }
    }
    match failed {
        Some(failure) if pictures.is_empty() => Err(failure),
        _ => {
            pictures.truncate(wish.count as usize);
            Ok(pictures)
        }
    }
}

/// Splits `count` images into requests of at most `most` images.
fn shares(count: u32, most: u32) -> impl Iterator<Item = u32> {
    (0..count).step_by(most as usize).map(move |made| most.min(count - made))
}

/// Sends one request and retries transient errors.
async fn turn(
    provider: &Provider,
    aim: Aim<'_>,
    wire: Wire,
    wish: Wish<'_>,
) -> Result<Vec<Picture>, Failure> {
    let mut tried = 0;
    loop {
        match attempt(provider, aim, wire, wish).await {
            Ok(pictures) => return Ok(pictures),
            Err(fault) => provider.wait(aim, fault, tried).await?,
        }
        tried += 1;
    }
}

/// Sends one request with its timeout, which starts after the wait for a free slot.
async fn attempt(
    provider: &Provider,
    aim: Aim<'_>,
    wire: Wire,
    wish: Wish<'_>,
) -> Result<Vec<Picture>, Fault> {
    let _place = provider.permits.acquire().await;
    aim.asks.add();
    let answer = tokio::time::timeout(aim.timeout, exchange(provider, aim, wire, wish)).await;
    answer.unwrap_or_else(|_| Err(fault::timeout(provider, aim)))
}

async fn exchange(
    provider: &Provider,
    aim: Aim<'_>,
    wire: Wire,
    wish: Wish<'_>,
) -> Result<Vec<Picture>, Fault> {
    let request = wire.request(provider, aim.model, wish).header(ACCEPT, "application/json");
    let response = request.send().await.map_err(|error| fault::unsent(provider, aim, &error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let most = ANSWER_BYTES.min(ONE_PICTURE_BYTES.saturating_mul(wish.count as usize));
    let body = body(provider, aim, response, most).await;
    if !status.is_success() {
        // Without the message, the status is still informative.
        let text = String::from_utf8(body.unwrap_or_default()).unwrap_or_default();
        return Err(match wire.withheld(status, &text) {
            Some(reason) => fault::withheld(provider, aim, &reason),
            None => fault::answered(provider, aim, status, &headers, &text),
        });
    }
    let body = body?;
    // Decoding megabytes of base64 takes milliseconds, which is too long for an async worker.
    let read = tokio::task::spawn_blocking(move || wire.read(&body)).await;
    let unfit = match read {
        Ok(Ok(pictures)) => return Ok(pictures),
        Ok(Err(unfit)) => unfit,
        Err(error) => Unfit::Broken(format!("decoding it was aborted: {error}")),
    };
    Err(match unfit {
        Unfit::Withheld(reason) => fault::withheld(provider, aim, &reason),
        Unfit::Broken(reason) => fault::broken(provider, aim, &reason),
    })
}

/// Reads the body of a response, up to `most` bytes.
async fn body(
    provider: &Provider,
    aim: Aim<'_>,
    mut response: Response,
    most: usize,
) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(fault::lost(provider, aim, &error)),
        }
        if body.len() > most {
            let reason = format!("it has more than {most} bytes");
            return Err(fault::broken(provider, aim, &reason));
        }
    }
}

impl Wire {
    /// Returns the API of a model; `None` if the kind has none. Google has two APIs, which the name
    /// of the model distinguishes.
    fn of(kind: ProviderKind, model: &str) -> Option<Self> {
        match kind {
            ProviderKind::Gemini if model.starts_with("imagen-") => Some(Self::Imagen),
            ProviderKind::Gemini => Some(Self::Gemini),
            ProviderKind::Openai => Some(Self::Openai),
            ProviderKind::Anthropic => None,
        }
    }

    /// Returns the maximum images of one request.
    fn most(self, model: &str) -> u32 {
        match self {
            Self::Imagen => imagen::MOST,
            Self::Gemini => 1,
            Self::Openai => openai::most(model),
        }
    }

    fn request(self, provider: &Provider, model: &str, wish: Wish<'_>) -> RequestBuilder {
        let (path, body) = match self {
            Self::Imagen => (format!("models/{}:predict", segment(model)), imagen::body(wish)),
            Self::Gemini => {
                (format!("models/{}:generateContent", segment(model)), gemini::body(wish))
            }
            Self::Openai => ("images/generations".to_owned(), openai::body(model, wish)),
        };
        provider.post(&path).json(&body)
    }

    /// Returns why the provider withheld images, if an error response says so.
    fn withheld(self, status: StatusCode, text: &str) -> Option<String> {
        match self {
            Self::Openai if status == StatusCode::BAD_REQUEST => openai::withheld(text),
            _ => None,
        }
    }

    fn read(self, body: &[u8]) -> Result<Vec<Picture>, Unfit> {
        let answer: Value = serde_json::from_slice(body)
            .map_err(|error| Unfit::Broken(format!("it is not JSON: {error}")))?;
        match self {
            Self::Imagen => imagen::read(&answer),
            Self::Gemini => gemini::read(&answer),
            Self::Openai => openai::read(&answer),
        }
    }
}

impl Unfit {
    fn broken(reason: &str) -> Self {
        Self::Broken(reason.to_owned())
    }
}

/// Encodes a model name as one segment of a path, so that no name can select another path.
fn segment(model: &str) -> String {
    let mut segment = String::with_capacity(model.len());
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            segment.push(byte.into());
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    segment
}

fn unsupported(provider: &Provider) -> Failure {
    let kind = provider.kind().name();
    let message = format!(
        "the model provider `{}` generates no images: its kind `{kind}` has no API for them; use a \
         provider of kind `gemini` or `openai` for the route",
        provider.name()
    );
    Failure::new(code::UNSUPPORTED, message)
        .with_details(serde_json::json!({ "feature": "llm.generate-images" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_images_is_split_into_requests() {
        for (count, most, expected) in
            [(1, 1, vec![1]), (3, 1, vec![1, 1, 1]), (4, 4, vec![4]), (6, 4, vec![4, 2])]
        {
            assert_eq!(shares(count, most).collect::<Vec<_>>(), expected);
        }
    }
}
