//! SQL transactions. The statements of a transaction and their results enter the journal together,
//! when the transaction ends.
//!
//! A commit writes a marker row with all statements and results to the database, in the same
//! transaction. If the host stops between the commit and the journal entry, the re-executed task
//! finds the marker and takes the results from it, so nothing is written twice. A marker is a part
//! of the journal that the database stores. A task whose statements differ from its marker
//! diverges: it neither receives the results nor commits again.
//!
//! The key of a marker therefore identifies one transaction of one task. It consists of the
//! following parts:
//!
//! * The thread with its incarnation. Copies of a thread, and a thread that is created under the id
//!   of a deleted one, have tasks with equal ids.
//! * The run, if the run does not wait for the disk (durability `async`): a crash can undo the
//!   whole run.
//! * The task and the call path.
//! * The sequence number of the last `reopened` event for the task. Commits before a reopen are no
//!   longer part of the journal, and the task repeats them.
//!
//! The new transaction looks up the marker under a lock on its key. A commit by an abandoned
//! attempt or a fenced host has therefore either completed before the lookup or fails.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;
use wattle_graph::weight::{VALUE_BYTES, failure_weight};

use crate::caller_id::CallerId;
use crate::gate::budget::CallBudget;
use crate::gate::divergence::divergence;
use crate::gate::entry::{CallEntry, CallLookup};
use crate::gate::pipeline::decode_output;
use crate::gate::task_gate::{TaskGate, log_lost};
use crate::gate::unwind::{CallError, Unwind};
use crate::gate::{Gate, GuestEnv};
use crate::grant::Grants;
use crate::hostcall::request::CallRequest;
use crate::hostcall::sql::{
    self, Executed, ROLLED_BACK, Rows, SqlValue, TRANSACTION, TRANSACTION_END,
};
use crate::json::{JsonSize, check_depth};
use crate::limit::SqlLimits;
use crate::ports::Caller;
use crate::ports::sql::{CommitMarker, Sql, SqlTransaction};
use crate::task::task_heartbeat::TaskHeartbeat;

/// An open transaction of a guest. Dropping the value without a commit rolls the transaction back.
pub struct Transaction {
    mode: Mode,
    /// Statements for the journal or from it. A transaction without a journal entry keeps none.
    statements: Vec<StatementRecord>,
    next_statement: usize,
    database: DatabaseHandle,
    /// Journal entry of the transaction, until it ends.
    entry: Option<Box<CallEntry>>,
    budget: StatementBudget,
}

/// Budget of the guest for its statements. Results of the database and results of the journal are
/// both charged to this budget.
struct StatementBudget {
    budget: Arc<CallBudget>,
    /// Heartbeat of the task; `None` if the guest has no task.
    heartbeat: Option<Arc<TaskHeartbeat>>,
    /// Grants of the guest, with the limits.
    grants: Arc<Grants>,
    caller: Caller,
    /// Maximum weight of the journal; `None` if the guest has no journal.
    allowed_journal_bytes: Option<u64>,
}

impl StatementBudget {
    fn of(gate: &Gate) -> Self {
        let GuestEnv { grants, caller, .. } = &gate.env;
        Self {
            budget: gate.budget.clone(),
            heartbeat: gate.task.as_ref().map(|task| task.heartbeat.clone()),
            grants: grants.clone(),
            caller: caller.clone(),
            allowed_journal_bytes: gate.task.as_ref().map(|_| grants.limits.task_journal_bytes),
        }
    }

    /// Charges a statement as a call: a transaction of a task keeps every statement with its result,
    /// also those that fail, until it ends. Like other calls, a statement is a task heartbeat.
    fn charge_call(&self) -> Result<(), Unwind> {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.on_call();
        }
        self.budget.charge_calls(1, &self.grants, &self.caller)
    }

    fn charge_bytes(&self, bytes: u64) -> Result<(), Unwind> {
        self.budget.charge_bytes(bytes, self.grants.limits.host_call_bytes)
    }

    /// Charges the weight of a statement or of its result, which the transaction keeps for the
    /// journal.
    fn charge_journal(&self, weight: u64) -> Result<(), Unwind> {
        let allowed = self.allowed_journal_bytes;
        allowed.map_or(Ok(()), |allowed| self.budget.charge_journal(weight, allowed))
    }
}

