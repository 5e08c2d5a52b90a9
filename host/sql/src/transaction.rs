//! Rules for transactions of both dialects.
//!
//! A failed statement fails the transaction. PostgreSQL enforces this itself. SQLite undoes only
//! the statement, or sometimes silently rolls the whole transaction back. After such a rollback,
//! SQLite would commit each further statement separately.

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_run::hostcall::sql::{Executed, Rows, SqlValue};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::{CommitMarker, SqlTransaction};

use crate::backend::Session;
use crate::failure::{OperationContext, StatementError};
use crate::readwrite;
use crate::statement::{Dialect, Statement};

/// An open transaction.
pub(crate) struct OpenTransaction {
    session: Box<dyn Session>,
    database: String,
    dialect: Dialect,
    limits: SqlLimits,
    failed: bool,
}

impl OpenTransaction {
    pub(crate) fn new(
        session: Box<dyn Session>,
        database: &str,
        dialect: Dialect,
        limits: &SqlLimits,
    ) -> Self {
        let (database, limits) = (database.to_owned(), limits.clone());
        Self { session, database, dialect, limits, failed: false }
    }

    fn failure(&self, operation: &'static str, error: StatementError) -> Failure {
        OperationContext { operation, database: &self.database }.failure(error)
    }

    fn ensure_usable(&self) -> Result<(), Failure> {
        if !self.failed {
            return Ok(());
        }
        Err(Failure::new(
            code::CONFLICT,
            format!(
                "a statement of this transaction on database `{}` failed, so the transaction \
                 has failed; roll it back and begin a new one",
                self.database
            ),
        ))
    }

    async fn run(
        &mut self,
        operation: &'static str,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Executed, Failure> {
        self.ensure_usable()?;
        let statement = Statement::check(self.dialect, statement, parameters, &self.limits)?;
        readwrite::check(self.dialect, statement.text)?;
        match self.session.run(&statement, &self.limits).await {
            Ok(executed) => Ok(executed),
            Err(error) => {
                self.failed = true;
                Err(self.failure(operation, error))
            }
        }
    }
}

#[async_trait]
impl SqlTransaction for OpenTransaction {
    async fn claim_marker(&mut self, key: &str) -> Result<Option<Value>, Failure> {
        self.ensure_usable()?;
        match self.session.claim(key).await {
            Ok(answers) => Ok(answers),
            Err(error) => {
                self.failed = true;
                Err(self.failure("look up a transaction of", error))
            }
        }
    }

    async fn query(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<Rows, Failure> {
        self.run("query", statement, parameters).await.map(|executed| executed.returned)
    }

    async fn execute(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Executed, Failure> {
        self.run("write to", statement, parameters).await
    }

    async fn commit(mut self: Box<Self>, marker: Option<&CommitMarker>) -> Result<(), Failure> {
        self.ensure_usable()?;
        if let Some(marker) = marker {
            let marked = self.session.write_marker(marker).await;
            marked.map_err(|error| self.failure("mark a transaction of", error))?;
        }
        let subject = OperationContext { operation: "commit to", database: &self.database };
        self.session.commit().await.map_err(|error| subject.failure(error))
    }

    async fn rollback(self: Box<Self>) -> Result<(), Failure> {
        if self.failed {
            // The transaction can no longer be committed, and the result of a cancelled statement
            // may still arrive. The connection handles both when it is dropped.
            return Ok(());
        }
        let subject = OperationContext { operation: "roll back", database: &self.database };
        self.session.rollback().await.map_err(|error| subject.failure(error))
    }
}
