//! Settings of outbound HTTP.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Default number of requests per second to one host, summed over all plugins. Services expect far
/// fewer requests from one client, so usually only a guest in an endless loop exceeds the rate.
pub const DEFAULT_REQUESTS_PER_SECOND: NonZeroU32 = NonZeroU32::new(50).expect("50 is not 0");

/// Default number of requests to one host that may exceed the rate in a burst.
pub const DEFAULT_BURST: NonZeroU32 = NonZeroU32::new(200).expect("200 is not 0");

/// Default `User-Agent` of requests.
pub const DEFAULT_USER_AGENT: &str = concat!("wattle/", env!("CARGO_PKG_VERSION"));

/// Settings of outbound HTTP. The defaults suit most deployments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetConfig {
    /// `User-Agent` of requests without one; [`DEFAULT_USER_AGENT`] by default.
    pub user_agent: String,
    /// Requests per second to one host; [`DEFAULT_REQUESTS_PER_SECOND`] by default. A request above
    /// the rate waits.
    pub requests_per_second: NonZeroU32,
    /// Requests to one host that may exceed the rate in a burst; [`DEFAULT_BURST`] by default.
    pub burst: NonZeroU32,
}

impl Default for NetConfig {
    fn default() -> Self {
        Self {
            user_agent: DEFAULT_USER_AGENT.to_owned(),
            requests_per_second: DEFAULT_REQUESTS_PER_SECOND,
            burst: DEFAULT_BURST,
        }
    }
}
