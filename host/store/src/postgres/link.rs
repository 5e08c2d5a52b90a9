//! The way to the server: pools, retries, and what its failures mean.

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

use crate::error::backend;
use crate::urgency::{self, COMMIT_DELAY};

/// Connections for reads and for what is not appended.
const READ_CONNECTIONS: u32 = 8;

/// One to listen, one to tell.
const SIGNAL_CONNECTIONS: u32 = 2;

/// Time to wait for a connection, and for a server that starts.
const CONNECT: Duration = Duration::from_secs(5);

/// A connection that was idle for longer is asked whether it still works before it is used.
const FRESH: Duration = Duration::from_secs(1);

/// How long it may take to answer. A connection that the network dropped without a word is noticed
/// by the system after a quarter of an hour only.
const PING: Duration = Duration::from_secs(3);

/// Attempts at what can be made again without harm, when the connection fails.
const ATTEMPTS: u32 = 5;

/// Pause before the second attempt; it doubles each time up to the last of [`ATTEMPTS`], so a server
/// may take three seconds to come back.
const PAUSE: Duration = Duration::from_millis(200);

/// Longest statement. Far more than any of ours needs, and an end for one that hangs.
const STATEMENT_SECONDS: u64 = 60;

/// How long the answer to one may take: the server has given up by then, so none comes any more.
pub(super) const ANSWER: Duration = Duration::from_secs(STATEMENT_SECONDS + 5);

/// How long a statement waits for a lock before it is made again, with what has changed meanwhile
/// in sight: what a statement knows of the holders is as old as its beginning, and this is a fifth
/// of the shortest lease.
const LOCK: Duration = Duration::from_millis(400);

/// What the server calls a lock that did not become free in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Attempts at what somebody else has locked, each as long as a statement waits for a lock: twenty
/// seconds, in which a large thread is written anew.
pub(super) const HELD_ATTEMPTS: u32 = 50;

/// How long the server waits for the next statement of a transaction: this part of a lease. A host
/// that stands still while it holds locks must lose them sooner than its leases.
const IDLE_SHARE: u32 = 2;

/// The same where nobody waits: in snapshots, and while a thread is written anew that no host has
/// leased. Between two statements of these a large thread is worked through.
pub(super) const UNHURRIED: &str = "SET LOCAL idle_in_transaction_session_timeout TO '30s'";

/// A snapshot of everything, with [`UNHURRIED`], in one way to the server.
const SNAPSHOT: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout TO '30s'";

/// Times that a lease may have. Below it a slow disk or network would lose all leases, above it
/// nobody could wait for a host that died.
const LEASES: RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_hours(1);

/// Statements of writers look rows up by their keys, whatever is in the tables, so they are planned
/// once: to plan the one that writes a group takes longer than to carry it out. The server must not
/// take a plan then that suits tables which are still small.
const BY_KEY: &str = "
    SET plan_cache_mode TO force_generic_plan; SET jit TO off; SET enable_seqscan TO off;
    SET enable_hashjoin TO off; SET enable_mergejoin TO off";

/// Other statements are over sooner than they would be compiled, whatever the server expects.
const READING: &str = "SET jit TO off";

/// Longest name of a schema, as PostgreSQL has it.
const SCHEMA_LIMIT_BYTES: usize = 63;

/// The schema without a setting.
pub const DEFAULT_SCHEMA: &str = "wattle";

/// Where a [`PostgresStore`](crate::PostgresStore) is.
#[derive(Clone)]
pub struct PostgresConfig {
    url: String,
    password: Option<String>,
    schema: String,
    lease: Duration,
    commit_delay: Duration,
}

impl PostgresConfig {
    /// A store by URL: `postgres://user@host/database`, with `sslmode` and the like as parameters.
    pub fn new(url: impl Into<String>) -> Self {
        let lease = Duration::from_millis(LEASE_MS);
        let schema = DEFAULT_SCHEMA.into();
        Self { url: url.into(), password: None, schema, lease, commit_delay: COMMIT_DELAY }
    }

