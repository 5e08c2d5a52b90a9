//! What is wrong with the `[telemetry]` table.

/// A `[telemetry]` table that cannot be used. Each message names the key and what to set there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An address that is none for HTTP.
    #[error(
        "`telemetry.otlp`: `{url}` is not an address for HTTP; write for example \
         \"https://langfuse.example/api/public/otel\""
    )]
    Url {
        /// What is written there.
        url: String,
    },
    /// A header that HTTP does not know; its value is not shown.
    #[error(
        "`telemetry.headers.{header}`: name or value cannot be sent over HTTP; use printable ASCII"
    )]
    Header {
        /// The header.
        header: String,
    },
    /// The HTTP client could not be made.
    #[error("`telemetry`: cannot make an HTTP client: {reason}")]
    Client {
        /// Why.
        reason: String,
    },
}
