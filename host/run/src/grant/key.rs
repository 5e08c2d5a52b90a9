//! Names of the tables that grant permissions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use wattle_graph::id::{AppName, IdError, PluginName};

/// The name of a table `[grants.<name>]` in the operator's configuration: the name of a plugin, or
/// the names of an app and of its plugin, such as `shop/desk`.
///
/// [`Display`](fmt::Display) writes the name as a key of TOML, in quotes if TOML requires them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GrantKey {
    /// The app to whose plugin the table grants permissions; `None` if the table names no app.
    pub app: Option<AppName>,
    /// The plugin.
    pub plugin: PluginName,
}

impl GrantKey {
    /// Returns the name of the table of a plugin in any app.
    pub fn of_plugin(plugin: &PluginName) -> Self {
        Self { app: None, plugin: plugin.clone() }
    }

    /// Returns the name of the table of a plugin in one app.
    pub fn in_app(app: &AppName, plugin: &PluginName) -> Self {
        Self { app: Some(app.clone()), plugin: plugin.clone() }
    }
}

impl fmt::Display for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { app, plugin } = self;
        let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        match app {
            Some(app) => write!(f, "\"{app}/{plugin}\""),
            None if plugin.as_str().chars().all(is_bare) => write!(f, "{plugin}"),
            None => write!(f, "\"{plugin}\""),
        }
    }
}

impl FromStr for GrantKey {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (app, plugin) = match text.split_once('/') {
            Some((app, plugin)) => (Some(AppName::new(app)?), plugin),
            None => (None, text),
        };
        Ok(Self { app, plugin: PluginName::new(plugin)? })
    }
}

impl TryFrom<String> for GrantKey {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<GrantKey> for String {
    fn from(key: GrantKey) -> Self {
        match key.app {
            Some(app) => format!("{app}/{}", key.plugin),
            None => key.plugin.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_parse_and_print_as_keys_of_toml() {
        for (text, key) in [
            ("std", "std"),
            ("a-b_1", "a-b_1"),
            ("a.b", "\"a.b\""),
            ("\u{e9}t\u{e9}", "\"\u{e9}t\u{e9}\""),
            ("shop/desk", "\"shop/desk\""),
        ] {
            let parsed: GrantKey = text.parse().unwrap();
            assert_eq!((parsed.to_string().as_str(), String::from(parsed).as_str()), (key, text));
        }
        for text in ["", "/", "shop/", "/desk", "shop/desk/x", "1x", "shop/1x", "a b"] {
            assert!(text.parse::<GrantKey>().is_err(), "{text}");
        }
    }
}
