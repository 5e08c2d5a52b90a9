//! Converts errors of statements to failures for guests.

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use serde_json::json;
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;
use wattle_graph::failure::{Failure, code};
use wattle_run::json::bounded::JsonLimit;
use wattle_run::limit::SqlLimits;

/// Maximum bytes of a database's message in a failure. PostgreSQL quotes a value of up to 1 GB in
/// full.
const DATABASE_MESSAGE_BYTES: usize = 2_000;

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum StatementError {
    /// An error of the database or of the connection.
    Database(sqlx::Error),
    /// The statement timed out.
    TimedOut,
    /// A parameter that the dialect cannot represent, with the reason.
    InvalidParameter(String),
    /// The result exceeds a limit of the rule.
    LimitExceeded {
        limit: &'static str,
        allowed: u64,
        /// Number of rows that were read.
        read: u64,
    },
    /// JSON that the database returned exceeds a limit of its memory or of its depth.
    JsonLimit(JsonLimit),
}

impl From<sqlx::Error> for StatementError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<JsonLimit> for StatementError {
    fn from(exceeded: JsonLimit) -> Self {
        Self::JsonLimit(exceeded)
    }
}

/// Runs a statement within its timeout plus `grace`, the time that the database needs to stop the
/// statement.
pub(crate) async fn with_timeout<T, E: Into<StatementError>>(
    limits: &SqlLimits,
    grace: Duration,
    work: impl Future<Output = Result<T, E>> + Send,
) -> Result<T, StatementError> {
    let allowed = Duration::from_millis(limits.timeout_ms).saturating_add(grace);
    match tokio::time::timeout(allowed, work).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(StatementError::TimedOut),
    }
}

/// The operation and the database that a failure message names.
#[derive(Clone, Copy)]
pub(crate) struct OperationContext<'a> {
    pub(crate) operation: &'static str,
    pub(crate) database: &'a str,
}

impl OperationContext<'_> {
    pub(crate) fn failure(self, error: StatementError) -> Failure {
        match error {
            StatementError::TimedOut => self
                .failure_with(code::TIMEOUT, "it exceeded the statement timeout")
                .retryable()
                .with_details(json!({ "limit": "sql.timeout_ms" })),
            StatementError::InvalidParameter(reason) => self.failure_with(code::INVALID, &reason),
            StatementError::LimitExceeded { limit, allowed, read } => {
                self.limit_failure(limit, allowed, read)
            }
            StatementError::JsonLimit(exceeded) => exceeded.to_failure(
                &format!("JSON of database `{}`", self.database),
                "select less, or select the documents as text",
            ),
            StatementError::Database(sqlx::Error::Database(error))
                if is_statement_timeout(error.as_ref()) =>
            {
                self.failure(StatementError::TimedOut)
            }
            StatementError::Database(sqlx::Error::Database(error)) => {
                self.database_failure(error.as_ref())
            }
            StatementError::Database(error) => self.connection_failure(&error),
        }
    }

    fn failure_with(self, code: &str, reason: &str) -> Failure {
        let Self { operation, database } = self;
        Failure::new(code, format!("cannot {operation} database `{database}`: {reason}"))
    }

    fn limit_failure(self, limit: &str, allowed: u64, read: u64) -> Failure {
        let unit = if limit == "sql.rows" { "rows" } else { "bytes" };
        let reason = format!(
            "the result has more than the {allowed} {unit} that are allowed; {read} rows were \
             read; select less, or aggregate the rows"
        );
        let details = json!({ "limit": limit, "allowed": allowed, "read": read });
        self.failure_with(code::LIMIT, &reason).with_details(details)
    }

    /// Converts an error of the connection. Most messages of `sqlx` are omitted, since some of them
    /// quote their input.
    fn connection_failure(self, error: &sqlx::Error) -> Failure {
        tracing::debug!(database = self.database, %error, "database call failed");
        match error {
            sqlx::Error::PoolTimedOut => self
                .failure_with(
                    code::UNAVAILABLE,
                    "no connection became free in time: the database is down, or statements hold \
                     the connections that callers share",
                )
                .retryable(),
            sqlx::Error::Io(error) => self
                .failure_with(
                    code::UNAVAILABLE,
                    &format!("the connection failed ({})", error.kind()),
                )
                .retryable(),
            sqlx::Error::PoolClosed => self.failure_with(code::UNAVAILABLE, "the host is stopping"),
            sqlx::Error::Tls(_) => {
                self.failure_with(code::UNAVAILABLE, "cannot establish a TLS connection")
            }
            sqlx::Error::Protocol(reason) | sqlx::Error::InvalidArgument(reason) => {
                self.failure_with(code::INVALID, reason)
            }
            _ => self.failure_with(code::UNAVAILABLE, "the connection failed").retryable(),
        }
    }

    fn database_failure(self, error: &dyn DatabaseError) -> Failure {
        let message = shortened(error.message());
        if let Some(kind) = constraint_kind(error.kind()) {
            let constraint = constraint_name(error);
            return self
                .failure_with(code::CONFLICT, &message)
                .with_details(json!({ "constraint": constraint, "kind": kind }));
        }
        if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
            let code = postgres_code(error.code());
            let failure = with_retry(self.failure_with(code, &message), code);
            return failure
                .with_details(json!({ "dialect": "postgres", "sqlstate": error.code() }));
        }
        let number: i32 = error.code().and_then(|code| code.parse().ok()).unwrap_or_default();
        let code = sqlite_code(number);
        let mut details = json!({ "dialect": "sqlite", "sqlite_code": number });
        if let Some(limit) = sqlite_limit(number) {
            details["limit"] = limit.into();
        }
        with_retry(self.failure_with(code, &message), code).with_details(details)
    }
}

