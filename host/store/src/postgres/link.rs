//! Connection pools, retries, and the classification of server errors.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::pool::PoolConnectionMetadata;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPoolOptions, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgPool,
    SqlSafeStr as _, Transaction,
};
use tokio::time::{Instant, timeout};
use wattle_run::ports::store::{LEASE_MS, StoreError};

use crate::commit_delay::{self, DEFAULT_COMMIT_DELAY};
use crate::error::backend;

/// Connections for reads, and for writes other than appends.
const READ_CONNECTIONS: u32 = 8;

/// One connection for `LISTEN`, and one for `NOTIFY`.
const SIGNAL_CONNECTIONS: u32 = 2;

/// Timeout for a connection from the pool, which includes the start of the server.
const CONNECT: Duration = Duration::from_secs(5);

/// A connection that was idle for longer is pinged before it is used.
const FRESH: Duration = Duration::from_secs(1);

/// Timeout of a ping. The operating system takes a quarter of an hour to notice that the network
/// dropped a connection.
const PING: Duration = Duration::from_secs(3);

/// Attempts at an operation that may be repeated, if the connection fails.
const ATTEMPTS: u32 = 5;

/// Delay before the second attempt. It doubles each time up to the last of [`ATTEMPTS`], so that a
/// server has three seconds to come back.
const PAUSE: Duration = Duration::from_millis(200);

/// `statement_timeout` of every connection. No statement of the store comes near it; it ends a
/// statement that hangs.
const STATEMENT_SECONDS: u64 = 60;

/// Timeout for the reply to a statement. The server has ended the statement by then, so no reply
/// follows.
pub(super) const ANSWER: Duration = Duration::from_secs(STATEMENT_SECONDS + 5);

/// `lock_timeout` of every connection: a fifth of the shortest lease. A statement sees the live
/// hosts as of its start, so one that timed out is sent again with a fresh view.
const LOCK: Duration = Duration::from_millis(400);

/// The SQLSTATE of a lock timeout.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Attempts at a statement for which another transaction holds the lock. Each waits for the lock
/// timeout, so all of them take twenty seconds, in which a large thread is rewritten.
pub(super) const HELD_ATTEMPTS: u32 = 50;

/// Divisor of the lease for `idle_in_transaction_session_timeout`. A host that hangs while it holds
/// locks must lose them sooner than its leases.
const IDLE_SHARE: u32 = 2;

/// Idle timeout where no other transaction waits: in snapshots, and in the rewrite of a thread that
/// no host has leased. Their hosts process a large thread between two statements.
pub(super) const UNHURRIED: &str = "SET LOCAL idle_in_transaction_session_timeout TO '30s'";

/// Begins a snapshot of all tables with [`UNHURRIED`], in one round trip.
const SNAPSHOT: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout TO '30s'";

/// Allowed lease durations. With a shorter one a slow disk or network would expire all leases; with
/// a longer one the takeover from a dead host would take too long.
const LEASES: RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_hours(1);

/// Settings of writer connections. Their statements look rows up by key, so the server plans each
/// statement once: planning the append statement takes longer than executing it. The settings
/// exclude plans that are only good while the tables are small.
const BY_KEY: &str = "
    SET plan_cache_mode TO force_generic_plan; SET jit TO off; SET enable_seqscan TO off;
    SET enable_hashjoin TO off; SET enable_mergejoin TO off";

/// Settings of other connections. JIT compilation would take longer than their statements, whatever
/// the server expects.
const READING: &str = "SET jit TO off";

/// Maximum length of a schema name in PostgreSQL.
const SCHEMA_LIMIT_BYTES: usize = 63;

/// The default schema.
pub const DEFAULT_SCHEMA: &str = "wattle";

/// The address of a [`PostgresStore`](crate::PostgresStore) and the settings of this host.
#[derive(Clone)]
pub struct PostgresConfig {
    url: String,
    password: Option<String>,
    schema: String,
    lease: Duration,
    commit_delay: Duration,
}

