//! Errors of the `[mcp]` table.

/// An invalid `[mcp]` table. Each message names the key and a valid value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The URL is not an HTTP URL.
    #[error(
        "`mcp.{server}.url`: `{url}` is not an HTTP URL; write for example \
         \"https://example.com/mcp\""
    )]
    Url {
        /// Name of the server.
        server: String,
        /// The configured value.
        url: String,
    },
    /// A header that cannot be sent. The message does not contain the value of the header.
    #[error(
        "`mcp.{server}.headers.{header}`: name or value cannot be sent over HTTP; use printable \
         ASCII"
    )]
    Header {
        /// Name of the server.
        server: String,
        /// Name of the header.
        header: String,
    },
    /// A header that the protocol sets.
    #[error("`mcp.{server}.headers.{header}`: this header is set by the protocol; remove the line")]
    ReservedHeader {
        /// Name of the server.
        server: String,
        /// Name of the header.
        header: String,
    },
    /// A value outside of its range.
    #[error("`mcp.{server}.{key}`: {reason}")]
    Bound {
        /// Name of the server.
        server: String,
        /// The key below the server.
        key: &'static str,
        /// The valid range.
        reason: String,
    },
    /// The HTTP client cannot be created.
    #[error("`mcp.{server}`: cannot create an HTTP client: {reason}")]
    Client {
        /// Name of the server.
        server: String,
        /// Error of the HTTP library.
        reason: String,
    },
}
