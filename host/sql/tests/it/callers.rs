//! Callers that share the connections of a database.

use futures::future::{Either, join_all, select};
use futures::poll;
use wattle_kit::need;
use wattle_kit::postgres::Postgres;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::SqlAccess;
use wattle_run::hostcall::sql::SqlValue;
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::Sql as _;

use crate::support::{Fresh, SQLITE_FILE, SQLITE_MEMORY};

/// SQLite has one writer.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_transaction_of_another_caller_is_next() {
    for url in [SQLITE_FILE, SQLITE_MEMORY] {
        let (fresh, limits) = (Fresh::sqlite(url).await, SqlLimits::default());
        let [slow, other] = ["slow", "other"].map(CallerId::of_key);
        let begin = |owner| fresh.databases.begin(owner, "main", &limits);
        let held = begin(slow).await.unwrap();
        let (mut later, mut next) = (begin(slow), begin(other));
        assert!(poll!(later.as_mut()).is_pending() && poll!(next.as_mut()).is_pending());
        drop(held);
        // The other transaction of the slow caller makes no progress meanwhile.
        next.await.unwrap().rollback().await.unwrap();
        later.await.unwrap().rollback().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_one_caller_leave_connections_for_another() {
    let server = need!(Postgres::for_test());
    let (fresh, limits) = (Fresh::postgres(server).await, SqlLimits::default());
    let [slow, other] = ["slow", "other"].map(CallerId::of_key);
    let (databases, rule) = (&fresh.databases, SqlAccess::ReadOnly.into());
    let begin = || databases.begin(slow, "main", &limits);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(begin().await.unwrap());
    }
    // These wait until they time out.
    let further = join_all((0..8).map(|_| begin()));
    let query = databases.query(other, "main", &rule, &limits, "SELECT 1", &[]);
    let rows = match select(further, query).await {
        Either::Left((_, query)) => query.await,
        Either::Right((rows, _)) => rows,
    };
    assert_eq!(rows.unwrap().rows, [[SqlValue::Integer(1)]]);
}