impl PostgresConfig {
    /// Creates the settings for a URL: `postgres://user@host/database`, with parameters such as
    /// `sslmode`.
    pub fn new(url: impl Into<String>) -> Self {
        let lease = Duration::from_millis(LEASE_MS);
        let schema = DEFAULT_SCHEMA.into();
        Self { url: url.into(), password: None, schema, lease, commit_delay: DEFAULT_COMMIT_DELAY }
    }

    /// Sets the password, in place of one in the URL.
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
    /// Other hosts take over the threads of a host that sends no heartbeat for this duration. A
    /// short one lets them continue sooner after a crash, a long one keeps the leases while network
    /// or server are slow. Hosts may have different durations.
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the commit delay: how long batches that no caller awaits may wait for others to share
    /// their transaction. At most [`MAX_COMMIT_DELAY`](crate::commit_delay::MAX_COMMIT_DELAY), by
    /// default [`DEFAULT_COMMIT_DELAY`].
    pub fn with_commit_delay(mut self, commit_delay: Duration) -> Self {
        self.commit_delay = commit_delay;
        self
    }

    /// Returns host and database for messages, without user and password.
    pub fn place(&self) -> String {
        let options = PgConnectOptions::from_str(&self.url).ok();
        options.map_or_else(|| "PostgreSQL".to_owned(), |options| place(&options))
    }

    fn options(&self) -> Result<PgConnectOptions, String> {
        if !self.url.starts_with("postgres://") && !self.url.starts_with("postgresql://") {
            return Err("its address must begin with `postgres://`".to_owned());
        }
        check_schema(&self.schema)?;
        check_lease(self.lease)?;
        commit_delay::validate(self.commit_delay)?;
        // The text of this error can quote the URL with its password.
        let options = PgConnectOptions::from_str(&self.url)
            .map_err(|_| "its address is not a valid PostgreSQL URL".to_owned())?;
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

fn place(options: &PgConnectOptions) -> String {
    let host = options.get_host();
    match options.get_database() {
        Some(database) => format!("{host}/{database}"),
        None => host.to_owned(),
    }
}

fn check_schema(schema: &str) -> Result<(), String> {
    let starts_well = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let all_good =
        schema.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if starts_well && all_good && !schema.starts_with("pg_") && schema.len() <= SCHEMA_LIMIT_BYTES {
        return Ok(());
    }
    Err(format!(
        "`{schema}` is not valid as its schema: use up to {SCHEMA_LIMIT_BYTES} of `a` to `z`, \
         digits and `_`, beginning with a letter and not with `pg_`"
    ))
}

fn check_lease(lease: Duration) -> Result<(), String> {
    if LEASES.contains(&lease) {
        return Ok(());
    }
    let (from, to) = (LEASES.start().as_secs(), LEASES.end().as_secs());
    let lease_ms = lease.as_millis();
    Err(format!("`lease` is from {from} to {to} seconds, not {lease_ms} ms"))
}

/// An open transaction or snapshot.
pub(super) type Begun = Transaction<'static, Postgres>;

/// Connections to one schema of one database.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// For reads and rare writes.
    pub(super) pool: PgPool,
    /// For appends, so that reads never delay them.
    pub(super) writers: PgPool,
    /// For notifications, which a crash of the server may lose.
    pub(super) signals: PgPool,
    /// Host and database, for messages.
    pub(super) place: String,
    /// The schema of the tables.
    pub(super) schema: String,
    /// Lease duration of this host.
    pub(super) lease_ms: i64,
    /// How long a writer retries while the server is not available: the lease duration. The host
    /// keeps its threads for that long, so the results of their runs must not be lost sooner.
    pub(super) patience: Duration,
    /// How long batches that no caller awaits are held.
    pub(super) commit_delay: Duration,
}

impl Link {
    /// Creates the pools. They connect on first use.
    pub(super) fn new(config: &PostgresConfig, writers: u32) -> Result<Self, StoreError> {
        let options = config.options().map_err(|reason| backend("open its database", reason))?;
        let place = place(&options);
        let durable = set_up(&config.schema, config.lease);
        let hasty = format!("{durable}; SET synchronous_commit TO off");
        let reading = format!("{durable}; {READING}");
        let by_key = format!("{durable}; {BY_KEY}");
        Ok(Self {
            pool: pool(&options, &reading, READ_CONNECTIONS),
            writers: pool(&options, &by_key, writers),
            signals: pool(&options, &hasty, SIGNAL_CONNECTIONS),
            place,
            schema: config.schema.clone(),
            lease_ms: i64::try_from(config.lease.as_millis()).unwrap_or(i64::MAX),
            patience: config.lease,
            commit_delay: config.commit_delay,
        })
    }

