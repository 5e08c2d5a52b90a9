//! Tests of the budget and the records of statements.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, advance};
use wattle_graph::definition::HeartbeatSource;

use super::*;
use crate::grant::SqlRule;
use crate::limit::{JSON_DEPTH, Limits};

/// The query with a row that is nested too deeply for the journal.
const DEEP: &str = "SELECT deep";

/// A database whose statements have no rows, except for [`DEEP`].
struct EmptyDatabase;

#[async_trait]
impl Sql for EmptyDatabase {
    async fn dialect(&self, _: &str) -> Result<&'static str, Failure> {
        Ok("sqlite")
    }

    async fn query(
        &self,
        _: CallerId,
        _: &str,
        _: &SqlRule,
        _: &SqlLimits,
        _: &str,
        _: &[SqlValue],
    ) -> Result<Rows, Failure> {
        Ok(Rows::default())
    }

    async fn begin(
        &self,
        _: CallerId,
        _: &str,
        _: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        Ok(Box::new(Self))
    }
}

#[async_trait]
impl SqlTransaction for EmptyDatabase {
    async fn claim_marker(&mut self, _: &str) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    async fn query(&mut self, text: &str, _: &[SqlValue]) -> Result<Rows, Failure> {
        let deep = || (0..JSON_DEPTH).fold(json!(0), |inner, _| json!([inner]));
        let rows = if text == DEEP { vec![vec![SqlValue::Json(deep())]] } else { Vec::new() };
        Ok(Rows { rows, ..Rows::default() })
    }

    async fn execute(&mut self, _: &str, _: &[SqlValue]) -> Result<Executed, Failure> {
        Ok(Executed::default())
    }

    async fn commit(self: Box<Self>, _: Option<&CommitMarker>) -> Result<(), Failure> {
        Ok(())
    }

    async fn rollback(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

fn budget() -> StatementBudget {
    let limits = Limits { host_calls: 10, host_call_bytes: 1_000, ..Limits::default() };
    let caller = Caller {
        app: "shop".parse().unwrap(),
        plugin: "desk".parse().unwrap(),
        tenant: None,
        owner: CallerId::default(),
    };
    StatementBudget {
        budget: Arc::default(),
        heartbeat: None,
        grants: Arc::new(Grants { limits, ..Grants::default() }),
        caller,
        allowed_journal_bytes: None,
    }
}

/// Returns a transaction without a journal entry, as a web handler has it.
fn transaction() -> Transaction {
    let database = DatabaseHandle {
        sql: Arc::new(EmptyDatabase),
        owner: CallerId::default(),
        database: "db".to_owned(),
        limits: SqlLimits::default(),
    };
    Transaction {
        mode: Mode::Live(Some(Box::new(EmptyDatabase))),
        statements: Vec::new(),
        next_statement: 0,
        database,
        entry: None,
        budget: budget(),
    }
}

#[tokio::test(start_paused = true)]
async fn statement_of_a_transaction_is_a_task_heartbeat() {
    let (begun, idle) = (Instant::now(), Duration::from_millis(80));
    let heartbeat = TaskHeartbeat::new(HeartbeatSource::Auto, None);
    let budget = StatementBudget { heartbeat: Some(heartbeat.clone()), ..budget() };
    advance(idle / 2).await;
    budget.charge_call().unwrap();
    heartbeat.wait_idle(idle).await;
    assert_eq!(begun.elapsed(), idle / 2 + idle);
}

#[tokio::test]
async fn transaction_without_a_journal_entry_keeps_no_statements() {
    let mut transaction = transaction();
    transaction.query("SELECT 1", Vec::new()).await.unwrap();
    transaction.execute("DELETE FROM item", Vec::new()).await.unwrap();
    assert_eq!(transaction.statements.len(), 0);
    let bytes = transaction.query(&"x".repeat(1_000), Vec::new()).await;
    assert!(matches!(bytes, Err(CallError::Unwind(Unwind::Limit(_)))), "they count: {bytes:?}");
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn statements_of_a_task_count_by_their_weight_in_the_journal() {
    let mut transaction = transaction();
    transaction.budget.allowed_journal_bytes = Some(1_000);
    // A result has no rows and some 60 bytes as text.
    transaction.query("SELECT 1", Vec::new()).await.unwrap();
    let ended = transaction.query("SELECT 1", Vec::new()).await;
    let Err(CallError::Unwind(Unwind::Limit(exceeded))) = ended else { panic!("{ended:?}") };
    assert_eq!(exceeded.details.unwrap()["limit"], "task_journal_bytes");
}

/// A log with such a result could not be read again.
#[tokio::test]
async fn result_that_is_nested_too_deeply_for_the_journal_is_a_failure() {
    let mut transaction = transaction();
    transaction.query(DEEP, Vec::new()).await.unwrap();
    transaction.budget.allowed_journal_bytes = Some(10_000);
    let refused = transaction.query(DEEP, Vec::new()).await;
    let Err(CallError::Failure(failure)) = refused else { panic!("{refused:?}") };
    assert_eq!(failure.code, code::INVALID, "{failure}");
}
