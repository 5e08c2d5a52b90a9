//! The parts of the API that the endpoints of apps use.

use std::sync::Arc;

use crate::config::ApiConfig;
use crate::stream::parts::StreamParts;

/// The parts of the API that the endpoints of apps use.
#[derive(Clone)]
pub struct AppParts {
    /// Access to the API.
    pub(crate) config: Arc<ApiConfig>,
    /// The engine and the other parts that streams use. A web handler can hand off to a stream.
    pub(crate) streams: StreamParts,
}
