//! Configurations (`wattle.toml`) that a test reads, changes by key and writes.
//!
//! Each application ships a configuration for its real services, `wattle.example.toml`. Tests and
//! the demo use that file: [`Configuration::shipped`] reads it, and [`Configuration::use_standins`]
//! replaces the URLs of the services by those of the stand-ins.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use toml::{Table, Value};

use crate::error::Error;

/// The name of the shipped configuration in the folder of an application.
const SHIPPED: &str = "wattle.example.toml";

/// A configuration as a TOML table. Keys are dotted paths, such as `sql.asset.url`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    table: Table,
}

impl Configuration {
    /// Reads the shipped configuration of an application. `root` is the root of the repository.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read, [`Error::Configuration`] if it is not valid
    /// TOML.
    pub fn shipped(root: &Path, app: &str) -> Result<Self, Error> {
        let file = root.join("plugins/apps").join(app).join(SHIPPED);
        let path = || file.display().to_string();
        let text = std::fs::read_to_string(&file)
            .map_err(|source| Error::File { path: path(), source })?;
        Self::parse(&path(), &text)
    }

    /// Parses TOML. `name` is the name of the configuration in errors.
    ///
    /// # Errors
    ///
    /// [`Error::Configuration`] if it is not valid TOML.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let failed = |error: toml::de::Error| Error::Configuration {
            name: name.to_owned(),
            message: error.to_string(),
        };
        Ok(Self { table: text.parse().map_err(failed)? })
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let mut names = key.split('.');
        let first = self.table.get(names.next()?)?;
        names.try_fold(first, |value, name| value.as_table()?.get(name))
    }

    /// Returns the value of a key if it is a string.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Returns the mutable value of a key.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let mut names = key.split('.');
        let first = self.table.get_mut(names.next()?)?;
        names.try_fold(first, |value, name| value.as_table_mut()?.get_mut(name))
    }

    /// Sets the value of a key and returns the previous value. Missing parent tables are created.
    ///
    /// # Panics
    ///
    /// If a parent key has a value that is not a table.
    pub fn insert(&mut self, key: &str, value: impl Into<Value>) -> Option<Value> {
        let (above, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut table = &mut self.table;
        for name in above.split('.').filter(|name| !name.is_empty()) {
            let next = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
            table =
                next.as_table_mut().unwrap_or_else(|| panic!("`{name}` of `{key}` is not a table"));
        }
        table.insert(name.to_owned(), value.into())
    }

    /// Replaces the value of an existing key.
    ///
    /// # Panics
    ///
    /// If the key has no value.
    pub fn replace(&mut self, key: &str, value: impl Into<Value>) {
        let old = self.get_mut(key).unwrap_or_else(|| panic!("`{key}` has no value to replace"));
        *old = value.into();
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        match key.rsplit_once('.') {
            Some((above, name)) => self.get_mut(above)?.as_table_mut()?.remove(name),
            None => self.table.remove(key),
        }
    }

    /// Adds the values of `other` for keys without a value in this configuration.
    pub fn add_missing(&mut self, other: Self) {
        add_missing(&mut self.table, other.table);
    }

    /// Returns the names of the environment variables that contain the keys and secrets of the
    /// configuration.
    pub fn variables(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect_variables(&self.table, &mut names);
        names
    }

    /// Replaces every service by the stand-ins at `base_url`, and relative paths of applications by
    /// absolute ones below `root`. Removes the export of spans and the separate ports of
    /// applications.
    ///
    /// # Errors
    ///
    /// [`Error::Configuration`] if a provider has no stand-in, or `base_url` has no port.
    pub fn use_standins(&mut self, base_url: &str, root: &Path) -> Result<(), Error> {
        let failed = |message| Error::Configuration { name: SHIPPED.to_owned(), message };
        let port: u16 = base_url
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok())
            .ok_or_else(|| failed(format!("the URL `{base_url}` has no port")))?;
        self.remove("telemetry");
        for (name, provider) in self.tables("model.providers") {
            let path = match provider.get("kind").and_then(Value::as_str) {
                Some("openai") => "v1/",
                Some("gemini") => "v1beta/",
                other => {
                    return Err(failed(format!("provider `{name}`: no stand-in for {other:?}")));
                }
            };
            provider.insert("base_url".into(), format!("{base_url}/{path}").into());
        }
        for (name, app) in self.tables("apps") {
            app.remove("listen");
            let path = app.get("path").and_then(Value::as_str);
            let path = path.ok_or_else(|| failed(format!("app `{name}` has no path")))?;
            let path = root.join(path).display().to_string();
            app.insert("path".into(), path.into());
        }
        for (name, server) in self.tables("mcp") {
            server.insert("url".into(), format!("{base_url}/mcp/{name}").into());
            server.insert("private".into(), true.into());
        }
        for (_, grant) in self.tables("grants") {
            let rules = grant.get_mut("http").and_then(Value::as_array_mut);
            for rule in rules.into_iter().flatten().filter_map(Value::as_table_mut) {
                rule.insert("host".into(), "127.0.0.1".into());
                rule.insert("scheme".into(), "http".into());
                rule.insert("port".into(), i64::from(port).into());
                rule.insert("private".into(), true.into());
            }
        }
        self.table.iter_mut().for_each(|(_, value)| replace_addresses(value, base_url));
        Ok(())
    }

    /// Returns the tables below a key, with their names.
    fn tables(&mut self, key: &str) -> impl Iterator<Item = (&String, &mut Table)> {
        let tables = self.get_mut(key).and_then(Value::as_table_mut);
        let all = tables.into_iter().flat_map(|table| table.iter_mut());
        all.filter_map(|(name, value)| Some((name, value.as_table_mut()?)))
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(formatter)
    }
}

