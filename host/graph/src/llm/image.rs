//! Image generation.

use serde::{Deserialize, Serialize};

use crate::id::BlobRef;
use crate::llm::request::Tries;

/// A request to generate images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageRequest {
    /// Name of the model route.
    pub route: String,
    /// Description of the images.
    pub prompt: String,
    /// Number of images.
    pub count: u32,
    /// Aspect ratio, such as `16:9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspect_ratio: Option<String>,
    /// Overrides of the models and attempts of the route.
    #[serde(default, skip_serializing_if = "Tries::is_empty")]
    pub tries: Tries,
}

/// A generated image. Its bytes are in the blob store before a guest or a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratedImage {
    /// Reference to the bytes.
    pub blob: BlobRef,
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// The provider that generated the image.
    pub provider: String,
    /// The model of the provider.
    pub model: String,
    /// Path under which the host serves the image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub link: String,
}
