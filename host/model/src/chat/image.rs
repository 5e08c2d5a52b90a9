//! Images of a model call. Blobs are read once and kept as base64 for all attempts.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{CompletionRequest, Image, ImageSource, Part, picture_type};
use wattle_run::ports::BlobStore;
use wattle_run::ports::blob::BlobRef;

use crate::config::ProviderKind;

/// Maximum bytes of all images of one call: the inline limit of Gemini, which is the lowest of all
/// providers.
pub(crate) const MAX_IMAGES_BYTES: u64 = 20 << 20;

/// Number of leading base64 characters that are enough to detect the type of an image.
const TYPE_PREFIX_CHARS: usize = 16;

/// The data of an image in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImageData {
    /// Inline, as base64.
    Base64(Arc<str>),
    /// A URL that the provider fetches.
    Url(String),
}

/// The blobs of one call, as base64.
#[derive(Debug, Default)]
pub(crate) struct LoadedImages {
    blobs: HashMap<BlobRef, Arc<str>>,
}

impl LoadedImages {
    /// Reads every blob that the request names, and checks the total size of the images.
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
                    check_total(total)?;
                    if !pictures.blobs.contains_key(blob) {
                        pictures.blobs.insert(*blob, load_base64(*blob, blobs).await?);
                    }
                }
            }
            check_total(total)?;
        }
        Ok(pictures)
    }

    /// Returns the media type and the data of an image. For inline data the media type is detected
    /// from the bytes, because providers reject an image with a wrong type.
    pub(crate) fn resolve(&self, image: &Image) -> Result<(String, ImageData), Failure> {
        match &image.source {
            ImageSource::Blob(blob) => {
                let bytes = self.blobs.get(blob).cloned().ok_or_else(|| {
                    Failure::internal(format!("the image `{blob}` was not loaded before its use"))
                })?;
                let declared = parse_media_type(&image.media_type)?;
                Ok((detect_type(&bytes).map_or(declared, str::to_owned), ImageData::Base64(bytes)))
            }
            ImageSource::Url(url) if is_data(url) => data_url(url),
            ImageSource::Url(url) => {
                Ok((parse_media_type(&image.media_type)?, ImageData::Url(url.clone())))
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

fn check_total(total: u64) -> Result<(), Failure> {
    if total <= MAX_IMAGES_BYTES {
        return Ok(());
    }
    Err(Failure::new(
        code::LIMIT,
        format!(
            "the images of one model call must not exceed {MAX_IMAGES_BYTES} bytes; send fewer or \
             smaller ones"
        ),
    )
    .with_details(json!({ "limit": "picture_bytes", "allowed": MAX_IMAGES_BYTES })))
}

async fn load_base64(blob: BlobRef, blobs: &dyn BlobStore) -> Result<Arc<str>, Failure> {
    let bytes = blobs.get(blob, 0, None).await?;
    // Encoding megabytes as base64 takes milliseconds, which is too long for an async worker.
    let encoded = tokio::task::spawn_blocking(move || STANDARD.encode(&bytes)).await;
    encoded.map(Arc::from).map_err(|error| {
        Failure::internal(format!("encoding the image `{blob}` was aborted: {error}"))
    })
}

fn is_data(url: &str) -> bool {
    url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

/// Returns the approximate number of bytes in a data URL; 0 for other URLs.
fn data_bytes(url: &str) -> u64 {
    if is_data(url) { url.len() as u64 / 4 * 3 } else { 0 }
}

fn data_url(url: &str) -> Result<(String, ImageData), Failure> {
    let (head, data) = url[5..].split_once(',').unwrap_or_default();
    let Some(kind) = head.strip_suffix(";base64") else {
        return Err(Failure::new(
            code::INVALID,
            "the data URL of an image must have the form `data:image/png;base64,...`",
        ));
    };
    let kind = kind.split(';').next().unwrap_or_default();
    let declared = parse_media_type(kind)?;
    Ok((detect_type(data).map_or(declared, str::to_owned), ImageData::Base64(data.into())))
}

/// Detects the type of an image from the start of its base64 data.
fn detect_type(data: &str) -> Option<&'static str> {
    let head = STANDARD.decode(data.get(..data.len().min(TYPE_PREFIX_CHARS))?).ok()?;
    picture_type(&head)
}

/// Returns the image types that a provider accepts, by its documentation of November 2026.
fn accepted_types(kind: ProviderKind) -> &'static [&'static str] {
    match kind {
        ProviderKind::Openai | ProviderKind::Anthropic => {
            &["image/png", "image/jpeg", "image/webp", "image/gif"]
        }
        ProviderKind::Gemini => {
            &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"]
        }
    }
}

/// Returns the text that replaces an inline image whose type the provider does not accept: the
/// provider would reject this and every later turn of the conversation. Returns `None` for an
/// accepted image and for a URL.
pub(crate) fn unsupported_type_note(
    kind: ProviderKind,
    media_type: &str,
    source: &ImageData,
) -> Option<String> {
    let ImageData::Base64(data) = source else { return None };
    let types = accepted_types(kind);
    let bytes = data.len() / 4 * 3;
    (!types.contains(&media_type)).then(|| {
        let names: Vec<&str> = types.iter().map(|it| it.trim_start_matches("image/")).collect();
        format!(
            "[image {media_type:.80}, {bytes} bytes, not shown: the provider takes {}]",
            names.join(", ")
        )
    })
}

/// Checks that a media type is an image type. Providers silently drop parts of other types.
fn parse_media_type(text: &str) -> Result<String, Failure> {
    let kind = text.trim().to_ascii_lowercase();
    if kind.strip_prefix("image/").is_some_and(|rest| !rest.is_empty()) {
        return Ok(kind);
    }
    Err(Failure::new(
        code::INVALID,
        format!("`{text}` is not the media type of an image; give for example `image/png`"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(url: &str, media_type: &str) -> Result<(String, ImageData), String> {
        let image = Image { source: ImageSource::Url(url.into()), media_type: media_type.into() };
        LoadedImages::default().resolve(&image).map_err(|failure| failure.message)
    }

    #[test]
    fn data_urls_are_parsed_and_other_urls_kept() {
        assert_eq!(
            resolve("data:image/PNG;base64,AAAA", ""),
            Ok(("image/png".into(), ImageData::Base64("AAAA".into())))
        );
        assert_eq!(
            resolve("https://example.com/a.png", "image/png"),
            Ok(("image/png".into(), ImageData::Url("https://example.com/a.png".into())))
        );
        assert!(resolve("data:image/png,AAAA", "").unwrap_err().contains("base64"));
        assert!(resolve("data:text/html;base64,AAAA", "").unwrap_err().contains("text/html"));
        assert!(resolve("https://example.com/a", "application/pdf").is_err());
    }

    #[test]
    fn image_type_is_detected_from_the_bytes() {
        for (data, kind) in [
            ("iVBORw0KGgoAAAA=", "image/png"),
            ("/9j/4AAQSkZJRg==", "image/jpeg"),
            ("R0lGODlhAQABAIA=", "image/gif"),
            ("UklGRiQAAABXRUJQVlA4", "image/webp"),
            ("SUkqAAgAAAA=", "image/tiff"),
            ("AAAA", "image/bmp"),
        ] {
            let url = format!("data:image/bmp;base64,{data}");
            assert_eq!(resolve(&url, "").unwrap().0, kind, "{data}");
        }
    }

    #[test]
    fn image_of_a_type_that_the_provider_refuses_becomes_text() {
        let here = ImageData::Base64("AAAA".into());
        let told = unsupported_type_note(ProviderKind::Anthropic, "image/heic", &here).unwrap();
        let expected =
            "[image image/heic, 3 bytes, not shown: the provider takes png, jpeg, webp, gif]";
        assert_eq!(told, expected);
        assert_eq!(unsupported_type_note(ProviderKind::Gemini, "image/heic", &here), None);
        let there = ImageData::Url("https://example.com/a".into());
        assert_eq!(unsupported_type_note(ProviderKind::Openai, "image/tiff", &there), None);
    }

    #[test]
    fn total_size_of_images_is_limited() {
        assert!(check_total(MAX_IMAGES_BYTES).is_ok());
        let failure = check_total(MAX_IMAGES_BYTES + 1).unwrap_err();
        assert_eq!(failure.code, code::LIMIT);
        assert_eq!(data_bytes("data:image/png;base64,AAAA"), 18);
        assert_eq!(data_bytes("https://example.com"), 0);
    }
}
