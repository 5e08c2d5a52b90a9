//! Pictures that a provider makes.
//!
//! An answer comes as a whole; its bytes are believed only after a look at them.

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

/// Bytes of one answer, however many pictures it holds: what a host can hold of several at once.
const ANSWER_BYTES: usize = 64 << 20;

/// Bytes of an answer with one picture: the largest in base64, and some words.
const ONE_PICTURE_BYTES: usize = (PICTURE_BYTES as usize / 3 + 1) * 4 + (1 << 20);

/// What is wished for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// What to show.
    pub(crate) prompt: &'a str,
    /// How many.
    pub(crate) count: u32,
    /// Such as `16:9`.
    pub(crate) aspect_ratio: Option<&'a str>,
}

/// How pictures are asked for.
#[derive(Clone, Copy, Debug)]
enum Wire {
    /// Google's `predict`.
    Imagen,
    /// Google's `generateContent`.
    Gemini,
    /// OpenAI's `images/generations`.
    Openai,
}

/// Why an answer holds no picture.
#[derive(Debug, PartialEq, Eq)]
enum Unfit {
    /// The provider keeps it back, for this reason.
    Withheld(String),
    /// The answer is not what it should be.
    Broken(String),
}

/// Makes pictures, in as many calls as the model needs. Fewer than were wished for may come, since
/// a provider may keep some of them back, fail at some or take too long: what was made is paid for
/// and is kept.
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
        // One that hangs must not cost those that are there.
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

/// A number of pictures as numbers of at most `most`.
fn shares(count: u32, most: u32) -> impl Iterator<Item = u32> {
    (0..count).step_by(most as usize).map(move |made| most.min(count - made))
}

/// One request, and further ones after faults that may pass.
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

/// One request within its time. Waiting for a free place does not count.
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
        // Without its words the status still says enough.
        let text = String::from_utf8(body.unwrap_or_default()).unwrap_or_default();
        return Err(match wire.withheld(status, &text) {
            Some(reason) => fault::withheld(provider, aim, &reason),
            None => fault::answered(provider, aim, status, &headers, &text),
        });
    }
    let body = body?;
    // Megabytes of base64 take milliseconds: too long for a thread that others wait on.
    let read = tokio::task::spawn_blocking(move || wire.read(&body)).await;
    let unfit = match read {
        Ok(Ok(pictures)) => return Ok(pictures),
        Ok(Err(unfit)) => unfit,
        Err(error) => Unfit::Broken(format!("reading it was broken off: {error}")),
    };
    Err(match unfit {
        Unfit::Withheld(reason) => fault::withheld(provider, aim, &reason),
        Unfit::Broken(reason) => fault::broken(provider, aim, &reason),
    })
}

/// All bytes of an answer.
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
    /// Google has two ways; which one a model knows is in its name.
    fn of(kind: ProviderKind, model: &str) -> Option<Self> {
        match kind {
            ProviderKind::Gemini if model.starts_with("imagen-") => Some(Self::Imagen),
            ProviderKind::Gemini => Some(Self::Gemini),
            ProviderKind::Openai => Some(Self::Openai),
            ProviderKind::Anthropic => None,
        }
    }

    /// Most pictures of one call.
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

    /// Why pictures are kept back, if that is what an error says.
    fn withheld(self, status: StatusCode, text: &str) -> Option<String> {
        match self {
            Self::Openai if status == StatusCode::BAD_REQUEST => openai::withheld(text),
            _ => None,
        }
    }

    fn read(self, body: &[u8]) -> Result<Vec<Picture>, Unfit> {
        let answer: Value = serde_json::from_slice(body)
            .map_err(|error| Unfit::Broken(format!("it is not json: {error}")))?;
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

/// A model's name as one segment of a path, so that no name can lead elsewhere.
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
        "the model provider `{}` makes no pictures: its kind `{kind}` has no call for them; lead \
         the route to a provider of kind `gemini` or `openai`",
        provider.name()
    );
    Failure::new(code::UNSUPPORTED, message)
        .with_details(serde_json::json!({ "feature": "llm.generate-images" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_shared_out() {
        for (count, most, expected) in
            [(1, 1, vec![1]), (3, 1, vec![1, 1, 1]), (4, 4, vec![4]), (6, 4, vec![4, 2])]
        {
            assert_eq!(shares(count, most).collect::<Vec<_>>(), expected);
        }
    }
}
