//! Errors of the `[telemetry]` table.

/// An invalid `[telemetry]` table. Each message names the key and a valid value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The URL is not an HTTP URL.
    #[error(
        "`telemetry.otlp`: `{url}` is not an HTTP URL; write for example \
         \"https://langfuse.example/api/public/otel\""
    )]
    Url {
        /// The configured value.
        url: String,
    },
    /// A header is invalid. The message does not show the value of the header.
    #[error(
        "`telemetry.headers.{header}`: name or value cannot be sent over HTTP; use printable ASCII"
    )]
    Header {
        /// Name of the invalid header.
        header: String,
    },
    /// The HTTP client cannot be created.
    #[error("`telemetry`: cannot create an HTTP client: {reason}")]
    Client {
        /// Error of the HTTP library.
        reason: String,
    },
}
