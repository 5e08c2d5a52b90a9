//! Image generation.

use serde_json::Value;

use crate::blob::BlobRef;
use crate::failure::Failure;
use crate::host;
use crate::json::Extra;

/// A request for generated images.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageRequest {
    /// Name of the route.
    pub route: String,
    /// Prompt for the images.
    pub prompt: String,
    /// Number of images.
    pub count: u32,
    /// Aspect ratio, such as `16:9`; `None` selects the default of the provider.
    pub aspect_ratio: Option<String>,
    /// Extension fields.
    pub extra: Extra,
}

impl ImageRequest {
    /// Creates a request for one image.
    pub fn new(route: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            route: route.into(),
            prompt: prompt.into(),
            count: 1,
            aspect_ratio: None,
            extra: Extra::new(),
        }
    }

    /// Sets the number of images.
    pub fn count(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// Sets the aspect ratio, such as `16:9`.
    pub fn aspect_ratio(mut self, ratio: impl Into<String>) -> Self {
        self.aspect_ratio = Some(ratio.into());
        self
    }

    /// Adds an extension field: `candidate`, `retries` or `timeout_ms`, as in
    /// [`llm::Request`](crate::llm::Request).
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }
}

/// A generated image.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedImage {
    /// Blob with the data.
    pub blob: BlobRef,
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// Extension fields.
    pub extra: Extra,
}

impl GeneratedImage {
    /// Returns the path under which the host serves the image, like
    /// [`blob::link`](crate::blob::link). Empty if the host does not provide one.
    pub fn link(&self) -> &str {
        self.text("link")
    }

    /// Returns the name of the provider. Empty if the host does not report it.
    pub fn provider(&self) -> &str {
        self.text("provider")
    }

    /// Returns the name of the model. Empty if the host does not report it.
    pub fn model(&self) -> &str {
        self.text("model")
    }

    fn text(&self, key: &str) -> &str {
        self.extra.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Generates images. The host stores them as blobs.
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
