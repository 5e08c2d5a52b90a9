//! Pictures of a guide: for which blocks (`target`), of what (`plan`), and from where: found
//! (`unsplash`) or made (`generate`). What both tools share is `step`.

pub(crate) mod generate;
pub(crate) mod plan;
pub(crate) mod step;
pub(crate) mod target;
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

/// A picture of one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImageAsset {
    /// The block.
    pub(crate) block_id: String,
    /// Its title.
    pub(crate) block_title: String,
    /// What was searched for.
    pub(crate) query: String,
    /// What it shows, for who cannot see it.
    pub(crate) alt: String,
    /// Where it is: an address of Unsplash, or a path of this host. Never a data URL.
    pub(crate) image_url: String,
    /// Where it comes from.
    pub(crate) source: ImageSource,
    /// The page of the photograph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_page: Option<String>,
    /// Whom to thank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credit: Option<String>,
    /// Pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) width: Option<u32>,
    /// Pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) height: Option<u32>,
}

impl ImageAsset {
    /// A picture of a planned block, without what only its source knows.
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

/// Where a set of pictures comes from: photographs, as soon as there is one.
pub(crate) fn mode(images: &[ImageAsset]) -> ImageSource {
    let is_found = images.iter().any(|image| image.source == ImageSource::Unsplash);
    if is_found { ImageSource::Unsplash } else { ImageSource::Imagen }
}