/// Database of the transaction.
struct DatabaseHandle {
    sql: Arc<dyn Sql>,
    owner: CallerId,
    database: String,
    limits: SqlLimits,
}

enum Mode {
    /// The transaction runs in the database; `None` once it has ended.
    Live(Option<Box<dyn SqlTransaction>>),
    /// The transaction ended in an earlier execution; statements return recorded results.
    Replayed { end: String, call: u32 },
}

/// A statement with its result.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StatementRecord {
    text: String,
    digest: Digest,
    #[serde(rename = "answer")]
    result: Result<Value, Failure>,
}

/// The record of a transaction in the journal and in the marker.
#[derive(Serialize, Deserialize)]
struct TransactionRecord {
    statements: Vec<StatementRecord>,
    end: String,
}

/// Whether a commit without a response has taken effect.
enum CommitStatus {
    Committed,
    /// Another transaction with the same key committed, with this record.
    CommittedByOther(Value),
    NotCommitted,
    Unknown,
}

impl Gate {
    /// Starts a transaction.
    ///
    /// # Errors
    ///
    /// `denied` without a read-write grant; errors of the database.
    pub async fn begin(&self, database: &str) -> Result<Transaction, CallError> {
        begin_transaction(self, database).await
    }

    /// Executes one statement that writes, in a separate transaction.
    ///
    /// # Errors
    ///
    /// See [`Gate::begin`]; errors of the statement.
    pub async fn execute(
        &self,
        database: &str,
        text: &str,
        parameters: Vec<SqlValue>,
    ) -> Result<Executed, CallError> {
        let mut transaction = self.begin(database).await?;
        let executed = transaction.execute_counted(text, parameters).await?;
        transaction.commit().await?;
        Ok(executed)
    }
}

async fn begin_transaction(gate: &Gate, database: &str) -> Result<Transaction, CallError> {
    let env = &gate.env;
    let meter = || StatementBudget::of(gate);
    let request = CallRequest::small(TRANSACTION, json!({ "database": database }));
    gate.count_bytes(request.bytes)?;
    let Some(task) = &gate.task else {
        gate.count_call()?;
        let entry = gate.list_call(TRANSACTION, || database.to_owned());
        let opened = open_live(gate, database).await;
        entry.end(opened.as_ref().err());
        return Ok(opened?);
    };
    let (call, lookup) = gate.enter(task, request.with_summary(database))?;
    let entry = match lookup {
        CallLookup::Recorded(kept) => return open_replayed(env, database, call, kept?, meter()),
        CallLookup::Unrecorded(entry) => entry,
    };
    let opened = match open_live(gate, database).await {
        Ok(mut transaction) => {
            let before = transaction.find_marker(&entry).await;
            before.map(|before| (transaction, before))
        }
        Err(failure) => Err(failure),
    };
    match opened {
        Ok((mut transaction, None)) => {
            transaction.entry = Some(entry);
            Ok(transaction)
        }
        // Dropping the new transaction rolls it back. The guest has not used it yet.
        Ok((_, Some(kept))) => {
            entry.record(Ok(kept.clone()));
            open_replayed(env, database, call, kept, meter())
        }
        Err(failure) => {
            entry.record(Err(failure.clone()));
            Err(failure.into())
        }
    }
}

async fn open_live(gate: &Gate, database: &str) -> Result<Transaction, Failure> {
    let env = &gate.env;
    sql::check_writable(&env.grants, &env.caller, database)
        .inspect_err(|denied| gate.count_denial(TRANSACTION, denied))?;
    let database = DatabaseHandle::new(env, database);
    let mode = Mode::Live(Some(database.begin().await?));
    Ok(Transaction {
        mode,
        statements: Vec::new(),
        next_statement: 0,
        database,
        entry: None,
        budget: StatementBudget::of(gate),
    })
}