/// Returns the part of a database's message that a failure contains.
fn shortened(message: &str) -> Cow<'_, str> {
    if message.len() <= DATABASE_MESSAGE_BYTES {
        return Cow::Borrowed(message);
    }
    let end = message.floor_char_boundary(DATABASE_MESSAGE_BYTES);
    Cow::Owned(format!("{}...", &message[..end]))
}

/// Returns true if the database reports that it stopped the statement at its timeout.
pub(crate) fn is_statement_timeout(error: &dyn DatabaseError) -> bool {
    let code = error.code();
    let code = code.as_deref().unwrap_or_default();
    match error.try_downcast_ref::<PgDatabaseError>() {
        Some(_) => postgres_code(code) == code::TIMEOUT,
        None => sqlite_code(code.parse().unwrap_or_default()) == code::TIMEOUT,
    }
}

fn with_retry(failure: Failure, code: &str) -> Failure {
    if matches!(code, code::UNAVAILABLE | code::TIMEOUT) { failure.retryable() } else { failure }
}

fn constraint_kind(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::UniqueViolation => Some("unique"),
        ErrorKind::ForeignKeyViolation => Some("foreign-key"),
        ErrorKind::NotNullViolation => Some("not-null"),
        ErrorKind::CheckViolation => Some("check"),
        ErrorKind::ExclusionViolation => Some("exclusion"),
        _ => None,
    }
}

/// Returns the name of the violated constraint. SQLite reports the name, or the columns, at the end
/// of its message.
fn constraint_name(error: &dyn DatabaseError) -> Option<String> {
    if error.try_downcast_ref::<SqliteError>().is_some() {
        return error.message().split_once("failed: ").map(|(_, name)| name.to_owned());
    }
    let error = error.try_downcast_ref::<PgDatabaseError>()?;
    let column = || Some(format!("{}.{}", error.table()?, error.column()?));
    error.constraint().map(str::to_owned).or_else(column)
}

/// Maps a SQLSTATE: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn postgres_code(state: &str) -> &'static str {
    match state {
        "57014" => code::TIMEOUT,
        "25006" => code::DENIED,
        "40001" | "40P01" | "55P03" => code::UNAVAILABLE,
        _ => match state.get(..2).unwrap_or_default() {
            "08" | "28" | "3D" | "53" | "57" | "58" => code::UNAVAILABLE,
            "23" => code::CONFLICT,
            "XX" => code::INTERNAL,
            _ => code::INVALID,
        },
    }
}

/// Maps a primary result code: <https://www.sqlite.org/rescode.html>.
fn sqlite_code(number: i32) -> &'static str {
    match number & 0xff {
        5 | 6 | 10 | 14 | 15 => code::UNAVAILABLE,
        8 | 23 => code::DENIED,
        9 => code::TIMEOUT,
        7 | 13 | 18 => code::LIMIT,
        19 => code::CONFLICT,
        2 | 11 | 26 => code::INTERNAL,
        _ => code::INVALID,
    }
}

/// Returns the limit that a result code of SQLite reports: memory of all databases, the size of the
/// file, or the length of one value. A full disk has the same result code as a file at its limit.
fn sqlite_limit(number: i32) -> Option<&'static str> {
    match number & 0xff {
        7 => Some("sql.memory"),
        13 => Some("sql.file_bytes"),
        18 => Some("sql.value_bytes"),
        _ => None,
    }
}
