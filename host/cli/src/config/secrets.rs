//! `[secrets]`: sources of secrets, whose values are not in the configuration file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use wattle_net::TokenSource;

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SecretSource {
    /// An environment variable.
    Env(String),
    /// A file. Trailing line breaks are not part of the secret.
    File(PathBuf),
    /// A service that issues a managed token. The host authenticates to the service with other
    /// secrets.
    Token(Box<TokenSource>),
}

/// A secret.
#[derive(Clone, Debug)]
pub enum Secret {
    /// A constant string.
    Value(String),
    /// A managed token, which is fetched when a request uses it.
    Token(TokenSource),
}

impl SecretSource {
    /// Returns the secret.
    ///
    /// # Errors
    ///
    /// A message that names the variable or file.
    pub fn value(
        &self,
        base: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Secret, String> {
        match self {
            Self::Token(source) => Ok(Secret::Token(source.as_ref().clone())),
            Self::Env(name) => env(name)
                .filter(|value| !value.is_empty())
                .map(Secret::Value)
                .ok_or_else(|| format!("the environment variable `{name}` is not set")),
            Self::File(path) => {
                let path = base.join(path);
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
                Ok(Secret::Value(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{Secret, SecretSource};

    fn read(text: &str) -> Result<BTreeMap<String, SecretSource>, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn a_secret_is_a_constant_value_or_a_managed_token() {
        let sources = read(
            r#"
            KEY = { env = "VARIABLE" }
            [TOKEN.token]
            url = "https://example.com/token"
            body = "{{secret:KEY}}"
            field = "/data/token"
            invalid = { status = [401] }
            "#,
        )
        .unwrap();
        let env = |name: &str| (name == "VARIABLE").then(|| "value".to_owned());
        let secret = |name: &str| sources[name].value(Path::new(""), &env);
        assert!(matches!(secret("KEY"), Ok(Secret::Value(value)) if value == "value"));
        let Ok(Secret::Token(token)) = secret("TOKEN") else { panic!("no token") };
        assert_eq!(token.refresh_before.as_ms(), 60_000);
        assert_eq!(token.content_type, "application/json");
    }

    #[test]
    fn a_misspelled_source_is_refused() {
        for text in [
            "KEY = { environment = \"A\" }",
            "[T.token]\nurl = \"https://a/\"\nbody = \"\"",
            "[T.token]\nurl = \"https://a/\"\nbody = \"\"\nfield = \"t\"\nexpire_field = \"e\"",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
