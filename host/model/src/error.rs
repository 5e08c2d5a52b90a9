//! Errors of the `[model]` table.

/// An error of the `[model]` table or of the file with tenant routes. Each message names the key
/// and the correction.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A base URL is invalid.
    #[error(
        "`model.providers.{provider}.base_url`: `{url}` cannot be used: {reason}; write for \
         example \"https://api.openai.com/v1/\""
    )]
    BaseUrl {
        /// The name of the provider.
        provider: String,
        /// The configured URL.
        url: String,
        /// Why the URL is invalid.
        reason: String,
    },
    /// A route names a provider that is not configured.
    #[error(
        "`model.routes.{route}`: there is no provider `{provider}`; add \
         `[model.providers.{provider}]` or use one of: {known}"
    )]
    UnknownProvider {
        /// The name of the route.
        route: String,
        /// The unknown provider.
        provider: String,
        /// The configured providers.
        known: String,
    },
    /// A value of a route is invalid.
    #[error("`model.routes.{route}.{field}`: {reason}")]
    Route {
        /// The key of the route under `[model.routes]`.
        route: String,
        /// The invalid key in the route's table.
        field: &'static str,
        /// The problem and its correction.
        reason: String,
    },
    /// An alias is invalid.
    #[error("`model.aliases.\"{name}\"`: {reason}")]
    Alias {
        /// The model name that the alias replaces.
        name: String,
        /// The problem and its correction.
        reason: String,
    },
    /// The extra fields of a provider are invalid.
    #[error("`model.providers.{provider}.extra`: {reason}")]
    ProviderExtra {
        /// The name of the provider.
        provider: String,
        /// The problem and its correction.
        reason: String,
    },
    /// A header of a provider is invalid.
    #[error("`model.providers.{provider}.headers`: {reason}")]
    ProviderHeader {
        /// The name of the provider.
        provider: String,
        /// The problem and its correction.
        reason: String,
    },
    /// The HTTP client could not be built.
    #[error("cannot build the HTTP client for models: {reason}")]
    Client {
        /// The error of the HTTP library.
        reason: String,
    },
    /// The file with the tenant routes cannot be read or written.
    #[error("cannot {operation} the tenant routes in `{path}`: {reason}")]
    TenantFile {
        /// The failed operation: `read` or `write`.
        operation: &'static str,
        /// The path of the file.
        path: String,
        /// The error, and the correction if there is one.
        reason: String,
    },
}