fn open_replayed(
    env: &GuestEnv,
    database: &str,
    call: u32,
    kept: Value,
    budget: StatementBudget,
) -> Result<Transaction, CallError> {
    let TransactionRecord { statements, end } = decode_output(TRANSACTION, kept)?;
    Ok(Transaction {
        mode: Mode::Replayed { end, call },
        statements,
        next_statement: 0,
        database: DatabaseHandle::new(env, database),
        entry: None,
        budget,
    })
}

impl DatabaseHandle {
    fn new(env: &GuestEnv, database: &str) -> Self {
        Self {
            sql: env.ports.sql.clone(),
            owner: env.caller.owner,
            database: database.to_owned(),
            limits: env.grants.limits.sql.clone(),
        }
    }

    async fn begin(&self) -> Result<Box<dyn SqlTransaction>, Failure> {
        self.sql.begin(self.owner, &self.database, &self.limits).await
    }

    /// Checks whether a commit without a response has taken effect.
    async fn commit_status(&self, marker: &CommitMarker) -> CommitStatus {
        let Ok(mut other) = self.begin().await else {
            return CommitStatus::Unknown;
        };
        match other.claim_marker(&marker.key).await {
            Err(_) => CommitStatus::Unknown,
            Ok(None) => CommitStatus::NotCommitted,
            Ok(Some(found)) if found == marker.results => CommitStatus::Committed,
            Ok(Some(found)) => CommitStatus::CommittedByOther(found),
        }
    }
}

/// Returns the key of the marker row.
fn marker_key(entry: &CallEntry) -> String {
    let TaskGate { task, log, journal, .. } = entry.task.as_ref();
    let undone = journal.reopened_seq().map(|seq| format!("~{seq}")).unwrap_or_default();
    format!("{}/{task}:{}{undone}", log.incarnation_key(), entry.call_path())
}

/// Returns true if an earlier execution of the task may have committed the transaction.
fn may_be_committed(entry: &CallEntry) -> bool {
    entry.task.journal.is_reexecution() || entry.task.log.is_async()
}

/// Result of a commit.
struct CommitResult {
    /// Result for the journal.
    recorded: Result<Value, Failure>,
    /// Result for the guest.
    returned: Result<(), CallError>,
}

impl CommitResult {
    fn success(answers: Value) -> Self {
        Self { recorded: Ok(answers), returned: Ok(()) }
    }

    fn failure(failure: Failure) -> Self {
        Self { recorded: Err(failure.clone()), returned: Err(failure.into()) }
    }
}

impl DatabaseHandle {
    /// Determines the result of a commit that failed or has no response.
    async fn resolve_commit(
        &self,
        call: u32,
        marker: CommitMarker,
        failure: Failure,
    ) -> CommitResult {
        match self.commit_status(&marker).await {
            CommitStatus::Committed => CommitResult::success(marker.results),
            CommitStatus::NotCommitted => CommitResult::failure(failure),
            CommitStatus::Unknown => CommitResult::failure(Failure {
                message: format!("{}; the commit may have taken effect", failure.message),
                ..failure
            }),
            // An abandoned attempt committed first. This guest has read results that do not match
            // the database, so it is unwound. The next attempt gets the committed results.
            CommitStatus::CommittedByOther(kept) => {
                let request = |text: &str| json!({ "function": TRANSACTION, "request": text });
                let (before, now) = ("committed by another execution", "commit");
                let told = divergence(call, request(before), request(now));
                CommitResult { recorded: Ok(kept), returned: Err(told.into()) }
            }
        }
    }
}