    /// Returns all rows of a statement that may run more than once.
    pub(super) async fn rows<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        self.attempt_at(query).await.map_err(sqlx_error(operation))
    }

    /// Returns the first row of a statement that may run more than once, or `None` if the server
    /// rejects the statement. The server may do so if a statement needs too many resources.
    pub(super) async fn row_if_able<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Option<Option<PgRow>>, StoreError> {
        match self.attempt_at(query).await {
            Ok(rows) => Ok(Some(rows.into_iter().next())),
            Err(error) if error.as_database_error().is_some() && !is_passing(&error) => {
                tracing::debug!(operation, %error, "statement rejected, splitting the read");
                Ok(None)
            }
            Err(error) => Err(failed(operation, &error)),
        }
    }

    async fn attempt_at<'q>(
        &self,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut attempt = Attempt::default();
        loop {
            match query().fetch_all(&self.pool).await {
                Err(error) if attempt.may_help(&error).await => {}
                answer => return answer,
            }
        }
    }

    /// Returns the first row of a statement that may run more than once.
    pub(super) async fn row<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Option<PgRow>, StoreError> {
        Ok(self.rows(operation, query).await?.into_iter().next())
    }

    /// Begins a snapshot of all tables.
    pub(super) async fn snapshot(&self, operation: &'static str) -> Result<Begun, StoreError> {
        begin(&self.pool, operation, SNAPSHOT).await
    }

    /// Begins a transaction for writes other than appends.
    pub(super) async fn transaction(&self, operation: &'static str) -> Result<Begun, StoreError> {
        begin(&self.pool, operation, "BEGIN").await
    }

    /// Begins a transaction on a writer connection, without a retry.
    pub(super) async fn group_now(&self) -> Result<Begun, sqlx::Error> {
        self.writers.begin().await
    }
}

fn pool(options: &PgConnectOptions, set_up: &str, connections: u32) -> PgPool {
    let set_up = set_up.to_owned();
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(CONNECT)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            let set_up = set_up.clone();
            Box::pin(async move {
                connection.execute(sqlx::raw_sql(AssertSqlSafe(set_up).into_sql_str())).await?;
                Ok(())
            })
        })
        .before_acquire(|connection, facts| Box::pin(is_alive(connection, facts)))
        .connect_lazy_with(options.clone())
}

/// Settings of every connection. An acknowledged write must be durable, whatever the default of the
/// database is.
fn set_up(schema: &str, lease: Duration) -> String {
    let lock_ms = LOCK.as_millis();
    let idle_ms = (lease / IDLE_SHARE).as_millis();
    format!(
        "SET search_path TO \"{schema}\";
         SET client_min_messages TO warning;
         SET statement_timeout TO '{STATEMENT_SECONDS}s';
         SET lock_timeout TO '{lock_ms}ms';
         SET idle_in_transaction_session_timeout TO '{idle_ms}ms';
         SELECT set_config('synchronous_commit', 'on', false)
         WHERE current_setting('synchronous_commit') = 'off'"
    )
}

