//! Settings of outbound HTTP.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Requests per second to one host, over all plugins: far above what a service expects from one
/// client, so that only a loop notices.
pub const REQUESTS_PER_SECOND: NonZeroU32 = NonZeroU32::new(50).expect("50 is not 0");

/// Requests to one host that may come at once before the rate counts.
pub const BURST: NonZeroU32 = NonZeroU32::new(200).expect("200 is not 0");

/// The name under which requests are made unless a guest gives another.
pub const USER_AGENT: &str = concat!("wattle/", env!("CARGO_PKG_VERSION"));

/// Settings of outbound HTTP; the defaults are good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetConfig {
    /// `User-Agent` of requests without one; [`USER_AGENT`] by default.
    pub user_agent: String,
    /// See [`REQUESTS_PER_SECOND`]. Requests above it wait.
    pub requests_per_second: NonZeroU32,
    /// See [`BURST`].
    pub burst: NonZeroU32,
}

impl Default for NetConfig {
    fn default() -> Self {
        Self {
            user_agent: USER_AGENT.to_owned(),
            requests_per_second: REQUESTS_PER_SECOND,
            burst: BURST,
        }
    }
}
