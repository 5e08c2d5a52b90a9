//! Databases and transactions.

use crate::failure::Failure;
use crate::host;
use crate::sql::{Executed, Rows, Value};

/// A database by the name that the app's manifest gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    name: String,
}

/// Which SQL a database speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// A dialect this version has no case for.
    Other(String),
}

/// Several statements that hold together. A commit is recorded in the database itself, so a crash
/// right after it does not repeat it. Dropped without a commit, everything is rolled back.
///
/// ```
/// use wattle_plugin::prelude::*;
/// use wattle_plugin::testing::FakeHost;
///
/// let host = FakeHost::new().sql(|_| Ok(sql::Rows::new(["id"], vec![params![1]]).into()));
/// host.run(|| {
///     let transaction = sql::database("asset").begin()?;
///     let executed = transaction
///         .execute("INSERT INTO item (name) VALUES ($1) RETURNING id", params!["lamp"])?;
///     let id: i64 = executed.returned.one()?.get("id")?;
///     transaction.execute("INSERT INTO log (item) VALUES ($1)", params![id])?;
///     transaction.commit()
/// })?;
/// assert_eq!(host.statements().len(), 4);
/// assert_eq!(host.statements()[3].text, "COMMIT");
/// # Ok::<_, Failure>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    handle: host::sql::Transaction,
}

/// The database of this name.
pub fn database(name: impl Into<String>) -> Database {
    Database { name: name.into() }
}

impl Database {
    /// Runs one statement that reads.
    pub fn query(&self, statement: &str, parameters: Vec<Value>) -> Result<Rows, Failure> {
        host::sql::query(&self.name, statement, parameters)
    }

    /// Runs one statement that writes, in a transaction of its own.
    pub fn execute(&self, statement: &str, parameters: Vec<Value>) -> Result<Executed, Failure> {
        host::sql::execute(&self.name, statement, parameters)
    }

    /// Starts a transaction.
    pub fn begin(&self) -> Result<Transaction, Failure> {
        host::sql::begin(&self.name).map(|handle| Transaction { handle })
    }

    /// Which SQL it speaks.
    ///
    /// ```
    /// use wattle_plugin::sql::{self, Dialect};
    /// use wattle_plugin::testing::FakeHost;
    ///
    /// let host = FakeHost::new().dialect("postgres");
    /// assert_eq!(host.run(|| sql::database("asset").dialect())?, Dialect::Postgres);
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    pub fn dialect(&self) -> Result<Dialect, Failure> {
        Ok(match host::sql::dialect(&self.name)?.as_str() {
            "sqlite" => Dialect::Sqlite,
            "postgres" => Dialect::Postgres,
            other => Dialect::Other(other.to_owned()),
        })
    }
}

impl Transaction {
    /// Runs one statement that reads.
    pub fn query(&self, statement: &str, parameters: Vec<Value>) -> Result<Rows, Failure> {
        self.handle.query(statement, parameters)
    }

    /// Runs one statement that writes.
    pub fn execute(&self, statement: &str, parameters: Vec<Value>) -> Result<Executed, Failure> {
        self.handle.execute(statement, parameters)
    }

    /// Makes the effects last. The transaction is over, whatever the answer.
    pub fn commit(self) -> Result<(), Failure> {
        self.handle.commit()
    }

    /// Undoes the effects.
    pub fn rollback(self) -> Result<(), Failure> {
        self.handle.rollback()
    }
}
