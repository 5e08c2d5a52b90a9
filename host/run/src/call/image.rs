//! Pictures that a model makes.

use serde::{Deserialize, Serialize};
use wattle_graph::failure::Failure;

use crate::call::HostCall;
use crate::call::llm::{Tries, granted};
use crate::gate::Site;
use crate::gate::unwind::Stop;
use crate::grant::Grants;
use crate::ports::Caller;
use crate::ports::blob::BlobRef;

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

impl HostCall for ImageRequest {
    type Answer = Vec<GeneratedImage>;
    const FUNCTION: &'static str = "llm.generate-images";
    const SLOW: bool = true;

    fn summary(&self) -> String {
        self.route.clone()
    }

    fn allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        granted(grants, caller, &self.route)
    }

    async fn perform(&self, site: &Site<'_>) -> Result<Vec<GeneratedImage>, Stop> {
        let ports = site.ports;
        let made = ports.model.generate_images(site.caller, self, ports.blobs.as_ref()).await?;
        let tenant = site.caller.tenant.as_deref();
        let linked = |image: GeneratedImage| GeneratedImage {
            link: ports.links.path(tenant, image.blob),
            ..image
        };
        Ok(made.into_iter().map(linked).collect())
    }
}
