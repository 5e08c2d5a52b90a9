//! Model routes.

use crate::failure::Failure;
use crate::host;
use crate::json::Extra;

/// The models of a route, without their keys and URLs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteInfo {
    /// Provider of the first candidate.
    pub provider: String,
    /// Model of the first candidate.
    pub model: String,
    /// True if the route has a fallback.
    pub has_fallback: bool,
    /// Extension fields.
    pub extra: Extra,
}

impl RouteInfo {
    /// Returns the number of candidates, at least 1.
    pub fn candidates(&self) -> u32 {
        let count = self.extra.get("candidates").and_then(serde_json::Value::as_u64);
        count.map_or(1 + u32::from(self.has_fallback), |count| count as u32)
    }
}

/// Returns the models of a granted route, for the tenant of the call.
///
/// ```
/// use wattle_plugin::llm::{self, RouteInfo};
/// use wattle_plugin::{Failure, testing::FakeHost};
///
/// let info = RouteInfo { model: "gpt-4o-mini".to_owned(), ..RouteInfo::default() };
/// let host = FakeHost::new().route("chat", info);
/// host.run(|| {
///     assert_eq!(llm::route("chat")?.model, "gpt-4o-mini");
///     assert!(llm::route("vision").is_err());
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn route(name: &str) -> Result<RouteInfo, Failure> {
    host::llm::route(name)
}
