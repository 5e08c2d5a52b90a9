//! Rules for transactions of both dialects.
//!
//! A failed statement fails the transaction. PostgreSQL enforces this itself. SQLite undoes only
//! the statement, or sometimes silently rolls everything back. It would then commit each further
//! statement on its own.

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_run::hostcall::sql::{Executed, Rows, SqlValue};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::{Marker, SqlTransaction};

use crate::backend::Session;
use crate::failure::{Fault, Subject};
use crate::statement::{Dialect, Statement};
use crate::writing;

/// An open transaction.
pub(crate) struct Open {
    session: Box<dyn Session>,
    database: String,
    dialect: Dialect,
    limits: SqlLimits,
    failed: bool,
}

impl Open {
    pub(crate) fn new(
        session: Box<dyn Session>,
        database: &str,
        dialect: Dialect,
        limits: &SqlLimits,
    ) -> Self {
        let (database, limits) = (database.to_owned(), limits.clone());
        Self { session, database, dialect, limits, failed: false }
    }

    fn failure(&self, operation: &'static str, fault: Fault) -> Failure {
        Subject { operation, database: &self.database }.failure(fault)
    }

    fn usable(&self) -> Result<(), Failure> {
        if !self.failed {
            return Ok(());
        }
        Err(Failure::new(
            code::CONFLICT,
            format!(
                "a statement of this transaction on database `{}` failed, and with it the \
                 transaction; roll it back and begin again",
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
        self.usable()?;
        let statement = Statement::check(self.dialect, statement, parameters, &self.limits)?;
        writing::check(self.dialect, statement.text)?;
        match self.session.run(&statement, &self.limits).await {
            Ok(executed) => Ok(executed),
            Err(fault) => {
                self.failed = true;
                Err(self.failure(operation, fault))
            }
        }
    }
}

#[async_trait]
impl SqlTransaction for Open {
    async fn claim(&mut self, key: &str) -> Result<Option<Value>, Failure> {
        self.usable()?;
        match self.session.claim(key).await {
            Ok(answers) => Ok(answers),
            Err(fault) => {
                self.failed = true;
                Err(self.failure("look up a transaction of", fault))
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

    async fn commit(mut self: Box<Self>, marker: Option<&Marker>) -> Result<(), Failure> {
        self.usable()?;
        if let Some(marker) = marker {
            let marked = self.session.mark(marker).await;
            marked.map_err(|fault| self.failure("mark a transaction of", fault))?;
        }
        let subject = Subject { operation: "commit to", database: &self.database };
        self.session.commit().await.map_err(|fault| subject.failure(fault))
    }

    async fn rollback(self: Box<Self>) -> Result<(), Failure> {
        if self.failed {
            // The transaction can no longer be committed, and the result of a cancelled statement
            // may still arrive. The connection handles both when it is dropped.
            return Ok(());
        }
        let subject = Subject { operation: "roll back", database: &self.database };
        self.session.rollback().await.map_err(|fault| subject.failure(fault))
    }
}
