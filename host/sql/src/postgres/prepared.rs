//! The prepared statements of one transaction, with their SQL texts as keys.

use std::collections::HashMap;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use wattle_run::hostcall::sql::Executed;
use wattle_run::limit::SqlLimits;

use crate::failure::StatementError;
use crate::postgres::value::{PostgresReader, literals};
use crate::rows::{OnLimit, collect};
use crate::statement::{Statement, StatementKind};

/// Maximum number of prepared statements that are kept. A transaction that writes rows in a loop
/// therefore prepares each statement only once.
const MAX_PREPARED: usize = 64;

/// The prepared statements of a transaction, by text.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    numbers: HashMap<String, u64>,
    last_number: u64,
}

impl PreparedStatements {
    pub(crate) async fn run(
        &mut self,
        connection: &mut PgConnection,
        statement: &Statement<'_>,
        limits: &SqlLimits,
        rest: OnLimit,
    ) -> Result<Executed, StatementError> {
        if statement.kind == StatementKind::Ddl {
            return self.execute_ddl(connection, statement).await;
        }
        let values = literals(statement.parameters).map_err(StatementError::InvalidParameter)?;
        let number = self.prepare(connection, statement.text).await?;
        let call = format!("EXECUTE wattle_{number}{values}");
        let stream = sqlx::raw_sql(AssertSqlSafe(call)).fetch_many(connection);
        collect::<PostgresReader>(stream, limits, rest).await
    }

    /// Executes a DDL statement, which cannot be prepared and has no parameters. Prepared
    /// statements are dropped, since they may not match the tables afterwards.
    async fn execute_ddl(
        &mut self,
        connection: &mut PgConnection,
        statement: &Statement<'_>,
    ) -> Result<Executed, StatementError> {
        let definition = sqlx::query(AssertSqlSafe(statement.text)).persistent(false);
        let rows_affected = definition.execute(&mut *connection).await?.rows_affected();
        self.deallocate_all(connection).await?;
        Ok(Executed { rows_affected, ..Executed::default() })
    }

    async fn prepare(
        &mut self,
        connection: &mut PgConnection,
        text: &str,
    ) -> Result<u64, sqlx::Error> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        if self.numbers.len() == MAX_PREPARED {
            self.deallocate_all(connection).await?;
        }
        self.last_number += 1;
        let number = self.last_number;
        // `sqlx` sends the statement by the extended query protocol, which accepts only one
        // statement.
        let prepare = format!("PREPARE wattle_{number} AS {text}");
        sqlx::query(AssertSqlSafe(prepare)).persistent(false).execute(connection).await?;
        self.numbers.insert(text.to_owned(), number);
        Ok(number)
    }

    async fn deallocate_all(&mut self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.numbers.clear();
        connection.execute("DEALLOCATE ALL").await.map(drop)
    }
}
