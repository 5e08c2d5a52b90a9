//! `[store]`: the store of threads.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use wattle_graph::definition::HumanDuration;
use wattle_store::PostgresConfig;
use wattle_store::commit_delay::{self, DEFAULT_COMMIT_DELAY};

/// The kind of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// A file on disk.
    #[default]
    Redb,
    /// Memory. The data is lost when the process ends.
    Memory,
    /// A PostgreSQL database, which several hosts can share. It is selected by `url` or `url_env`.
    #[serde(skip_deserializing)]
    Postgres,
}

/// `[store]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Table")]
pub struct StoreConfig {
    /// Kind of the store.
    pub kind: StoreKind,
    /// The database; only for [`StoreKind::Postgres`].
    pub database: Option<StoreDatabase>,
    /// Commit delay: the maximum time that a batch waits for other batches to share a commit, if no
    /// caller awaits the batch. Default: [`DEFAULT_COMMIT_DELAY`].
    commit_delay: Option<HumanDuration>,
}

impl StoreConfig {
    /// Returns the commit delay.
    pub fn commit_delay(&self) -> Duration {
        self.commit_delay.map_or(DEFAULT_COMMIT_DELAY, |delay| Duration::from_millis(delay.as_ms()))
    }
}

/// The database of a store, and the settings of its connections.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreDatabase {
    address: Address,
    password_env: Option<String>,
    schema: Option<String>,
    lease: Option<HumanDuration>,
}

#[derive(Clone, PartialEq, Eq)]
enum Address {
    Url(String),
    Env(String),
}

/// The section as it is written in TOML.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Table {
    kind: Option<StoreKind>,
    url: Option<String>,
    url_env: Option<String>,
    password_env: Option<String>,
    schema: Option<String>,
    lease: Option<HumanDuration>,
    commit_delay: Option<HumanDuration>,
}

impl TryFrom<Table> for StoreConfig {
    type Error = String;

    fn try_from(table: Table) -> Result<Self, String> {
        let Table { kind, url, url_env, password_env, schema, lease, commit_delay } = table;
        if commit_delay.is_some() && kind == Some(StoreKind::Memory) {
            return Err("`commit_delay` requires a store that survives a restart; remove it, or \
                        `kind = \"memory\"`"
                .into());
        }
        if let Some(delay) = commit_delay {
            commit_delay::validate(Duration::from_millis(delay.as_ms()))?;
        }
        let address = match (url, url_env) {
            (Some(_), Some(_)) => {
                return Err("`url` and `url_env` are both set; use one".into());
            }
            (Some(url), None) => Some(Address::Url(url)),
            (None, name) => name.map(Address::Env),
        };
        let database = address.map(|address| StoreDatabase {
            address,
            password_env: password_env.clone(),
            schema: schema.clone(),
            lease,
        });
        match (database, kind) {
            (Some(_), Some(_)) => Err("`kind` is only for stores without a URL; remove it, or \
                                       `url` and `url_env`"
                .into()),
            (None, _) if password_env.is_some() || schema.is_some() || lease.is_some() => Err(
                "`password_env`, `schema` and `lease` belong to the address of a database; set \
                     `url` or `url_env`"
                    .into(),
            ),
            (Some(database), None) => {
                Ok(Self { kind: StoreKind::Postgres, database: Some(database), commit_delay })
            }
            (None, kind) => {
                Ok(Self { kind: kind.unwrap_or_default(), database: None, commit_delay })
            }
        }
    }
}

impl StoreDatabase {
    /// Returns the settings for the store, and a warning to show to the operator.
    ///
    /// # Errors
    ///
    /// A message if the environment variable with the URL is not set.
    pub fn connection(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(PostgresConfig, Option<String>), String> {
        let url = match &self.address {
            Address::Url(url) => url.clone(),
            Address::Env(name) => env(name)
                .filter(|url| !url.is_empty())
                .ok_or_else(|| format!("the environment variable `{name}` is not set"))?,
        };
        let mut config = PostgresConfig::new(url);
        if let Some(schema) = &self.schema {
            config = config.with_schema(schema);
        }
        if let Some(lease) = self.lease {
            config = config.with_lease(Duration::from_millis(lease.as_ms()));
        }
        let Some(variable) = &self.password_env else { return Ok((config, None)) };
        match env(variable) {
            Some(password) => Ok((config.with_password(password), None)),
            None => {
                let warning = format!(
                    "the store's database has no password: the environment variable `{variable}` \
                     is not set"
                );
                Ok((config, Some(warning)))
            }
        }
    }
}

/// The output omits the URL, which can contain a password.
impl fmt::Debug for StoreDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreDatabase")
            .field("password_env", &self.password_env)
            .field("schema", &self.schema)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<StoreConfig, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_selects_postgresql() {
        for (text, kind) in [
            ("", StoreKind::Redb),
            ("kind = \"memory\"", StoreKind::Memory),
            ("url = \"postgres://h/d\"", StoreKind::Postgres),
            ("url_env = \"URL\"\npassword_env = \"P\"\nschema = \"w\"", StoreKind::Postgres),
            ("url = \"postgres://h/d\"\nlease = \"30s\"", StoreKind::Postgres),
        ] {
            assert_eq!(read(text).unwrap().kind, kind, "{text}");
        }
    }

    #[test]
    fn the_commit_delay_has_a_default() {
        for (text, delay) in [
            ("", DEFAULT_COMMIT_DELAY),
            ("commit_delay = \"0ms\"", Duration::ZERO),
            ("url = \"postgres://h/d\"\ncommit_delay = \"1s\"", Duration::from_secs(1)),
        ] {
            assert_eq!(read(text).unwrap().commit_delay(), delay, "{text}");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        for (text, reason) in [
            ("url = \"a\"\nurl_env = \"b\"", "both set"),
            ("kind = \"redb\"\nurl = \"a\"", "remove it"),
            ("kind = \"redb\"\nschema = \"a\"", "set `url`"),
            ("password_env = \"a\"", "set `url`"),
            ("lease = \"5s\"", "set `url`"),
            ("url = \"a\"\nlease = \"soon\"", "soon"),
            ("kind = \"memory\"\ncommit_delay = \"1ms\"", "survives a restart"),
            ("commit_delay = \"1001ms\"", "at most 1000 ms"),
            ("kind = \"postgres\"", "unknown variant"),
            ("uri = \"a\"", "unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn addresses_come_from_the_environment_and_stay_secret() {
        let store = read("url_env = \"URL\"\npassword_env = \"P\"").unwrap();
        let database = store.database.unwrap();
        let url = |name: &str| (name == "URL").then(|| "postgres://u:topsecret@h/d".to_owned());
        let (config, warning) = database.connection(&url).unwrap();
        assert_eq!(config.display_url(), "h/d");
        assert!(warning.unwrap().contains("`P`"));
        assert!(!format!("{config:?} {database:?}").contains("topsecret"));
        assert!(database.connection(&|_| None).unwrap_err().contains("`URL`"));
    }
}
