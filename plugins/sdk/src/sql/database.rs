//! Databases and transactions.

use crate::failure::Failure;
use crate::host;
use crate::sql::{Executed, Rows, Value};

/// A database, identified by its name in the manifest of the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    name: String,
}

/// A dialect of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// A dialect unknown to this SDK version.
    Other(String),
}

/// A transaction. Its commit is recorded in the database itself, so that a node that is executed
/// again after a crash does not repeat it. Dropping a transaction without a commit rolls it back.
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

/// Returns a handle to the database with a name. The first call checks the name.
pub fn database(name: impl Into<String>) -> Database {
    Database { name: name.into() }
}

impl Database {
    /// Executes a statement that reads.
    pub fn query(&self, statement: &str, parameters: Vec<Value>) -> Result<Rows, Failure> {
        host::sql::query(&self.name, statement, parameters)
    }

    /// Executes a statement that writes, in its own transaction.
    pub fn execute(&self, statement: &str, parameters: Vec<Value>) -> Result<Executed, Failure> {
        host::sql::execute(&self.name, statement, parameters)
    }

    /// Starts a transaction.
    pub fn begin(&self) -> Result<Transaction, Failure> {
        host::sql::begin(&self.name).map(|handle| Transaction { handle })
    }

    /// Returns the dialect of the database.
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
    /// Executes a statement that reads.
    pub fn query(&self, statement: &str, parameters: Vec<Value>) -> Result<Rows, Failure> {
        self.handle.query(statement, parameters)
    }

    /// Executes a statement that writes.
    pub fn execute(&self, statement: &str, parameters: Vec<Value>) -> Result<Executed, Failure> {
        self.handle.execute(statement, parameters)
    }

    /// Commits the transaction. The transaction ends even if the commit fails.
    pub fn commit(self) -> Result<(), Failure> {
        self.handle.commit()
    }

    /// Rolls back the transaction.
    pub fn rollback(self) -> Result<(), Failure> {
        self.handle.rollback()
    }
}
