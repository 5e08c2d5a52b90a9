//! Image generation by models.

use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{GeneratedImage, ImageRequest};

use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::hostcall::llm::granted;
use crate::ports::Caller;

impl HostCall for ImageRequest {
    type Answer = Vec<GeneratedImage>;
    const FUNCTION: &'static str = CallKind::GenerateImages.name();
    const SLOW: bool = true;

    fn summary(&self) -> String {
        self.route.clone()
    }

    fn allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        granted(grants, caller, &self.route)
    }
}
