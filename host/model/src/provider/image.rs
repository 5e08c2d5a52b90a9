//! Image generation by a provider.
//!
//! Responses are not streamed. The host detects the type of each image from its bytes.

mod gemini;
mod image_bytes;
mod imagen;
mod openai;

use std::pin::pin;

use futures::StreamExt as _;
use futures::stream;
use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::failure::{Failure, code};
use wattle_run::json::bounded::JsonBudget;
use wattle_run::json::lenient;
use wattle_run::limit::BATCH_CONCURRENCY;
use wattle_run::service_memory::ResponseMemory;

use crate::chat::MAX_IMAGES_BYTES;
use crate::config::ProviderKind;
use crate::provider::body_format::MAX_DOCUMENT_BYTES;
use crate::provider::compression;
use crate::provider::error::{self, ProviderError};
pub(crate) use crate::provider::image::image_bytes::ImageBytes;
use crate::provider::service::Service;
use crate::provider::{AttemptSpec, Provider};

/// Maximum bytes of a response with one image: the largest image in base64, and some text.
const MAX_ONE_IMAGE_RESPONSE_BYTES: usize = (MAX_IMAGES_BYTES as usize / 3 + 1) * 4 + (1 << 20);

const _: () = assert!(MAX_ONE_IMAGE_RESPONSE_BYTES <= MAX_DOCUMENT_BYTES);

/// The images that a request generates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageSpec<'a> {
    /// The description of the images.
    pub(crate) prompt: &'a str,
    /// The number of images.
    pub(crate) count: u32,
    /// The aspect ratio, such as `16:9`.
    pub(crate) aspect_ratio: Option<&'a str>,
}

/// The API that generates the images.
#[derive(Clone, Copy, Debug)]
enum ImageApi {
    /// Google's `predict`.
    Imagen,
    /// Google's `generateContent`.
    Gemini,
    /// OpenAI's `images/generations`.
    Openai,
}

/// Why a response has no image.
#[derive(Debug, PartialEq, Eq)]
enum ImageError {
    /// The provider withheld the image, for this reason.
    Withheld(String),
    /// The response is malformed.
    Malformed(String),
}

/// Generates images, in as many requests as the model needs. Returns fewer than requested if the
/// provider withholds some, or if a request fails or times out: images that were generated are paid
/// for, so they are kept.
pub(super) async fn generate(
    provider: &Provider,
    spec: AttemptSpec<'_>,
    image_spec: ImageSpec<'_>,
) -> Result<Vec<ImageBytes>, Failure> {
    let Some(wire) = ImageApi::for_model(provider.kind(), spec.model) else {
        return Err(unsupported(&provider.service));
    };
    let shares = split_count(image_spec.count, wire.max_per_request(spec.model));
    let turns: Vec<_> = shares
        .map(|count| request_with_retries(provider, spec, wire, ImageSpec { count, ..image_spec }))
        .collect();
    let mut responses = pin!(stream::iter(turns).buffer_unordered(BATCH_CONCURRENCY));
    let (mut pictures, mut failed) = (Vec::new(), None);
    loop {
        let next = responses.next();
        // A request that times out must not discard the images of other requests.
        let response = if pictures.is_empty() {
            next.await
        } else {
            tokio::time::timeout(spec.timeout, next).await.unwrap_or(None)
        };
        match response {
            Some(Ok(made)) => pictures.extend(made),
            Some(Err(failure)) => failed = failed.or(Some(failure)),
            None => break,
        }
    }
    match failed {
        Some(failure) if pictures.is_empty() => Err(failure),
        _ => {
            pictures.truncate(image_spec.count as usize);
            Ok(pictures)
        }
    }
}

/// Splits `count` images into requests of at most `most` images.
fn split_count(count: u32, most: u32) -> impl Iterator<Item = u32> {
    (0..count).step_by(most as usize).map(move |made| most.min(count - made))
}

/// Sends one request and retries transient errors.
async fn request_with_retries(
    provider: &Provider,
    spec: AttemptSpec<'_>,
    wire: ImageApi,
    image_spec: ImageSpec<'_>,
) -> Result<Vec<ImageBytes>, Failure> {
    let mut tried = 0;
    loop {
        match try_once(provider, spec, wire, image_spec).await {
            Ok(pictures) => return Ok(pictures),
            Err(error) => provider.wait_before_retry(spec, error, tried).await?,
        }
        tried += 1;
    }
}

/// Sends one request with its timeout, which starts after the wait for a place.
async fn try_once(
    provider: &Provider,
    spec: AttemptSpec<'_>,
    wire: ImageApi,
    image_spec: ImageSpec<'_>,
) -> Result<Vec<ImageBytes>, ProviderError> {
    let _place = provider.places.take(spec.owner()).await;
    spec.requests.increment();
    let result =
        tokio::time::timeout(spec.timeout, send(&provider.service, spec, wire, image_spec)).await;
    result.unwrap_or_else(|_| Err(error::timed_out(&provider.service, spec)))
}