    /// The password, in place of one in the URL.
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// The schema of its tables; `wattle` without it. Several stores can share a database.
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How long this host may be silent before others take its leases, from 2 seconds to an hour;
    /// [`LEASE_MS`] without it. A short one lets others go on sooner when the host dies, a long one
    /// keeps its runs from being taken away while network or server are slow. Hosts may differ.
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long batches for which nobody waits may wait for others to share their transaction, at
    /// most [`COMMIT_DELAY_LIMIT`](crate::urgency::COMMIT_DELAY_LIMIT); [`COMMIT_DELAY`] without it.
    pub fn with_commit_delay(mut self, commit_delay: Duration) -> Self {
        self.commit_delay = commit_delay;
        self
    }

    /// Host and database for messages, without user and password.
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
        urgency::check(self.commit_delay)?;
        // The text of this error can quote the address.
        let options = PgConnectOptions::from_str(&self.url)
            .map_err(|_| "its address is not one of PostgreSQL".to_owned())?;
        let options = options.application_name("wattle").disable_statement_logging();
        Ok(match &self.password {
            Some(password) => options.password(password),
            None => options,
        })
    }
}

/// Shows nothing of the address: it may hold a password.
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
        "`{schema}` is not a name for its schema: use up to {SCHEMA_LIMIT_BYTES} of `a` to `z`, \
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

/// A transaction, or one that was begun for reading.
pub(super) type Begun = Transaction<'static, Postgres>;

/// Connections to one schema of one database.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// For reads and rare writes.
    pub(super) pool: PgPool,
    /// For appends, so that reads never keep them waiting.
    pub(super) writers: PgPool,
    /// For news of threads, which may get lost when the server crashes.
    pub(super) signals: PgPool,
    /// Host and database, for messages.
    pub(super) place: String,
    /// The schema of the tables.
    pub(super) schema: String,
    /// How long this host may be silent.
    pub(super) lease_ms: i64,
    /// How long a writer waits for a server that is away. A host that is silent for less keeps its
    /// threads, so what its runs have done must not be lost sooner.
    pub(super) patience: Duration,
    /// How long batches gather for which nobody waits.
    pub(super) commit_delay: Duration,
}

impl Link {
    /// Connects when first used.
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