impl Transaction {
    /// Executes one statement that reads.
    ///
    /// # Errors
    ///
    /// Errors of the database; [`Unwind::Divergence`] if a re-execution runs another statement.
    pub async fn query(
        &mut self,
        text: &str,
        parameters: Vec<SqlValue>,
    ) -> Result<Rows, CallError> {
        self.budget.charge_call()?;
        let digest = self.charge_statement(text, &parameters)?;
        if let Some(answer) = self.replayed(text, digest)? {
            return decode(answer);
        }
        let answer = self.live()?.query(text, &parameters).await;
        self.record_statement(text, digest, &answer)?;
        Ok(answer?)
    }

    /// Executes one statement that writes.
    ///
    /// # Errors
    ///
    /// See [`Transaction::query`].
    pub async fn execute(
        &mut self,
        text: &str,
        parameters: Vec<SqlValue>,
    ) -> Result<Executed, CallError> {
        self.budget.charge_call()?;
        self.execute_counted(text, parameters).await
    }

    /// Executes one statement that writes and whose call is charged already.
    async fn execute_counted(
        &mut self,
        text: &str,
        parameters: Vec<SqlValue>,
    ) -> Result<Executed, CallError> {
        let digest = self.charge_statement(text, &parameters)?;
        if let Some(answer) = self.replayed(text, digest)? {
            return decode(answer);
        }
        let answer = self.live()?.execute(text, &parameters).await;
        self.record_statement(text, digest, &answer)?;
        Ok(answer?)
    }

    /// Commits, and records the results in the journal.
    ///
    /// # Errors
    ///
    /// Errors of the database. If the commit has no response, the marker shows whether the commit
    /// took effect.
    pub async fn commit(mut self) -> Result<(), CallError> {
        if let Mode::Replayed { .. } = self.mode {
            return Ok(self.end_replayed("commit")?);
        }
        let Mode::Live(live) = &mut self.mode else { return Err(already_ended().into()) };
        let live = live.take().ok_or_else(already_ended)?;
        let Some(entry) = self.entry.take() else {
            return Ok(live.commit(None).await?);
        };
        let results = self.to_record("commit");
        let task = entry.task.clone();
        task.check_log_size().await?;
        task.log.output_commit().await.map_err(log_lost)?;
        let marker = CommitMarker { key: marker_key(&entry), results };
        let mut commit = live.commit(Some(&marker));
        let committed = task.log.poll_while_leased(commit.as_mut()).await.map_err(log_lost)?;
        drop(commit);
        let CommitResult { recorded, returned } = match committed {
            Ok(()) => CommitResult::success(marker.results),
            Err(failure) => self.database.resolve_commit(entry.number, marker, failure).await,
        };
        entry.record(recorded);
        task.log.flush_urgent().await;
        returned
    }

