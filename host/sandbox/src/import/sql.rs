//! `wattle:plugin/sql`: databases. A transaction is a resource that lives until it is committed,
//! rolled back, or dropped with the guest.

use bytes::Bytes;
use wasmtime::component::{Resource, ResourceTableError};
use wattle_graph::call::CallKind;
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::Gate;
use wattle_run::gate::transaction::Transaction;
use wattle_run::gate::unwind::CallError;
use wattle_run::hostcall::sql::{Dialect, Executed, Query, Rows, SqlValue, Statement};
use wattle_run::limit;

use crate::bindings::wattle::plugin::sql;
use crate::handles::TransactionHandle;
use crate::host_state::HostState;
use crate::import::types::too_many_resources;
use crate::import_error::ImportError;
use crate::json::{CallJson, to_text};

const BEGIN: &str = "sql.begin";
const QUERY: &str = CallKind::QuerySql.name();
const EXECUTE: &str = "sql.execute";
const TRANSACTION_QUERY: &str = "sql.transaction.query";
const TRANSACTION_EXECUTE: &str = "sql.transaction.execute";

impl sql::Host for HostState {
    async fn query(
        &mut self,
        database: String,
        text: String,
        parameters: Vec<sql::Value>,
    ) -> Result<sql::Rows, ImportError> {
        let gate = self.gate(QUERY)?;
        let parameters = self.convert_values(&gate, QUERY, parameters).await?;
        let rows = self.call(Query(Statement { database, text, parameters })).await?;
        Ok(from_rows(rows))
    }

    async fn execute(
        &mut self,
        database: String,
        text: String,
        parameters: Vec<sql::Value>,
    ) -> Result<sql::Executed, ImportError> {
        let gate = self.gate(EXECUTE)?;
        let parameters = self.convert_values(&gate, EXECUTE, parameters).await?;
        let executed = self.off_cpu(gate.execute(&database, &text, parameters)).await?;
        Ok(from_executed(executed))
    }

    async fn begin(
        &mut self,
        database: String,
    ) -> Result<Resource<TransactionHandle>, ImportError> {
        let gate = self.gate(BEGIN)?;
        let transaction = self.off_cpu(gate.begin(&database)).await?;
        let handle = self.table.push(TransactionHandle(Some(transaction)));
        Ok(handle.map_err(|error| too_many_resources(BEGIN, &error))?)
    }

    async fn dialect(&mut self, database: String) -> Result<String, ImportError> {
        self.call(Dialect { database }).await
    }
}

impl sql::HostTransaction for HostState {
    async fn query(
        &mut self,
        handle: Resource<TransactionHandle>,
        text: String,
        parameters: Vec<sql::Value>,
    ) -> Result<sql::Rows, ImportError> {
        let gate = self.gate(TRANSACTION_QUERY)?;
        self.check_open(&gate, &handle)?;
        let parameters = self.convert_values(&gate, TRANSACTION_QUERY, parameters).await?;
        let transaction = transaction_of(self.table.get_mut(&handle))?;
        self.cpu.leave_guest();
        let result = transaction.query(&text, parameters).await;
        self.cpu.enter_guest();
        Ok(from_rows(result?))
    }

    async fn execute(
        &mut self,
        handle: Resource<TransactionHandle>,
        text: String,
        parameters: Vec<sql::Value>,
    ) -> Result<sql::Executed, ImportError> {
        let gate = self.gate(TRANSACTION_EXECUTE)?;
        self.check_open(&gate, &handle)?;
        let parameters = self.convert_values(&gate, TRANSACTION_EXECUTE, parameters).await?;
        let transaction = transaction_of(self.table.get_mut(&handle))?;
        self.cpu.leave_guest();
        let result = transaction.execute(&text, parameters).await;
        self.cpu.enter_guest();
        Ok(from_executed(result?))
    }

    async fn commit(&mut self, handle: Resource<TransactionHandle>) -> Result<(), ImportError> {
        let transaction = take_transaction(self.table.get_mut(&handle))?;
        Ok(self.off_cpu(transaction.commit()).await?)
    }

