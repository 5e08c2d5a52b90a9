//! Why outbound HTTP cannot be set up.

/// Outbound HTTP that cannot be set up. What guests see are failures, not these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The HTTP client could not be made, as with a user agent that is not a header value.
    #[error("cannot make the HTTP client for guests; check `user_agent`")]
    Client(#[source] reqwest::Error),
    /// A secret that cannot be one.
    #[error("the secret `{name}` {reason}")]
    Secret {
        /// Its name.
        name: String,
        /// What is wrong and what to do.
        reason: &'static str,
    },
}
