//! The address of the database and the settings of this host.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use wattle_run::ports::store::LEASE_MS;

use crate::commit_delay::{self, DEFAULT_COMMIT_DELAY};

/// Allowed lease durations. With a shorter duration, leases would expire during a delay of the disk
/// or the network. With a longer duration, the takeover from a dead host would take too long.
const LEASE_RANGE: RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_hours(1);

/// Maximum length of a schema name in PostgreSQL.
const MAX_SCHEMA_NAME_BYTES: usize = 63;

/// The default schema.
pub const DEFAULT_SCHEMA: &str = "wattle";

/// The address of a [`PostgresStore`](crate::PostgresStore) and the settings of this host.
#[derive(Clone)]
pub struct PostgresConfig {
    url: String,
    password: Option<String>,
    pub(super) schema: String,
    pub(super) lease: Duration,
    pub(super) commit_delay: Duration,
}

impl PostgresConfig {
    /// Creates the settings for a URL: `postgres://user@host/database`, with parameters such as
    /// `sslmode`.
    pub fn new(url: impl Into<String>) -> Self {
        let lease = Duration::from_millis(LEASE_MS);
        let schema = DEFAULT_SCHEMA.into();
        Self { url: url.into(), password: None, schema, lease, commit_delay: DEFAULT_COMMIT_DELAY }
    }

    /// Sets the password, which replaces a password in the URL.
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets the schema of the tables, by default `wattle`. Several stores can share a database.
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets the lease duration of this host, from 2 seconds to an hour, by default [`LEASE_MS`].
    /// Other hosts take over the threads of a host that sends no heartbeat for this duration. With
    /// a short lease, other hosts continue sooner after a crash. With a long lease, this host keeps
    /// its threads while the network or the server is slow. Hosts may have different durations.
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the commit delay: how long batches that no caller awaits may wait for other batches to
    /// share their transaction. At most
    /// [`MAX_COMMIT_DELAY`](crate::commit_delay::MAX_COMMIT_DELAY), by default
    /// [`DEFAULT_COMMIT_DELAY`].
    pub fn with_commit_delay(mut self, commit_delay: Duration) -> Self {
        self.commit_delay = commit_delay;
        self
    }

    /// Returns host and database for messages, without user and password.
    pub fn display_url(&self) -> String {
        let options = PgConnectOptions::from_str(&self.url).ok();
        options.map_or_else(|| "PostgreSQL".to_owned(), |options| display_url(&options))
    }

    pub(super) fn options(&self) -> Result<PgConnectOptions, String> {
        if !self.url.starts_with("postgres://") && !self.url.starts_with("postgresql://") {
            return Err("the URL of the database must begin with `postgres://`".to_owned());
        }
        check_schema(&self.schema)?;
        check_lease(self.lease)?;
        commit_delay::validate(self.commit_delay)?;
        // The text of this error can quote the URL with its password.
        let options = PgConnectOptions::from_str(&self.url)
            .map_err(|_| "the URL of the database is not a valid PostgreSQL URL".to_owned())?;
        let options = options.application_name("wattle").disable_statement_logging();
        Ok(match &self.password {
            Some(password) => options.password(password),
            None => options,
        })
    }
}

/// Hides the URL, which may contain a password.
impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Returns host and database, without user and password.
pub(super) fn display_url(options: &PgConnectOptions) -> String {
    let host = options.get_host();
    match options.get_database() {
        Some(database) => format!("{host}/{database}"),
        None => host.to_owned(),
    }
}

fn check_schema(schema: &str) -> Result<(), String> {
    let starts_with_letter = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let has_valid_chars =
        schema.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if starts_with_letter
        && has_valid_chars
        && !schema.starts_with("pg_")
        && schema.len() <= MAX_SCHEMA_NAME_BYTES
    {
        return Ok(());
    }
    Err(format!(
        "`{schema}` is not a valid schema name: use up to {MAX_SCHEMA_NAME_BYTES} of `a` to `z`, \
         digits and `_`, beginning with a letter and not with `pg_`"
    ))
}

fn check_lease(lease: Duration) -> Result<(), String> {
    if LEASE_RANGE.contains(&lease) {
        return Ok(());
    }
    let (from, to) = (LEASE_RANGE.start().as_secs(), LEASE_RANGE.end().as_secs());
    let lease_ms = lease.as_millis();
    Err(format!("`lease` is from {from} to {to} seconds, not {lease_ms} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_names_are_validated() {
        for good in ["wattle", "_w2", "w"] {
            check_schema(good).unwrap();
        }
        let long = "a".repeat(MAX_SCHEMA_NAME_BYTES + 1);
        for bad in ["", "a b", "a\"; DROP", "pg_x", "Wattle", "2x", &long] {
            check_schema(bad).unwrap_err();
        }
    }
}
