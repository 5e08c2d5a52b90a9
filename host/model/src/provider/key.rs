//! The API key of a provider.

use secrecy::{ExposeSecret, SecretString};

/// An API key and its origin. Messages name the origin.
pub(crate) enum ApiKey {
    /// The provider has no `key_env`.
    None,
    /// The environment variable is not set.
    Missing {
        /// The name of the variable.
        variable: String,
    },
    /// The value of an environment variable.
    Variable {
        /// The name of the variable.
        variable: String,
        /// The key.
        value: SecretString,
    },
    /// The key of a tenant.
    Tenant(SecretString),
}

impl ApiKey {
    /// Reads the key from an environment variable. The value is trimmed; an empty value counts as
    /// missing.
    pub(crate) fn from_env(variable: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let Some(variable) = variable else { return Self::None };
        let value = env(variable).map(|value| value.trim().to_owned());
        let variable = variable.to_owned();
        match value.filter(|value| !value.is_empty()) {
            Some(value) => Self::Variable { variable, value: value.into() },
            None => Self::Missing { variable },
        }
    }

    /// Returns the key, for requests only.
    pub(super) fn expose(&self) -> Option<&str> {
        match self {
            Self::Variable { value, .. } | Self::Tenant(value) => Some(value.expose_secret()),
            Self::None | Self::Missing { .. } => None,
        }
    }

    /// Returns the message for a rejected key: what the provider requires, and the correction.
    /// `place` describes where the provider reported the rejection, such as `status 401`.
    pub(super) fn rejection_message(&self, place: &str) -> String {
        match self {
            Self::None => format!(
                "requires a key ({place}); name its environment variable in `key_env` of the \
                 provider"
            ),
            Self::Missing { variable } | Self::Variable { variable, .. } => {
                format!("refuses the key ({place}); check the environment variable `{variable}`")
            }
            Self::Tenant(_) => {
                format!("refuses the key ({place}); set another `api_key` for the tenant's route")
            }
        }
    }
}
