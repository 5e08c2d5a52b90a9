//! Implements `sql` with the script.

use std::cell::Cell;

use crate::failure::Failure;
use crate::sql::{Executed, Rows, Value};
use crate::testing::record::{SqlAnswer, Statement};
use crate::testing::state::{play, with};

pub(crate) fn query(
    database: &str,
    statement: &str,
    parameters: Vec<Value>,
) -> Result<Rows, Failure> {
    ask(database, statement, parameters, false).map(|answer| answer.rows)
}

pub(crate) fn execute(
    database: &str,
    statement: &str,
    parameters: Vec<Value>,
) -> Result<Executed, Failure> {
    ask(database, statement, parameters, false).map(Into::into)
}

pub(crate) fn dialect(_database: &str) -> Result<String, Failure> {
    with(|state| state.dialect.clone())
}

pub(crate) fn begin(database: &str) -> Result<Transaction, Failure> {
    note(&statement(database, "BEGIN", Vec::new(), true))?;
    Ok(Transaction { database: database.to_owned(), over: Cell::new(false) })
}

/// A transaction whose commit or rollback is recorded.
#[derive(Debug)]
pub(crate) struct Transaction {
    database: String,
    over: Cell<bool>,
}

impl Transaction {
    pub(crate) fn query(&self, statement: &str, parameters: Vec<Value>) -> Result<Rows, Failure> {
        ask(&self.database, statement, parameters, true).map(|answer| answer.rows)
    }

    pub(crate) fn execute(
        &self,
        statement: &str,
        parameters: Vec<Value>,
    ) -> Result<Executed, Failure> {
        ask(&self.database, statement, parameters, true).map(Into::into)
    }

    pub(crate) fn commit(&self) -> Result<(), Failure> {
        self.end("COMMIT")
    }

    pub(crate) fn rollback(&self) -> Result<(), Failure> {
        self.end("ROLLBACK")
    }

    fn end(&self, how: &str) -> Result<(), Failure> {
        self.over.set(true);
        note(&statement(&self.database, how, Vec::new(), true))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.over.get() {
            // Outside of `FakeHost::run`, no fake host can record the rollback.
            let _ = self.rollback();
        }
    }
}

fn ask(
    database: &str,
    text: &str,
    parameters: Vec<Value>,
    in_transaction: bool,
) -> Result<SqlAnswer, Failure> {
    let statement = statement(database, text, parameters, in_transaction);
    note(&statement)?;
    play(|state| state.sql.clone(), &statement, "FakeHost::sql")
}

fn note(statement: &Statement) -> Result<(), Failure> {
    with(|state| state.notes.statements.push(statement.clone()))
}

fn statement(
    database: &str,
    text: &str,
    parameters: Vec<Value>,
    in_transaction: bool,
) -> Statement {
    Statement { database: database.to_owned(), text: text.to_owned(), parameters, in_transaction }
}
