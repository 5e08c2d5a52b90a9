//! What is wrong with the `[mcp]` table.

/// An `[mcp]` table that cannot be used. Each message names the place and what to set there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An address that is none for HTTP.
    #[error(
        "`mcp.{server}.url`: `{url}` is not an address for HTTP; write for example \
         \"https://example.com/mcp\""
    )]
    Url {
        /// The server.
        server: String,
        /// What is written there.
        url: String,
    },
    /// A header that HTTP does not know; its value is not shown.
    #[error(
        "`mcp.{server}.headers.{header}`: name or value cannot be sent over HTTP; use printable \
         ASCII"
    )]
    Header {
        /// The server.
        server: String,
        /// The header.
        header: String,
    },
    /// A header that belongs to the protocol.
    #[error("`mcp.{server}.headers.{header}`: this header is set by the protocol; remove the line")]
    ReservedHeader {
        /// The server.
        server: String,
        /// The header.
        header: String,
    },
    /// A bound outside of what is possible.
    #[error("`mcp.{server}.{key}`: {reason}")]
    Bound {
        /// The server.
        server: String,
        /// The key.
        key: &'static str,
        /// What to set.
        reason: String,
    },
    /// The HTTP client could not be made.
    #[error("`mcp.{server}`: cannot make an HTTP client: {reason}")]
    Client {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
}
