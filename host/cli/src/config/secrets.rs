//! `[secrets]` and `[sql.<name>]`: values that come from elsewhere.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SecretSource {
    /// In an environment variable.
    Env(String),
    /// In a file; a line break at its end is not part of it.
    File(PathBuf),
}

impl SecretSource {
    /// The secret's value, or why there is none.
    ///
    /// # Errors
    ///
    /// A sentence that names the variable or file.
    pub fn value(
        &self,
        base: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, String> {
        match self {
            Self::Env(name) => env(name)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| format!("the environment variable `{name}` is not set")),
            Self::File(path) => {
                let path = base.join(path);
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}

/// One `[sql.<name>]`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlConfig {
    /// `sqlite:<path>`, relative to the data folder, or `postgres://user@host/database`.
    pub url: String,
    /// The environment variable that holds the password.
    #[serde(default)]
    pub password_env: Option<String>,
}

/// The address may hold a password.
impl std::fmt::Debug for SqlConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlConfig")
            .field("password_env", &self.password_env)
            .finish_non_exhaustive()
    }
}
