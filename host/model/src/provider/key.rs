//! The key of a provider.

use secrecy::{ExposeSecret, SecretString};

/// A key and where it comes from, which messages name instead of it.
pub(crate) enum Key {
    /// None is needed.
    None,
    /// The variable is not set.
    Missing {
        /// Its name.
        variable: String,
    },
    /// The variable's value.
    Variable {
        /// Its name.
        variable: String,
        /// The key.
        value: SecretString,
    },
    /// A tenant's own.
    Tenant(SecretString),
}

impl Key {
    /// An empty variable counts as missing, and white space around a key is never part of it.
    pub(crate) fn read(variable: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let Some(variable) = variable else { return Self::None };
        let value = env(variable).map(|value| value.trim().to_owned());
        let variable = variable.to_owned();
        match value.filter(|value| !value.is_empty()) {
            Some(value) => Self::Variable { variable, value: value.into() },
            None => Self::Missing { variable },
        }
    }

    /// The key itself, for the request only.
    pub(super) fn expose(&self) -> Option<&str> {
        match self {
            Self::Variable { value, .. } | Self::Tenant(value) => Some(value.expose_secret()),
            Self::None | Self::Missing { .. } => None,
        }
    }

    /// What a provider wants that refuses the key, and what to do about it; `place` says how it refused.
    pub(super) fn refused(&self, place: &str) -> String {
        match self {
            Self::None => format!(
                "wants a key ({place}); name its environment variable in `key_env` of the \
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