async fn is_alive(
    connection: &mut PgConnection,
    facts: PoolConnectionMetadata,
) -> Result<bool, sqlx::Error> {
    if facts.idle_for > FRESH {
        ping(connection).await?;
    }
    Ok(true)
}

/// See [`PostgresStore::away`](crate::PostgresStore::away).
pub(super) async fn away(config: &PostgresConfig) -> Result<Option<StoreError>, StoreError> {
    let options = config.options().map_err(|reason| backend("open its database", reason))?;
    // A pooler may accept a client while it reaches no server.
    let answer = async {
        let mut connection = options.connect().await?;
        connection.execute("SELECT 1").await?;
        connection.close().await
    };
    match in_time(CONNECT, Box::pin(answer)).await {
        Ok(()) => Ok(None),
        Err(error) if is_passing(&error) => Ok(Some(failed("reach its database", &error))),
        Err(error) => Err(failed("reach its database", &error)),
    }
}

/// Pings a connection. A connection that does not respond in time is broken.
pub(super) async fn ping(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    in_time(PING, connection.ping()).await
}

/// Waits for a reply of the server. A timeout is an error of the connection, which must not be used
/// again.
pub(super) async fn in_time<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let answered = timeout(limit, answer).await;
    answered.unwrap_or_else(|_elapsed| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

async fn begin(
    pool: &PgPool,
    operation: &'static str,
    statement: &'static str,
) -> Result<Begun, StoreError> {
    let mut attempt = Attempt::default();
    loop {
        match pool.begin_with(statement).await {
            Ok(transaction) => return Ok(transaction),
            Err(error) => attempt.again(operation, error).await?,
        }
    }
}

/// SQLSTATE codes of transient errors, besides connection exceptions: shutdown and start of the
/// server, idle timeout in a transaction, deadlock, serialization failure, lock timeout, too many
/// connections.
const PASSING: [&str; 8] =
    ["57P01", "57P02", "57P03", "25P03", "40P01", "40001", LOCK_NOT_AVAILABLE, "53300"];

/// Counts the attempts at an operation that may be repeated.
#[derive(Debug)]
pub(super) struct Attempt {
    paused: u32,
    end: End,
    /// Further attempts after a lock timeout.
    held: u32,
}

/// When the attempts end.
#[derive(Debug)]
enum End {
    /// After this number of attempts, with a delay before each but the first one.
    Count(u32),
    /// At this time.
    Time(Instant),
}

impl Default for Attempt {
    fn default() -> Self {
        Self { paused: 0, end: End::Count(ATTEMPTS), held: HELD_ATTEMPTS }
    }
}

impl Attempt {
    /// Retries only after a lock timeout, up to this number of attempts.
    pub(super) fn at_held(attempts: u32) -> Self {
        Self { paused: 0, end: End::Count(1), held: attempts.saturating_sub(1) }
    }

    /// Retries for a duration, also while no connection becomes free.
    pub(super) fn patient(patience: Duration) -> Self {
        Self { end: End::Time(Instant::now() + patience), ..Self::default() }
    }

    /// Waits for the next attempt. Returns the error if none follows.
    pub(super) async fn again(
        &mut self,
        operation: &'static str,
        error: sqlx::Error,
    ) -> Result<(), StoreError> {
        if self.may_help(&error).await { Ok(()) } else { Err(failed(operation, &error)) }
    }

    /// Waits for the next attempt. Returns false if none follows, or if it would fail in the same
    /// way.
    async fn may_help(&mut self, error: &sqlx::Error) -> bool {
        // No further delay is needed, since the attempt has waited for the lock.
        if is_held(error) && self.held > 0 {
            self.held -= 1;
            return true;
        }
        let is_patient = matches!(self.end, End::Time(_));
        let passes = is_passing(error) || (is_patient && has_no_connection(error));
        let may_help = passes && self.pause().await;
        if may_help {
            tracing::debug!(%error, "transient error, retrying");
        }
        may_help
    }

    /// Waits for the next attempt. Returns false if none follows.
    pub(super) async fn pause(&mut self) -> bool {
        self.paused += 1;
        let pause = PAUSE * 2_u32.pow(self.paused.min(ATTEMPTS - 1) - 1);
        let left = match self.end {
            End::Count(attempts) if self.paused < attempts => pause,
            End::Count(_) => return false,
            End::Time(end) => end.saturating_duration_since(Instant::now()),
        };
        if left.is_zero() {
            return false;
        }
        tokio::time::sleep(pause.min(left)).await;
        true
    }
}

/// Why an attempt at a transaction failed.
pub(super) enum Fault {
    /// An error of the server, which may be transient.
    Server(sqlx::Error),
    /// An error that another attempt does not change.
    Store(StoreError),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Server(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Returns true for a transient error: the connection or the server failed, the server has no room
/// for another connection, or two transactions conflicted.
pub(super) fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| code.starts_with("08") || PASSING.contains(&&*code))
        }
        // A proxy without a server behind it accepts a connection and closes it, at any point of
        // the handshake or of a reply. The one other protocol error is that of a server with an
        // unsupported authentication method.
        sqlx::Error::Protocol(message) => !message.contains("authentication method"),
        sqlx::Error::Tls(error) => error.downcast_ref::<std::io::Error>().is_some(),
        _ => false,
    }
}

