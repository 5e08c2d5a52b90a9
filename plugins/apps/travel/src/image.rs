//! Images of a guide: for which blocks (`target`), with what content (`plan`), and from which
//! source, found (`unsplash`) or generated (`generate`). `tool` has what both image tools share.

pub(crate) mod generate;
pub(crate) mod plan;
pub(crate) mod target;
pub(crate) mod tool;
pub(crate) mod unsplash;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::image::plan::Planned;

/// Where a picture comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageSource {
    /// A photograph of Unsplash.
    Unsplash,
    /// Made by a model.
    Imagen,
}

/// An image of one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImageAsset {
    pub(crate) block_id: String,
    pub(crate) block_title: String,
    /// The search query.
    pub(crate) query: String,
    /// The alternative text.
    pub(crate) alt: String,
    /// A URL of Unsplash, or a path of this host. Never a data URL.
    pub(crate) image_url: String,
    pub(crate) source: ImageSource,
    /// The page of the photograph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_page: Option<String>,
    /// The credit line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credit: Option<String>,
    /// Width in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) width: Option<u32>,
    /// Height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) height: Option<u32>,
}

impl ImageAsset {
    /// Creates an image of a planned block, without the fields that only its source knows.
    fn of(planned: &Planned, source: ImageSource, image_url: String) -> Self {
        Self {
            block_id: planned.block_id.clone(),
            block_title: planned.block_title.clone(),
            query: planned.query.clone(),
            alt: planned.alt.clone(),
            image_url,
            source,
            source_page: None,
            credit: None,
            width: None,
            height: None,
        }
    }
}

/// Returns the source of a set of images: Unsplash if at least one is a photograph.
pub(crate) fn mode(images: &[ImageAsset]) -> ImageSource {
    let is_found = images.iter().any(|image| image.source == ImageSource::Unsplash);
    if is_found { ImageSource::Unsplash } else { ImageSource::Imagen }
}
