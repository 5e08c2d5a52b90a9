//! Whether a commit happened whose answer was lost.

use sqlx::Row as _;
use wattle_run::ports::store::StoreError;

use crate::error::backend;
use crate::postgres::link::{Attempt, Begun, Fault, Link};

const OPERATION: &str = "find out whether its last write is durable";

/// Commits; if the answer is lost, asks how it ended.
///
/// # Errors
///
/// [`Fault::Server`] if nothing was written, those of [`has_committed`] otherwise.
pub(super) async fn commit(link: &Link, mut transaction: Begun) -> Result<(), Fault> {
    let id = sqlx::query_scalar("SELECT pg_current_xact_id()::text");
    let id: String = id.fetch_one(&mut *transaction).await?;
    match transaction.commit().await {
        Err(error) if !has_committed(link, &id).await? => Err(error.into()),
        _ => Ok(()),
    }
}

/// Asks the server how a transaction ended; waits while it has not.
///
/// # Errors
///
/// [`StoreError::Backend`] if it cannot be found out.
pub(super) async fn has_committed(link: &Link, transaction: &str) -> Result<bool, StoreError> {
    let mut attempt = Attempt::default();
    loop {
        let status = || sqlx::query("SELECT pg_xact_status($1::text::xid8)").bind(transaction);
        let row = link.row(OPERATION, status).await?;
        let status: Option<String> = row.and_then(|row| row.try_get(0).ok()).flatten();
        match status.as_deref() {
            Some("committed") => return Ok(true),
            Some("aborted") => return Ok(false),
            // The server has not noticed yet that nobody listens any more.
            Some("in progress") if attempt.pause().await => {}
            status => {
                let status = status.unwrap_or("unknown");
                return Err(backend(OPERATION, format!("the server calls it {status}")));
            }
        }
    }
}
