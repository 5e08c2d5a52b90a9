//! Image generation by models.

use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{GeneratedImage, ImageRequest};

use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::hostcall::llm::check_route_grant;
use crate::ports::Caller;

impl HostCall for ImageRequest {
    type Output = Vec<GeneratedImage>;
    const FUNCTION: &'static str = CallKind::GenerateImages.name();
    const LOGS_START: bool = true;

    fn summary(&self) -> String {
        self.route.clone()
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        check_route_grant(grants, caller, &self.route)
    }
}