/// Returns true if no connection became free, or none could be opened: the server refuses them or
/// has no room for another one. A caller that cannot wait long does not retry, since the timeout of
/// the pool has passed.
pub(super) fn has_no_connection(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut)
}

/// Returns true if another transaction holds the lock.
pub(super) fn is_held(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| code == LOCK_NOT_AVAILABLE)
}

/// Converts an error of the server to the type of the port.
pub(super) fn failed(operation: &'static str, error: &sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::PoolClosed => StoreError::Closed,
        sqlx::Error::PoolTimedOut => {
            backend(operation, "no connection to its database became free; is the server up?")
        }
        sqlx::Error::Database(error) => backend(operation, error.message()),
        error => backend(operation, error),
    }
}

/// Returns a function for `map_err` that names the operation that failed.
pub(super) fn sqlx_error(operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| failed(operation, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_urls_are_not_quoted() {
        for url in ["mysql://u:topsecret@h/d", "postgres://u:topsecret@h:port/d"] {
            let config = PostgresConfig::new(url).with_password("topsecret");
            let error = Link::new(&config, 1).unwrap_err().to_string();
            assert!(!error.contains("topsecret"), "{error}");
            assert!(!format!("{config:?}").contains("topsecret"));
        }
        let config = PostgresConfig::new("postgres://ada@db.example/threads");
        assert_eq!(config.place(), "db.example/threads");
    }

    #[test]
    fn errors_of_a_proxy_without_a_server_are_transient() {
        let protocol = |message: &str| sqlx::Error::Protocol(message.to_owned());
        // The error of sqlx for a connection that is closed after the first byte.
        assert!(is_passing(&protocol("unexpected response from SSLRequest: 0x00")));
        assert!(is_passing(&protocol("establish: unexpected message: RowDescription")));
        let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        assert!(is_passing(&sqlx::Error::Tls(cut.into())));
        assert!(!is_passing(&protocol("unsupported authentication method: KerberosV5")));
        assert!(!is_passing(&sqlx::Error::Tls("certificate is not trusted".into())));
        assert!(PASSING.contains(&"53300"));
    }

    #[test]
    fn schema_names_are_validated() {
        for good in ["wattle", "_w2", "w"] {
            check_schema(good).unwrap();
        }
        let long = "a".repeat(SCHEMA_LIMIT_BYTES + 1);
        for bad in ["", "a b", "a\"; DROP", "pg_x", "Wattle", "2x", &long] {
            check_schema(bad).unwrap_err();
        }
    }
}
