//! Pictures of a call, read once from the blob store and kept as base64 for every attempt.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{CompletionRequest, Image, ImageSource, Part};
use wattle_run::ports::BlobStore;
use wattle_run::ports::blob::BlobRef;

/// Bytes of all pictures of one call: what Gemini, the strictest of the providers, takes inline.
pub(crate) const PICTURE_BYTES: u64 = 20 << 20;

/// Where a picture's bytes are when a request is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Here, as base64.
    Base64(Arc<str>),
    /// At an address that the provider fetches.
    Address(String),
}

/// The bytes of the blobs of one call.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    blobs: HashMap<BlobRef, Arc<str>>,
}

impl Pictures {
    /// Reads every blob that the request shows, and bounds the bytes of all its pictures.
    pub(crate) async fn load(
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Self, Failure> {
        let mut pictures = Self::default();
        let mut total = 0;
        for image in images(request) {
            match &image.source {
                ImageSource::Url(url) => total += data_bytes(url),
                ImageSource::Blob(blob) => {
                    total += blobs.stat(*blob).await?.size;
                    bounded(total)?;
                    if !pictures.blobs.contains_key(blob) {
                        pictures.blobs.insert(*blob, read(*blob, blobs).await?);
                    }
                }
            }
            bounded(total)?;
        }
        Ok(pictures)
    }

    /// A picture's media type and source.
    pub(crate) fn resolve(&self, image: &Image) -> Result<(String, Source), Failure> {
        match &image.source {
            ImageSource::Blob(blob) => {
                let bytes = self.blobs.get(blob).cloned().ok_or_else(|| {
                    Failure::internal(format!("the picture `{blob}` was not read before its use"))
                })?;
                Ok((media_type(&image.media_type)?, Source::Base64(bytes)))
            }
            ImageSource::Url(url) if is_data(url) => data_url(url),
            ImageSource::Url(url) => {
                Ok((media_type(&image.media_type)?, Source::Address(url.clone())))
            }
        }
    }
}

fn images(request: &CompletionRequest) -> impl Iterator<Item = &Image> {
    request.messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::Image(image) => Some(image),
        _ => None,
    })
}

fn bounded(total: u64) -> Result<(), Failure> {
    if total <= PICTURE_BYTES {
        return Ok(());
    }
    Err(Failure::new(
        code::LIMIT,
        format!(
            "the pictures of one model call may have {PICTURE_BYTES} bytes in all; send fewer or \
             smaller ones"
        ),
    )
    .with_details(json!({ "limit": "picture_bytes", "allowed": PICTURE_BYTES })))
}

async fn read(blob: BlobRef, blobs: &dyn BlobStore) -> Result<Arc<str>, Failure> {
    let bytes = blobs.get(blob, 0, None).await?;
    // Megabytes of base64 take milliseconds: too long for a thread that others wait on.
    let encoded = tokio::task::spawn_blocking(move || STANDARD.encode(&bytes)).await;
    encoded.map(Arc::from).map_err(|error| {
        Failure::internal(format!("encoding the picture `{blob}` was broken off: {error}"))
    })
}

fn is_data(url: &str) -> bool {
    url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

/// Bytes that a data URL holds, near enough for a limit; none for other addresses.
fn data_bytes(url: &str) -> u64 {
    if is_data(url) { url.len() as u64 / 4 * 3 } else { 0 }
}

fn data_url(url: &str) -> Result<(String, Source), Failure> {
    let (head, data) = url[5..].split_once(',').unwrap_or_default();
    let Some(kind) = head.strip_suffix(";base64") else {
        return Err(Failure::new(
            code::INVALID,
            "a picture's data URL must have the form `data:image/png;base64,...`",
        ));
    };
    let kind = kind.split(';').next().unwrap_or_default();
    Ok((media_type(kind)?, Source::Base64(data.into())))
}

/// Providers drop parts of other kinds silently, so they are refused here.
fn media_type(text: &str) -> Result<String, Failure> {
    let kind = text.trim().to_ascii_lowercase();
    if kind.strip_prefix("image/").is_some_and(|rest| !rest.is_empty()) {
        return Ok(kind);
    }
    Err(Failure::new(
        code::INVALID,
        format!("`{text}` is not the media type of a picture; give for example `image/png`"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(url: &str, media_type: &str) -> Result<(String, Source), String> {
        let image = Image { source: ImageSource::Url(url.into()), media_type: media_type.into() };
        Pictures::default().resolve(&image).map_err(|failure| failure.message)
    }

    #[test]
    fn takes_data_urls_apart_and_leaves_addresses_alone() {
        assert_eq!(
            resolve("data:image/PNG;base64,AAAA", ""),
            Ok(("image/png".into(), Source::Base64("AAAA".into())))
        );
        assert_eq!(
            resolve("https://example.com/a.png", "image/png"),
            Ok(("image/png".into(), Source::Address("https://example.com/a.png".into())))
        );
        assert!(resolve("data:image/png,AAAA", "").unwrap_err().contains("base64"));
        assert!(resolve("data:text/html;base64,AAAA", "").unwrap_err().contains("text/html"));
        assert!(resolve("https://example.com/a", "application/pdf").is_err());
    }

    #[test]
    fn bounds_all_pictures_together() {
        assert!(bounded(PICTURE_BYTES).is_ok());
        let failure = bounded(PICTURE_BYTES + 1).unwrap_err();
        assert_eq!(failure.code, code::LIMIT);
        assert_eq!(data_bytes("data:image/png;base64,AAAA"), 18);
        assert_eq!(data_bytes("https://example.com"), 0);
    }
}
