//! Pictures that a model makes.

use serde::{Deserialize, Serialize};

use crate::id::BlobRef;
use crate::llm::request::Tries;

/// A request for pictures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageRequest {
    /// The route.
    pub route: String,
    /// What to show.
    pub prompt: String,
    /// How many.
    pub count: u32,
    /// Such as `16:9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspect_ratio: Option<String>,
    /// What the caller says of models and attempts in place of the route.
    #[serde(default, skip_serializing_if = "Tries::is_empty")]
    pub tries: Tries,
}

/// A generated picture. Its bytes are in the blob store before anybody hears of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratedImage {
    /// Where its bytes are.
    pub blob: BlobRef,
    /// Such as `image/png`.
    pub media_type: String,
    /// The provider that made it.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// Path under which the host serves it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub link: String,
}
