//! Errors of the setup of outbound HTTP.

/// Errors of [`OutboundHttp::new`](crate::OutboundHttp::new), [`Secrets::new`](crate::Secrets::new)
/// and [`Secrets::with_tokens`](crate::Secrets::with_tokens). Guests receive failures, not these
/// errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The HTTP client cannot be created, for example because the user agent is not a valid header
    /// value.
    #[error("cannot create the HTTP client for guests: {0}")]
    Client(#[source] reqwest::Error),
    /// A secret or its name is invalid.
    #[error("the secret `{name}` {reason}")]
    Secret {
        /// Name of the secret.
        name: String,
        /// What is wrong, and how to fix it.
        reason: &'static str,
    },
}
