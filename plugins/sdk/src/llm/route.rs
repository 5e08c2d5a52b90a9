//! What stands behind a route.

use crate::failure::Failure;
use crate::host;
use crate::json::Extra;

/// Which model stands behind a route. Never a key or an address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteInfo {
    /// The provider that is asked first.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// Whether another model is asked if that one does not answer.
    pub has_fallback: bool,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl RouteInfo {
    /// How many models the route has, 1 or more.
    pub fn candidates(&self) -> u32 {
        let told = self.extra.get("candidates").and_then(serde_json::Value::as_u64);
        told.map_or(1 + u32::from(self.has_fallback), |told| told as u32)
    }
}

/// Describes a route that this plugin was granted, for the tenant of the call.
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