    async fn rollback(&mut self, handle: Resource<TransactionHandle>) -> Result<(), ImportError> {
        let transaction = take_transaction(self.table.get_mut(&handle))?;
        Ok(self.off_cpu(transaction.rollback()).await?)
    }

    async fn drop(&mut self, handle: Resource<TransactionHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

impl HostState {
    /// Checks that a transaction is open. The parameters of a statement without one are not parsed.
    fn check_open(
        &mut self,
        gate: &Gate,
        handle: &Resource<TransactionHandle>,
    ) -> Result<(), CallError> {
        let open = transaction_of(self.table.get_mut(handle)).map(|_| ());
        open.map_err(|failure| gate.refuse(failure))
    }

    async fn convert_values(
        &mut self,
        gate: &Gate,
        function: &str,
        values: Vec<sql::Value>,
    ) -> Result<Vec<SqlValue>, CallError> {
        let bytes = values.iter().map(json_bytes).sum();
        self.convert(gate, function, bytes, |json| into_values(values, json)).await
    }
}

/// Returns the length of a value as JSON text, in bytes; 0 for any other value.
fn json_bytes(value: &sql::Value) -> usize {
    if let sql::Value::Json(text) = value { text.len() } else { 0 }
}

type HandleResult<'a> = Result<&'a mut TransactionHandle, ResourceTableError>;

fn transaction_of(held: HandleResult<'_>) -> Result<&mut Transaction, Failure> {
    held.ok().and_then(|handle| handle.0.as_mut()).ok_or_else(already_closed)
}

fn take_transaction(held: HandleResult<'_>) -> Result<Transaction, Failure> {
    held.ok().and_then(|handle| handle.0.take()).ok_or_else(already_closed)
}

fn already_closed() -> Failure {
    Failure::new(code::CONFLICT, "the transaction has ended; start a new one with `sql.begin`")
}

fn into_values(values: Vec<sql::Value>, json: CallJson<'_>) -> Result<Vec<SqlValue>, Failure> {
    values.into_iter().map(|value| into_value(value, json)).collect()
}

fn into_value(value: sql::Value, json: CallJson<'_>) -> Result<SqlValue, Failure> {
    Ok(match value {
        sql::Value::Null => SqlValue::Null,
        sql::Value::Boolean(value) => SqlValue::Boolean(value),
        sql::Value::Integer(value) => SqlValue::Integer(value),
        sql::Value::Real(value) => SqlValue::Real(value),
        sql::Value::Text(value) => SqlValue::Text(value),
        sql::Value::Bytes(value) => SqlValue::Bytes(Bytes::from(value)),
        sql::Value::Json(text) => {
            SqlValue::Json(json.parse(&text, "parameters", limit::CALL_JSON_BYTES)?)
        }
        sql::Value::Other(value) => SqlValue::Other(value),
    })
}

fn from_value(value: SqlValue) -> sql::Value {
    match value {
        SqlValue::Null => sql::Value::Null,
        SqlValue::Boolean(value) => sql::Value::Boolean(value),
        SqlValue::Integer(value) => sql::Value::Integer(value),
        SqlValue::Real(value) => sql::Value::Real(value),
        SqlValue::Text(value) => sql::Value::Text(value),
        SqlValue::Bytes(value) => sql::Value::Bytes(value.into()),
        SqlValue::Json(value) => sql::Value::Json(to_text(&value)),
        SqlValue::Other(value) => sql::Value::Other(value),
    }
}

fn from_rows(rows: Rows) -> sql::Rows {
    sql::Rows {
        columns: rows
            .columns
            .into_iter()
            .map(|column| sql::Column { name: column.name, type_name: column.type_name })
            .collect(),
        rows: rows.rows.into_iter().map(|row| row.into_iter().map(from_value).collect()).collect(),
        truncated: rows.truncated,
    }
}

fn from_executed(executed: Executed) -> sql::Executed {
    sql::Executed { rows_affected: executed.rows_affected, returned: from_rows(executed.returned) }
}
