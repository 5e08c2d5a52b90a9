//! Pictures that a model makes.

use serde_json::Value;

use crate::blob::BlobRef;
use crate::failure::Failure;
use crate::host;
use crate::json::Extra;

/// A request for pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageRequest {
    /// Name of the route.
    pub route: String,
    /// What to show.
    pub prompt: String,
    /// How many.
    pub count: u32,
    /// For example `16:9`.
    pub aspect_ratio: Option<String>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl ImageRequest {
    /// One picture.
    pub fn new(route: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            route: route.into(),
            prompt: prompt.into(),
            count: 1,
            aspect_ratio: None,
            extra: Extra::new(),
        }
    }

    /// Several pictures.
    pub fn count(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// Their shape, for example `16:9`.
    pub fn aspect_ratio(mut self, ratio: impl Into<String>) -> Self {
        self.aspect_ratio = Some(ratio.into());
        self
    }

    /// Adds a named value beside the fixed fields: `candidate`, `retries`, `timeout_ms` as of
    /// [`llm::Request`](crate::llm::Request).
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }
}

/// A generated picture.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedImage {
    /// Where its bytes are.
    pub blob: BlobRef,
    /// For example `image/png`.
    pub media_type: String,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl GeneratedImage {
    /// The short path under which the host serves it, as [`blob::link`](crate::blob::link).
    pub fn link(&self) -> &str {
        self.text("link")
    }

    /// The provider that made it.
    pub fn provider(&self) -> &str {
        self.text("provider")
    }

    /// The model that made it.
    pub fn model(&self) -> &str {
        self.text("model")
    }

    fn text(&self, key: &str) -> &str {
        self.extra.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Makes pictures; they go to the blob store.
///
/// ```
/// use wattle_plugin::llm::{self, ImageRequest};
/// use wattle_plugin::{Failure, testing::FakeHost};
///
/// let host = FakeHost::new().images(|_| Ok(vec![("image/png".to_owned(), b"png".to_vec())]));
/// host.run(|| {
///     let images = llm::generate_images(ImageRequest::new("images", "a harbor at dawn"))?;
///     assert_eq!(images[0].media_type, "image/png");
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn generate_images(request: ImageRequest) -> Result<Vec<GeneratedImage>, Failure> {
    host::llm::generate_images(request)
}