    /// All rows of a statement that may run more than once.
    pub(super) async fn rows<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        self.attempt_at(query).await.map_err(while_trying(operation))
    }

    /// The first row of a statement that may run more than once, if the server can carry it out:
    /// one that does much at once it may refuse. `None` if it does.
    pub(super) async fn row_if_able<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Option<Option<PgRow>>, StoreError> {
        match self.attempt_at(query).await {
            Ok(rows) => Ok(Some(rows.into_iter().next())),
            Err(error) if error.as_database_error().is_some() && !is_passing(&error) => {
                tracing::debug!(operation, %error, "checkpoint store goes step by step");
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

    /// The first row of a statement that may run more than once.
    pub(super) async fn row<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Option<PgRow>, StoreError> {
        Ok(self.rows(operation, query).await?.into_iter().next())
    }

    /// A snapshot of everything to read from.
    pub(super) async fn snapshot(&self, operation: &'static str) -> Result<Begun, StoreError> {
        begin(&self.pool, operation, SNAPSHOT).await
    }

    /// A transaction for what is not appended.
    pub(super) async fn transaction(&self, operation: &'static str) -> Result<Begun, StoreError> {
        begin(&self.pool, operation, "BEGIN").await
    }

    /// Attempts to begin a transaction where reads do not keep it waiting.
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

/// What holds for every connection. What was answered as durable must be so, whatever the default
/// of the database is.
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

/// Asks whether a connection still works; one that does not answer in time does not.
pub(super) async fn ping(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    in_time(PING, connection.ping()).await
}

/// An answer of the server; that it does not come in time is a failure of the connection, which
/// must not be used again.
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

/// Codes of the server, beside connection exceptions, that pass: its shutdown and start, idle for
/// too long in a transaction, deadlock, serialization failure, a lock that was not free in time,
/// too many connections.
const PASSING: [&str; 8] =
    ["57P01", "57P02", "57P03", "25P03", "40P01", "40001", LOCK_NOT_AVAILABLE, "53300"];

/// Counts attempts at something that can be made again.
#[derive(Debug)]
pub(super) struct Attempt {
    paused: u32,
    end: End,
    /// Further attempts at what is locked.
    held: u32,
}

/// When no attempt follows any more.
#[derive(Debug)]
enum End {
    /// After so many, with a pause before each but the first one.
    Count(u32),
    /// At a moment.
    Time(Instant),
}

impl Default for Attempt {
    fn default() -> Self {
        Self { paused: 0, end: End::Count(ATTEMPTS), held: HELD_ATTEMPTS }
    }
}

impl Attempt {
    /// Attempts at what is locked. There is none after another failure.
    pub(super) fn at_held(attempts: u32) -> Self {
        Self { paused: 0, end: End::Count(1), held: attempts.saturating_sub(1) }
    }

    /// Attempts for so long, also while no connection becomes free.
    pub(super) fn patient(patience: Duration) -> Self {
        Self { end: End::Time(Instant::now() + patience), ..Self::default() }
    }

    /// Waits for the next attempt, or gives up.
    pub(super) async fn again(
        &mut self,
        operation: &'static str,
        error: sqlx::Error,
    ) -> Result<(), StoreError> {
        if self.may_help(&error).await { Ok(()) } else { Err(failed(operation, &error)) }
    }

    /// Waits for the next attempt; `false` if there is none, or it would fail in the same way.
    async fn may_help(&mut self, error: &sqlx::Error) -> bool {
        // To wait for the lock was pause enough.
        if is_held(error) && self.held > 0 {
            self.held -= 1;
            return true;
        }
        let is_patient = matches!(self.end, End::Time(_));
        let passes = is_passing(error) || (is_patient && has_no_connection(error));
        let may_help = passes && self.pause().await;
        if may_help {
            tracing::debug!(%error, "checkpoint store tries again");
        }
        may_help
    }

    /// Waits for the next attempt; `false` if there is none.
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
    /// The server, perhaps for a while.
    Server(sqlx::Error),
    /// Something that another attempt does not change.
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

/// Whether the same may work a little later: the connection or the server went away, has no room
/// for another connection, or two transactions stood in each other's way.
pub(super) fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| code.starts_with("08") || PASSING.contains(&&*code))
        }
        // A proxy without a server behind it accepts and closes, at any point of the greeting or of
        // an answer. Only a server that is there and wants something else says so by its method.
        sqlx::Error::Protocol(message) => !message.contains("authentication method"),
        sqlx::Error::Tls(error) => error.downcast_ref::<std::io::Error>().is_some(),
        _ => false,
    }
}

/// Whether none of the connections became free, or none could be made: the server refuses them or
/// has no room for another one. Who cannot wait for long has waited long enough then.
pub(super) fn has_no_connection(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut)
}

/// Whether somebody else has locked what is wanted.
pub(super) fn is_held(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| code == LOCK_NOT_AVAILABLE)
}

/// A failure of the server, in the port's words.
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

/// Names the operation that a failure spoiled; for `map_err`.
pub(super) fn while_trying(operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| failed(operation, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_without_showing_them() {
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
    fn what_a_proxy_without_a_server_says_passes() {
        let protocol = |message: &str| sqlx::Error::Protocol(message.to_owned());
        // A connection that is closed after the first byte, as the library tells it.
        assert!(is_passing(&protocol("unexpected response from SSLRequest: 0x00")));
        assert!(is_passing(&protocol("establish: unexpected message: RowDescription")));
        let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        assert!(is_passing(&sqlx::Error::Tls(cut.into())));
        assert!(!is_passing(&protocol("unsupported authentication method: KerberosV5")));
        assert!(!is_passing(&sqlx::Error::Tls("certificate is not trusted".into())));
        assert!(PASSING.contains(&"53300"));
    }

    #[test]
    fn schemas_are_plain_names() {
        for good in ["wattle", "_w2", "w"] {
            check_schema(good).unwrap();
        }
        let long = "a".repeat(SCHEMA_LIMIT_BYTES + 1);
        for bad in ["", "a b", "a\"; DROP", "pg_x", "Wattle", "2x", &long] {
            check_schema(bad).unwrap_err();
        }
    }
}