fn add_missing(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(known)), Value::Table(more)) => add_missing(known, more),
            (Some(_), _) => {}
            (None, value) => drop(into.insert(key, value)),
        }
    }
}

/// Replaces scheme and host of all other URLs, such as those in settings.
fn replace_addresses(value: &mut Value, base_url: &str) {
    match value {
        Value::String(text) => {
            if let Some(rest) = text.strip_prefix("https://") {
                let path = rest.find('/').map_or("", |at| &rest[at..]);
                *text = format!("{base_url}{path}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_addresses(item, base_url)),
        Value::Table(table) => {
            table.iter_mut().for_each(|(_, value)| replace_addresses(value, base_url));
        }
        _ => {}
    }
}

fn collect_variables(table: &Table, names: &mut BTreeSet<String>) {
    for (key, value) in table {
        match value {
            Value::String(name) if matches!(key.as_str(), "key_env" | "env") => {
                names.insert(name.clone());
            }
            Value::Table(inner) => collect_variables(inner, names),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Configuration {
        Configuration::parse("test", text).unwrap()
    }

    #[test]
    fn services_are_replaced_by_stand_ins() {
        let mut config = parsed(
            r#"
            [model.providers.one]
            kind = "gemini"
            base_url = "https://models.example/v1beta/"
            key_env = "ONE_KEY"
            [mcp.graph]
            url = "https://graph.example/mcp"
            [telemetry]
            otlp = "https://traces.example"
            [secrets]
            TWO = { env = "TWO_KEY" }
            [apps.a]
            path = "plugins/apps/a"
            listen = "127.0.0.1:8701"
            mount = "/"
            settings = { base = "https://data.example/x/y", plain = "text" }
            [grants.a]
            http = [{ host = "data.example", methods = ["GET"] }]
        "#,
        );
        config.use_standins("http://127.0.0.1:9", Path::new("/root")).unwrap();
        assert!(!config.to_string().contains("https://"), "{config}");
        assert_eq!(config.text("model.providers.one.base_url"), Some("http://127.0.0.1:9/v1beta/"));
        assert_eq!(config.text("apps.a.settings.base"), Some("http://127.0.0.1:9/x/y"));
        assert_eq!(config.text("apps.a.settings.plain"), Some("text"));
        assert_eq!(config.text("apps.a.path"), Some("/root/plugins/apps/a"));
        assert_eq!(config.text("apps.a.mount"), Some("/"));
        assert_eq!(config.get("apps.a.listen"), None);
        assert_eq!(config.get("telemetry"), None);
        assert_eq!(config.text("mcp.graph.url"), Some("http://127.0.0.1:9/mcp/graph"));
        let rule = &config.get("grants.a.http").unwrap()[0];
        assert_eq!((rule["port"].as_integer(), rule["private"].as_bool()), (Some(9), Some(true)));
        assert_eq!(rule["methods"][0].as_str(), Some("GET"));
        assert_eq!(config.variables(), ["ONE_KEY", "TWO_KEY"].map(str::to_owned).into());
    }

    #[test]
    fn a_provider_without_a_stand_in_is_an_error() {
        let mut config = parsed("[model.providers.one]\nkind = \"other\"");
        let error = config.use_standins("http://127.0.0.1:9", Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("provider `one`"), "{error}");
    }

    #[test]
    fn values_are_changed_by_key() {
        let mut config = parsed("[a.b]\nc = 1");
        assert_eq!(config.insert("a.b.c", 2), Some(Value::Integer(1)));
        assert_eq!(config.insert("x.y.z", "new"), None);
        config.replace("a.b.c", true);
        assert_eq!(config.remove("x.y.z").unwrap().as_str(), Some("new"));
        assert_eq!(config.remove("no.such.key"), None);
        assert_eq!(parsed(&config.to_string()), config);
        config.add_missing(parsed("[a.b]\nc = 3\nd = 4"));
        assert_eq!(config.get("a.b.c"), Some(&Value::Boolean(true)));
        assert_eq!(config.get("a.b.d"), Some(&Value::Integer(4)));
    }

    #[test]
    #[should_panic(expected = "`a.d` has no value")]
    fn replacing_a_missing_value_panics() {
        parsed("[a]\nc = 1").replace("a.d", 2);
    }
}
