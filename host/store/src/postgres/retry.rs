//! Retries, and the classification of errors of the connection and the server.

use std::time::Duration;

use tokio::time::Instant;
use wattle_run::ports::store::StoreError;

use crate::error::backend;

/// Maximum number of attempts at an operation that may be repeated, if the connection fails.
const MAX_ATTEMPTS: u32 = 5;

/// Delay before the second attempt. The delay doubles with each of [`MAX_ATTEMPTS`], so a server
/// has three seconds to become available again.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);

/// The SQLSTATE of a lock timeout.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Maximum number of attempts at a statement while another transaction holds the lock. Each attempt
/// waits for the lock timeout, so all attempts take twenty seconds. A rewrite of a large thread
/// ends within this time.
pub(super) const MAX_LOCK_ATTEMPTS: u32 = 50;

/// SQLSTATE codes of transient errors, besides connection exceptions: shutdown and start of the
/// server, idle timeout in a transaction, deadlock, serialization failure, lock timeout, too many
/// connections.
const TRANSIENT_CODES: [&str; 8] =
    ["57P01", "57P02", "57P03", "25P03", "40P01", "40001", LOCK_NOT_AVAILABLE, "53300"];

/// Counts the attempts at an operation that may be repeated.
#[derive(Debug)]
pub(super) struct RetryState {
    /// Number of delays so far.
    backoffs: u32,
    limit: RetryLimit,
    /// Number of further attempts after lock timeouts.
    lock_timeouts_left: u32,
}

/// When the attempts end.
#[derive(Debug)]
enum RetryLimit {
    /// After this number of attempts, with a delay before each attempt except the first.
    Count(u32),
    /// At this time.
    Time(Instant),
}

impl Default for RetryState {
    fn default() -> Self {
        Self {
            backoffs: 0,
            limit: RetryLimit::Count(MAX_ATTEMPTS),
            lock_timeouts_left: MAX_LOCK_ATTEMPTS,
        }
    }
}

impl RetryState {
    /// Retries only after a lock timeout, up to this number of attempts.
    pub(super) fn on_lock_timeout(attempts: u32) -> Self {
        Self {
            backoffs: 0,
            limit: RetryLimit::Count(1),
            lock_timeouts_left: attempts.saturating_sub(1),
        }
    }

    /// Retries for a duration, even if no connection becomes free.
    pub(super) fn for_duration(timeout: Duration) -> Self {
        Self { limit: RetryLimit::Time(Instant::now() + timeout), ..Self::default() }
    }

    /// Waits for the next attempt. Returns the error if no attempt follows.
    pub(super) async fn wait_or_fail(
        &mut self,
        operation: &'static str,
        error: sqlx::Error,
    ) -> Result<(), StoreError> {
        if self.wait_if_retryable(&error).await {
            Ok(())
        } else {
            Err(to_store_error(operation, &error))
        }
    }

    /// Waits for the next attempt. Returns false if no attempt follows, or if the next attempt
    /// would fail in the same way.
    pub(super) async fn wait_if_retryable(&mut self, error: &sqlx::Error) -> bool {
        // No further delay is needed, since the attempt has waited for the lock.
        if is_lock_timeout(error) && self.lock_timeouts_left > 0 {
            self.lock_timeouts_left -= 1;
            return true;
        }
        let is_timed = matches!(self.limit, RetryLimit::Time(_));
        let is_retryable = is_transient(error) || (is_timed && has_no_connection(error));
        let is_retried = is_retryable && self.backoff().await;
        if is_retried {
            tracing::debug!(%error, "transient error, retrying");
        }
        is_retried
    }

    /// Waits for the next attempt. Returns false if no attempt follows.
    pub(super) async fn backoff(&mut self) -> bool {
        self.backoffs += 1;
        let delay = FIRST_BACKOFF * 2_u32.pow(self.backoffs.min(MAX_ATTEMPTS - 1) - 1);
        let left = match self.limit {
            RetryLimit::Count(attempts) if self.backoffs < attempts => delay,
            RetryLimit::Count(_) => return false,
            RetryLimit::Time(end) => end.saturating_duration_since(Instant::now()),
        };
        if left.is_zero() {
            return false;
        }
        tokio::time::sleep(delay.min(left)).await;
        true
    }
}

/// Why an attempt at a transaction failed.
pub(super) enum TxError {
    /// An error of the connection or the server, which may be transient.
    Database(sqlx::Error),
    /// An error that another attempt does not change.
    Store(StoreError),
}

impl From<sqlx::Error> for TxError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for TxError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Returns true for a transient error: the connection or the server failed, the server accepts no
/// further connection, or two transactions conflicted.
pub(super) fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("08") || TRANSIENT_CODES.contains(&&*code)),
        // A proxy without a server behind it accepts a connection and closes it, at any point of
        // the handshake or of a reply. The only other protocol error is the error for an
        // unsupported authentication method.
        sqlx::Error::Protocol(message) => !message.contains("authentication method"),
        sqlx::Error::Tls(error) => error.downcast_ref::<std::io::Error>().is_some(),
        _ => false,
    }
}

/// Returns true if the pool timed out: no connection became free, or no connection could be opened
/// because the server refuses connections or accepts no further connection. A caller that cannot
/// wait long does not retry, since the timeout of the pool has passed.
pub(super) fn has_no_connection(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut)
}

/// Returns true if another transaction holds the lock.
pub(super) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| code == LOCK_NOT_AVAILABLE)
}

/// Converts an error of the server to a [`StoreError`].
pub(super) fn to_store_error(operation: &'static str, error: &sqlx::Error) -> StoreError {
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
    move |error| to_store_error(operation, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_errors_without_a_backend_are_transient() {
        let protocol = |message: &str| sqlx::Error::Protocol(message.to_owned());
        // The error of sqlx for a connection that is closed after the first byte.
        assert!(is_transient(&protocol("unexpected response from SSLRequest: 0x00")));
        assert!(is_transient(&protocol("establish: unexpected message: RowDescription")));
        let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        assert!(is_transient(&sqlx::Error::Tls(cut.into())));
        assert!(!is_transient(&protocol("unsupported authentication method: KerberosV5")));
        assert!(!is_transient(&sqlx::Error::Tls("certificate is not trusted".into())));
        assert!(TRANSIENT_CODES.contains(&"53300"));
    }
}