async fn send(
    service: &Service,
    spec: AttemptSpec<'_>,
    wire: ImageApi,
    image_spec: ImageSpec<'_>,
) -> Result<Vec<ImageBytes>, ProviderError> {
    let request = wire.request(service, spec.model, image_spec).header(ACCEPT, "application/json");
    let response =
        request.send().await.map_err(|error| error::send_failed(service, spec, &error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let most = MAX_DOCUMENT_BYTES
        .min(MAX_ONE_IMAGE_RESPONSE_BYTES.saturating_mul(image_spec.count as usize));
    // Held until the images are decoded.
    let mut memory = spec.response_memory();
    let body = read_body(service, spec, response, most, &mut memory).await;
    if !status.is_success() {
        // If the message cannot be read, the error still has the status.
        let body = body.unwrap_or_default();
        let text = lenient::decode(&body);
        return Err(match wire.withheld(status, &text) {
            Some(reason) => error::withheld(service, spec, &reason),
            None => error::from_status(service, spec, status, &headers, &text),
        });
    }
    let body = body?;
    let coding = compression::coding(&headers).filter(|_| compression::is_binary(&body));
    // Decoding megabytes of base64 takes milliseconds, which is too long for an async worker.
    let read = tokio::task::spawn_blocking(move || wire.read(&body)).await;
    let unfit = match read {
        Ok(Ok(pictures)) => return Ok(pictures),
        Ok(Err(unfit)) => unfit,
        Err(error) => ImageError::Malformed(format!("decoding it was aborted: {error}")),
    };
    Err(match unfit {
        ImageError::Withheld(reason) => error::withheld(service, spec, &reason),
        ImageError::Malformed(reason) => match coding {
            Some(coding) => error::compressed_response(service, spec, &coding),
            None => error::malformed_response(service, spec, &reason),
        },
    })
}

/// Reads the body of a response, up to `most` bytes, which count as `memory`.
async fn read_body(
    service: &Service,
    spec: AttemptSpec<'_>,
    mut response: Response,
    most: usize,
    memory: &mut ResponseMemory,
) -> Result<Vec<u8>, ProviderError> {
    let mut body = Vec::new();
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(body),
            Err(error) => return Err(error::connection_lost(service, spec, &error)),
        };
        let bytes = body.len() + chunk.len();
        if bytes > most {
            let reason = format!("it has more than {most} bytes");
            return Err(error::malformed_response(service, spec, &reason));
        }
        let counted = memory.set(bytes as u64);
        counted.map_err(|full| error::without_memory(service, spec, full))?;
        body.extend_from_slice(&chunk);
    }
}

impl ImageApi {
    /// Returns the API of a model; `None` if the kind of provider has no API for images. Google has
    /// two APIs; the name of the model determines which of them applies.
    fn for_model(kind: ProviderKind, model: &str) -> Option<Self> {
        match kind {
            ProviderKind::Gemini if model.starts_with("imagen-") => Some(Self::Imagen),
            ProviderKind::Gemini => Some(Self::Gemini),
            ProviderKind::Openai => Some(Self::Openai),
            ProviderKind::Anthropic => None,
        }
    }

    /// Returns the maximum images of one request.
    fn max_per_request(self, model: &str) -> u32 {
        match self {
            Self::Imagen => imagen::MAX_PER_REQUEST,
            Self::Gemini => 1,
            Self::Openai => openai::max_per_request(model),
        }
    }

    fn request(self, service: &Service, model: &str, image_spec: ImageSpec<'_>) -> RequestBuilder {
        let (path, body) = match self {
            Self::Imagen => {
                (format!("models/{}:predict", path_segment(model)), imagen::body(image_spec))
            }
            Self::Gemini => (
                format!("models/{}:generateContent", path_segment(model)),
                gemini::body(image_spec),
            ),
            Self::Openai => ("images/generations".to_owned(), openai::body(model, image_spec)),
        };
        service.post(&path).json(&body)
    }

    /// Returns why the provider withheld images, if an error response says so.
    fn withheld(self, status: StatusCode, text: &str) -> Option<String> {
        match self {
            Self::Openai if status == StatusCode::BAD_REQUEST => openai::withheld(text),
            _ => None,
        }
    }

    fn read(self, body: &[u8]) -> Result<Vec<ImageBytes>, ImageError> {
        let document: Value = JsonBudget::default()
            .parse_slice(body)
            .map_err(|error| ImageError::Malformed(error.to_string()))?;
        match self {
            Self::Imagen => imagen::read(&document),
            Self::Gemini => gemini::read(&document),
            Self::Openai => openai::read(&document),
        }
    }
}

impl ImageError {
    fn malformed(reason: &str) -> Self {
        Self::Malformed(reason.to_owned())
    }
}

/// Encodes a model name as one segment of a path, so that no name can select another path.
fn path_segment(model: &str) -> String {
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

fn unsupported(service: &Service) -> Failure {
    let kind = service.kind.name();
    let message = format!(
        "the model provider `{}` generates no images: its kind `{kind}` has no API for them; use a \
         provider of kind `gemini` or `openai` for the route",
        service.name
    );
    Failure::new(code::UNSUPPORTED, message)
        .with_details(serde_json::json!({ "feature": CallKind::GenerateImages.name() }))
}

#[cfg(test)]
mod tests {
    use wattle_run::caller_id::CallerId;
    use wattle_run::memory_budget::DEFAULT_BUDGET;
    use wattle_run::service_memory::ServiceMemory;

    use super::*;

    #[test]
    fn largest_document_fits_into_the_default_memory_of_one_caller() {
        let memory = ServiceMemory::new(DEFAULT_BUDGET.services_bytes);
        memory.response(CallerId::default()).set(MAX_DOCUMENT_BYTES as u64).unwrap();
    }

    #[test]
    fn number_of_images_is_split_into_requests() {
        for (count, most, expected) in
            [(1, 1, vec![1]), (3, 1, vec![1, 1, 1]), (4, 4, vec![4]), (6, 4, vec![4, 2])]
        {
            assert_eq!(split_count(count, most).collect::<Vec<_>>(), expected);
        }
    }
}
