//! Calls of `sql`.

use crate::bindings::imports::wattle::plugin::sql as raw;
use crate::failure::Failure;
use crate::sql::{Column, Executed, Rows, Value};
use crate::wire::convert::{result, value};

pub(crate) fn query(
    database: &str,
    statement: &str,
    parameters: Vec<Value>,
) -> Result<Rows, Failure> {
    result(raw::query(database, statement, &values(parameters)))
}

pub(crate) fn execute(
    database: &str,
    statement: &str,
    parameters: Vec<Value>,
) -> Result<Executed, Failure> {
    result(raw::execute(database, statement, &values(parameters)))
}

pub(crate) fn dialect(database: &str) -> Result<String, Failure> {
    Ok(raw::dialect(database)?)
}

pub(crate) fn begin(database: &str) -> Result<Transaction, Failure> {
    Ok(Transaction { resource: raw::begin(database)? })
}

/// A transaction of the host. Dropping it rolls the transaction back.
#[derive(Debug)]
pub(crate) struct Transaction {
    resource: raw::Transaction,
}

impl Transaction {
    pub(crate) fn query(&self, statement: &str, parameters: Vec<Value>) -> Result<Rows, Failure> {
        result(self.resource.query(statement, &values(parameters)))
    }

    pub(crate) fn execute(
        &self,
        statement: &str,
        parameters: Vec<Value>,
    ) -> Result<Executed, Failure> {
        result(self.resource.execute(statement, &values(parameters)))
    }

    pub(crate) fn commit(&self) -> Result<(), Failure> {
        Ok(self.resource.commit()?)
    }

    pub(crate) fn rollback(&self) -> Result<(), Failure> {
        Ok(self.resource.rollback()?)
    }
}

fn values(parameters: Vec<Value>) -> Vec<raw::Value> {
    parameters.into_iter().map(Into::into).collect()
}

impl From<Value> for raw::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Boolean(value) => Self::Boolean(value),
            Value::Integer(value) => Self::Integer(value),
            Value::Real(value) => Self::Real(value),
            Value::Text(value) => Self::Text(value),
            Value::Bytes(value) => Self::Bytes(value),
            Value::Json(value) => Self::Json(value.to_string()),
            Value::Other(value) => Self::Other(value),
        }
    }
}

impl From<raw::Value> for Value {
    fn from(raw: raw::Value) -> Self {
        match raw {
            raw::Value::Null => Self::Null,
            raw::Value::Boolean(value) => Self::Boolean(value),
            raw::Value::Integer(value) => Self::Integer(value),
            raw::Value::Real(value) => Self::Real(value),
            raw::Value::Text(value) => Self::Text(value),
            raw::Value::Bytes(value) => Self::Bytes(value),
            raw::Value::Json(text) => Self::Json(value(&text)),
            raw::Value::Other(value) => Self::Other(value),
        }
    }
}

impl From<raw::Rows> for Rows {
    fn from(rows: raw::Rows) -> Self {
        let column =
            |column: raw::Column| Column { name: column.name, type_name: column.type_name };
        let row = |row: Vec<raw::Value>| row.into_iter().map(Into::into).collect();
        Self {
            columns: rows.columns.into_iter().map(column).collect(),
            values: rows.rows.into_iter().map(row).collect(),
            truncated: rows.truncated,
        }
    }
}

impl From<raw::Executed> for Executed {
    fn from(executed: raw::Executed) -> Self {
        Self { rows_affected: executed.rows_affected, returned: executed.returned.into() }
    }
}
