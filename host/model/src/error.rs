//! What is wrong with the `[model]` table.

/// A `[model]` table that cannot be used. Each message names the place and what to set there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A base URL that cannot be one.
    #[error(
        "`model.providers.{provider}.base_url`: `{url}` cannot be used: {reason}; write for \
         example \"https://api.openai.com/v1/\""
    )]
    BaseUrl {
        /// The provider.
        provider: String,
        /// What is written there.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A route leads to a provider that does not exist.
    #[error(
        "`model.routes.{route}`: there is no provider `{provider}`; add \
         `[model.providers.{provider}]` or use one of: {known}"
    )]
    UnknownProvider {
        /// The route.
        route: String,
        /// The provider that is missing.
        provider: String,
        /// The names of those that exist.
        known: String,
    },
    /// A value of a route that makes no sense.
    #[error("`model.routes.{route}.{field}`: {reason}")]
    Route {
        /// The route.
        route: String,
        /// The field.
        field: &'static str,
        /// What to set.
        reason: String,
    },
    /// An alias that cannot be used.
    #[error("`model.aliases.\"{name}\"`: {reason}")]
    Alias {
        /// The name that it replaces.
        name: String,
        /// What to change.
        reason: String,
    },
    /// Fields that cannot be added to a provider's requests.
    #[error("`model.providers.{provider}.extra`: {reason}")]
    ProviderExtra {
        /// The provider.
        provider: String,
        /// What to change.
        reason: String,
    },
    /// A header that cannot be added to a provider's requests.
    #[error("`model.providers.{provider}.headers`: {reason}")]
    ProviderHeader {
        /// The provider.
        provider: String,
        /// What to change.
        reason: String,
    },
    /// The HTTP client could not be made.
    #[error("cannot make an HTTP client for models: {reason}")]
    Client {
        /// Why.
        reason: String,
    },
    /// The file with the tenants' routes cannot be used.
    #[error("cannot {operation} the tenants' routes in `{path}`: {reason}")]
    TenantFile {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: String,
        /// What is wrong with it and what to do.
        reason: String,
    },
}
