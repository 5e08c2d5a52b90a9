//! Settings of webhooks.

use std::time::Duration;

use crate::error::ApiError;
use crate::wire::webhook::{AddressPolicy, AllowRule, SigningKey, WebhookUrl};

/// Pauses before retries. Their sum is about nine hours: longer than most outages, and short enough
/// that the payload is still useful.
pub const RETRY_DELAYS: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(3),
    Duration::from_hours(3),
];

/// Settings of webhooks.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Key that signs requests. Without a key, requests are not signed.
    pub signing_key: Option<SigningKey>,
    /// Private addresses that webhooks may call.
    pub allow: Vec<AllowRule>,
    /// Decides which IP addresses webhooks may call.
    pub address_policy: AddressPolicy,
    /// Pauses before retries; see [`RETRY_DELAYS`].
    pub retry_delays: Vec<Duration>,
}

impl Default for WebhookSettings {
    /// Returns settings without a key, which permit public host names only.
    fn default() -> Self {
        Self {
            signing_key: None,
            allow: Vec::new(),
            address_policy: |_, _| false,
            retry_delays: RETRY_DELAYS.to_vec(),
        }
    }
}

impl WebhookSettings {
    /// Checks that the rules permit a URL. The IP addresses of its host name are checked at each
    /// attempt, because they can change.
    pub(super) fn check(&self, url: &str) -> Result<(), ApiError> {
        self.parse_url(url).map(drop).map_err(ApiError::unprocessable)
    }

    pub(super) fn parse_url(&self, url: &str) -> Result<WebhookUrl, String> {
        WebhookUrl::parse(url, &self.allow, self.address_policy)
    }
}