    /// Rolls back, and records the results in the journal.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn rollback(mut self) -> Result<(), CallError> {
        if let Mode::Replayed { .. } = self.mode {
            return Ok(self.end_replayed(ROLLED_BACK)?);
        }
        let Mode::Live(live) = &mut self.mode else { return Err(already_ended().into()) };
        let live = live.take().ok_or_else(already_ended)?;
        self.record_rollback();
        Ok(live.rollback().await?)
    }

    /// Ends a transaction that the journal has ([`Mode::Replayed`]), if the recorded transaction
    /// ended in the same way: by a commit or a rollback.
    fn end_replayed(&self, now: &str) -> Result<(), Unwind> {
        let Mode::Replayed { end, call } = &self.mode else { return Ok(()) };
        let journaled = match self.statements.get(self.next_statement) {
            None if end == now => return Ok(()),
            None => end,
            Some(statement) => &statement.text,
        };
        let request = |text: &str| json!({ "function": TRANSACTION, "request": text });
        Err(divergence(*call, request(journaled), request(now)))
    }

    /// Returns the record of this transaction, if an earlier execution of the task committed it.
    async fn find_marker(&mut self, entry: &CallEntry) -> Result<Option<Value>, Failure> {
        if !may_be_committed(entry) {
            return Ok(None);
        }
        self.live()?.claim_marker(&marker_key(entry)).await
    }

    fn live(&mut self) -> Result<&mut Box<dyn SqlTransaction>, Failure> {
        match &mut self.mode {
            Mode::Live(Some(live)) => Ok(live),
            _ => Err(already_ended()),
        }
    }

    /// Returns the recorded result of the next statement; `None` if the transaction runs in the
    /// database.
    fn replayed(
        &mut self,
        text: &str,
        digest: Digest,
    ) -> Result<Option<Result<Value, Failure>>, Unwind> {
        let Mode::Replayed { call, .. } = self.mode else { return Ok(None) };
        let index = self.next_statement;
        self.next_statement += 1;
        match self.statements.get(index) {
            Some(kept) if kept.digest == digest => {
                let answer = kept.result.clone();
                self.charge_result(&answer)?;
                Ok(Some(answer))
            }
            kept => {
                let journaled = kept.map_or("the end of the transaction", |kept| &kept.text);
                let request = |text: &str| json!({ "function": TRANSACTION, "request": text });
                Err(divergence(call, request(journaled), request(text)))
            }
        }
    }

    /// Records the result of a statement. If the guest has a journal, a result that is nested too
    /// deeply to be stored becomes a failure. The statement has taken effect in both cases.
    fn record_statement<T: Serialize>(
        &mut self,
        text: &str,
        digest: Digest,
        result: &Result<T, Failure>,
    ) -> Result<(), CallError> {
        let result = match result {
            Ok(result) => Ok(serde_json::to_value(result)
                .map_err(|error| Failure::internal(format!("cannot journal rows: {error}")))?),
            Err(failure) => Err(failure.clone()),
        };
        let too_deep = match &result {
            Ok(value) if self.budget.allowed_journal_bytes.is_some() => {
                check_depth("the result of the statement", value).err()
            }
            _ => None,
        };
        let result = too_deep.clone().map_or(result, Err);
        let counted = self.charge_result(&result);
        if self.entry.is_some() {
            self.statements.push(StatementRecord { text: text.to_owned(), digest, result });
        }
        counted?;
        too_deep.map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Charges a statement and returns the digest that identifies it.
    fn charge_statement(&self, text: &str, parameters: &[SqlValue]) -> Result<Digest, Unwind> {
        let request = json!([text, parameters]).to_string();
        self.budget.charge_bytes(request.len() as u64)?;
        self.budget.charge_journal(VALUE_BYTES + text.len() as u64)?;
        Ok(Digest::of(request.as_bytes()))
    }

    fn charge_result(&self, answer: &Result<Value, Failure>) -> Result<(), Unwind> {
        match answer {
            Ok(answer) => {
                let size = JsonSize::of(answer);
                self.budget.charge_bytes(size.bytes)?;
                self.budget.charge_journal(size.weight)
            }
            Err(failure) => self.budget.charge_journal(failure_weight(failure)),
        }
    }

    fn to_record(&self, end: &str) -> Value {
        json!({ "statements": self.statements, TRANSACTION_END: end })
    }

    fn record_rollback(&mut self) {
        if let Some(entry) = self.entry.take() {
            entry.record(Ok(self.to_record(ROLLED_BACK)));
        }
    }
}

impl Drop for Transaction {
    /// Records the rollback of a transaction that the guest drops. The adapter rolls back when its
    /// connection is dropped.
    fn drop(&mut self) {
        if matches!(self.mode, Mode::Live(Some(_))) {
            self.record_rollback();
        }
    }
}

fn decode<T: serde::de::DeserializeOwned>(answer: Result<Value, Failure>) -> Result<T, CallError> {
    let value = answer?;
    serde_json::from_value(value).map_err(|error| {
        Failure::internal(format!("cannot read the journaled rows: {error}")).into()
    })
}

fn already_ended() -> Failure {
    Failure::new(code::CONFLICT, "the transaction has ended; begin a new one")
}

#[cfg(test)]
mod tests;
