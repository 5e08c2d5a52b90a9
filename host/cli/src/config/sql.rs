//! `[sql.<name>]`: databases of apps.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use wattle_graph::definition::HumanDuration;
use wattle_graph::id::AppName;
use wattle_sql::DatabaseConfig;

use crate::config::{ByteSize, ConfigProblem, duration};

/// One `[sql.<name>]`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlConfig {
    /// `sqlite:<path>`, relative to the data folder, or `postgres://user@host/database`.
    pub url: String,
    /// Environment variable with the password.
    #[serde(default)]
    pub password_env: Option<String>,
    /// Apps that may change the database by their migrations.
    #[serde(default)]
    pub migrate: MigrateRule,
    /// Timeout of one migration. Default:
    /// [`MIGRATION_TIMEOUT`](wattle_sql::limit::MIGRATION_TIMEOUT).
    #[serde(default)]
    pub migration_timeout: Option<HumanDuration>,
    /// Maximum size of the file of a SQLite database.
    #[serde(default)]
    pub max_size: Option<ByteSize>,
}

impl SqlConfig {
    /// Returns the settings of the database `name`, and a warning to show to the operator.
    pub fn connection(
        &self,
        name: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> (DatabaseConfig, Option<String>) {
        let mut database = DatabaseConfig::new(&self.url);
        if let Some(timeout) = self.migration_timeout {
            database = database.with_migration_timeout(duration(timeout));
        }
        if let Some(size) = self.max_size {
            database = database.with_max_bytes(size.0);
        }
        let Some(variable) = &self.password_env else { return (database, None) };
        match env(variable) {
            Some(password) => (database.with_password(password), None),
            None => {
                let warning = format!(
                    "database `{name}` has no password: the environment variable `{variable}` is \
                     not set"
                );
                (database, Some(warning))
            }
        }
    }

    /// Adds the problems of the section.
    pub(super) fn check(&self, name: &str, problems: &mut Vec<ConfigProblem>) {
        if self.migration_timeout.is_some_and(|time| time.as_ms() == 0) {
            problems.push(ConfigProblem {
                key: format!("sql.{name}.migration_timeout"),
                message: "with 0, no migration would be applied".into(),
                hint: Some("write a time such as `5m`".into()),
            });
        }
        if self.max_size.is_some() && !self.url.starts_with("sqlite:") {
            problems.push(ConfigProblem {
                key: format!("sql.{name}.max_size"),
                message: "only the file of a SQLite database has a maximum size".into(),
                hint: Some("remove the key".into()),
            });
        }
    }
}

/// The output omits the URL, which can contain a password.
impl fmt::Debug for SqlConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlConfig")
            .field("password_env", &self.password_env)
            .field("migrate", &self.migrate)
            .field("migration_timeout", &self.migration_timeout)
            .field("max_size", &self.max_size)
            .finish_non_exhaustive()
    }
}

/// The apps that may change a database by their migrations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MigrateRule {
    /// `true`: all apps that are granted write access to the database.
    #[default]
    Writers,
    /// `false`: no app, because the schema of the database is maintained in another way. Apps are
    /// loaded without their migrations.
    Nobody,
    /// A list: the listed apps, independently of the grants of their plugins.
    Apps(BTreeSet<AppName>),
}

impl<'de> Deserialize<'de> for MigrateRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MigrateVisitor)
    }
}

struct MigrateVisitor;

impl<'de> Visitor<'de> for MigrateVisitor {
    type Value = MigrateRule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`true`, `false` or a list of apps")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<MigrateRule, E> {
        Ok(if value { MigrateRule::Writers } else { MigrateRule::Nobody })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, apps: A) -> Result<MigrateRule, A::Error> {
        BTreeSet::deserialize(SeqAccessDeserializer::new(apps)).map(MigrateRule::Apps)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::parse;

    fn rule(value: &str) -> Result<MigrateRule, String> {
        let text = format!("[sql.notes]\nurl = \"sqlite:notes.db\"\nmigrate = {value}\n");
        let config = parse(&text, Path::new("/")).map_err(|error| error.to_string())?;
        Ok(config.sql["notes"].migrate.clone())
    }

    #[test]
    fn migrate_permits_writers_nobody_or_the_listed_apps() {
        assert_eq!(rule("true").unwrap(), MigrateRule::Writers);
        assert_eq!(rule("false").unwrap(), MigrateRule::Nobody);
        let notes = AppName::new("notes").unwrap();
        assert_eq!(rule("[\"notes\"]").unwrap(), MigrateRule::Apps([notes].into()));
        for value in ["\"notes\"", "1"] {
            let error = rule(value).unwrap_err();
            assert!(error.contains("`true`, `false` or a list of apps"), "{error}");
            assert!(error.contains("`sql.notes.migrate`"), "{error}");
        }
    }

    #[test]
    fn a_migration_timeout_of_zero_is_refused() {
        let error = rule("true\nmigration_timeout = \"0s\"").unwrap_err();
        assert!(error.contains("`sql.notes.migration_timeout`"), "{error}");
    }

    #[test]
    fn only_sqlite_databases_have_a_maximum_size() {
        let config = |url: &str| {
            let text = format!("[sql.a]\nurl = \"{url}\"\nmax_size = \"1GiB\"");
            parse(&text, Path::new("/")).map_err(|error| error.to_string())
        };
        let size = config("sqlite:a.db").unwrap().sql["a"].max_size;
        assert_eq!(size, Some(ByteSize(1 << 30)));
        let error = config("postgres://u@h/d").unwrap_err();
        assert!(error.contains("`sql.a.max_size`: only the file of a SQLite database"), "{error}");
    }
}
