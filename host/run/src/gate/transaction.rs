//! SQL transactions. Their statements and results enter the journal together, when they end.
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
//! * The run, if the run does not wait for the disk (durability `async`): a crash can undo all of
//!   it.
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

use crate::gate::entry::{Entry, LookedUp};
use crate::gate::journal::divergence;
use crate::gate::path::read;
use crate::gate::task::{TaskSide, log_lost};
use crate::gate::unwind::{Stop, Unwind};
use crate::gate::{Gate, Setting};
use crate::hostcall::request::Request;
use crate::hostcall::sql::{
    self, Executed, ROLLED_BACK, Rows, SqlValue, TRANSACTION, TRANSACTION_END,
};
use crate::json::weight;
use crate::limit::SqlLimits;
use crate::ports::Ports;
use crate::ports::sql::{Marker, SqlTransaction};

/// An open transaction of a guest. Dropping it without commit rolls it back.
pub struct Transaction {
    mode: Mode,
    statements: Vec<Statement>,
    next: usize,
    target: Target,
    /// Journal entry of the transaction, until it ends.
    entry: Option<Box<Entry>>,
    meter: Option<Meter>,
}

/// Byte budget of a task. It is charged for results of the database and of the journal alike.
struct Meter {
    task: Arc<TaskSide>,
    allowed: u64,
}

impl Meter {
    fn new(setting: &Setting, task: &Arc<TaskSide>) -> Self {
        Self { task: task.clone(), allowed: setting.grants.limits.host_call_bytes }
    }

    fn count(&self, bytes: u64) -> Result<(), Unwind> {
        self.task.journal.count_bytes(bytes, self.allowed)
    }
}

/// Database of the transaction.
struct Target {
    ports: Ports,
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
struct Statement {
    text: String,
    digest: Digest,
    answer: Result<Value, Failure>,
}

/// The record of a transaction in the journal and in the marker.
#[derive(Serialize, Deserialize)]
struct Kept {
    statements: Vec<Statement>,
    end: String,
}

/// Whether a commit without a response has taken effect.
enum Asked {
    Happened,
    /// Another transaction with the same key committed, with this record.
    Other(Value),
    Failed,
    Unknown,
}

impl Gate {
    /// Starts a transaction.
    ///
    /// # Errors
    ///
    /// `denied` without a read-write grant; errors of the database.
    pub async fn begin(&self, database: &str) -> Result<Transaction, Stop> {
        begin(self, database).await
    }

    /// Executes one statement that writes, in a transaction of its own.
    ///
    /// # Errors
    ///
    /// See [`Gate::begin`]; errors of the statement.
    pub async fn execute(
        &self,
        database: &str,
        text: &str,
        parameters: Vec<SqlValue>,
    ) -> Result<Executed, Stop> {
        let mut transaction = self.begin(database).await?;
        let executed = transaction.execute(text, parameters).await?;
        transaction.commit().await?;
        Ok(executed)
    }
}

async fn begin(gate: &Gate, database: &str) -> Result<Transaction, Stop> {
    let setting = &gate.setting;
    let Some(task) = &gate.task else { return Ok(open(setting, database, None).await?) };
    let meter = || Meter::new(setting, task);
    let call = gate.take_numbers(1)?;
    let request = Request::small(TRANSACTION, json!({ "database": database }));
    let entry = match task.look_up(call, call, request.with_summary(database.to_owned()))? {
        LookedUp::Answered(kept) => return replay(setting, database, call, kept?, meter()),
        LookedUp::Unanswered(entry) => entry,
    };
    let opened = match open(setting, database, Some(meter())).await {
        Ok(mut transaction) => {
            let before = transaction.committed_before(&entry).await;
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
            replay(setting, database, call, kept, meter())
        }
        Err(failure) => {
            entry.record(Err(failure.clone()));
            Err(failure.into())
        }
    }
}

async fn open(
    setting: &Setting,
    database: &str,
    meter: Option<Meter>,
) -> Result<Transaction, Failure> {
    sql::writable(&setting.grants, &setting.caller, database)?;
    let target = Target::new(setting, database);
    let mode = Mode::Live(Some(target.begin().await?));
    Ok(Transaction { mode, statements: Vec::new(), next: 0, target, entry: None, meter })
}

fn replay(
    setting: &Setting,
    database: &str,
    call: u32,
    kept: Value,
    meter: Meter,
) -> Result<Transaction, Stop> {
    let Kept { statements, end } = read(TRANSACTION, kept)?;
    Ok(Transaction {
        mode: Mode::Replayed { end, call },
        statements,
        next: 0,
        target: Target::new(setting, database),
        entry: None,
        meter: Some(meter),
    })
}

impl Target {
    fn new(setting: &Setting, database: &str) -> Self {
        Self {
            ports: setting.ports.clone(),
            database: database.to_owned(),
            limits: setting.grants.limits.sql.clone(),
        }
    }

    async fn begin(&self) -> Result<Box<dyn SqlTransaction>, Failure> {
        self.ports.sql.begin(&self.database, &self.limits).await
    }

    /// Checks whether a commit without a response has taken effect.
    async fn ask(&self, marker: &Marker) -> Asked {
        let Ok(mut other) = self.begin().await else {
            return Asked::Unknown;
        };
        match other.claim(&marker.key).await {
            Err(_) => Asked::Unknown,
            Ok(None) => Asked::Failed,
            Ok(Some(found)) if found == marker.answers => Asked::Happened,
            Ok(Some(found)) => Asked::Other(found),
        }
    }
}

/// Returns the key of the marker row.
fn marker_key(entry: &Entry) -> String {
    let TaskSide { task, log, journal, .. } = entry.task.as_ref();
    let undone = journal.undone().map(|seq| format!("~{seq}")).unwrap_or_default();
    format!("{}/{task}:{}{undone}", log.signature(), entry.place())
}

/// Returns true if an earlier execution of the task may have committed the transaction.
fn may_be_repeated(entry: &Entry) -> bool {
    entry.task.journal.is_repeated() || entry.task.log.runs_ahead()
}

/// Result of a commit.
struct Committed {
    /// Result for the journal.
    recorded: Result<Value, Failure>,
    /// Result for the guest.
    told: Result<(), Stop>,
}

impl Committed {
    fn well(answers: Value) -> Self {
        Self { recorded: Ok(answers), told: Ok(()) }
    }

    fn badly(failure: Failure) -> Self {
        Self { recorded: Err(failure.clone()), told: Err(failure.into()) }
    }
}

impl Target {
    /// Determines the result of a commit that failed or has no response.
    async fn asked(&self, call: u32, marker: Marker, failure: Failure) -> Committed {
        match self.ask(&marker).await {
            Asked::Happened => Committed::well(marker.answers),
            Asked::Failed => Committed::badly(failure),
            Asked::Unknown => Committed::badly(Failure {
                message: format!("{}; the commit may have taken effect", failure.message),
                ..failure
            }),
            // An abandoned attempt committed first. This guest has read results that do not match
            // the database, so it is unwound. The next attempt replays the committed results.
            Asked::Other(kept) => {
                let request = |text: &str| json!({ "function": TRANSACTION, "request": text });
                let (before, now) = ("committed by another execution", "commit");
                let told = divergence(call, request(before), request(now));
                Committed { recorded: Ok(kept), told: Err(told.into()) }
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
    pub async fn query(&mut self, text: &str, parameters: Vec<SqlValue>) -> Result<Rows, Stop> {
        let digest = self.asked(text, &parameters)?;
        if let Some(answer) = self.replayed(text, digest)? {
            return decode(answer);
        }
        let answer = self.live()?.query(text, &parameters).await;
        self.keep(text, digest, &answer)?;
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
    ) -> Result<Executed, Stop> {
        let digest = self.asked(text, &parameters)?;
        if let Some(answer) = self.replayed(text, digest)? {
            return decode(answer);
        }
        let answer = self.live()?.execute(text, &parameters).await;
        self.keep(text, digest, &answer)?;
        Ok(answer?)
    }

    /// Commits, and records the results in the journal.
    ///
    /// # Errors
    ///
    /// Errors of the database. If the commit has no response, the marker shows whether it took
    /// effect.
    pub async fn commit(mut self) -> Result<(), Stop> {
        if let Mode::Replayed { .. } = self.mode {
            return Ok(self.ended_before("commit")?);
        }
        let kept = self.kept("commit");
        let Mode::Live(live) = &mut self.mode else { return Err(over().into()) };
        let live = live.take().ok_or_else(over)?;
        let Some(entry) = self.entry.take() else {
            return Ok(live.commit(None).await?);
        };
        let task = entry.task.clone();
        task.check_room().await?;
        task.log.before_effect().await.map_err(log_lost)?;
        let marker = Marker { key: marker_key(&entry), answers: kept };
        let mut commit = live.commit(Some(&marker));
        let committed = task.log.while_leased(commit.as_mut()).await.map_err(log_lost)?;
        drop(commit);
        let Committed { recorded, told } = match committed {
            Ok(()) => Committed::well(marker.answers),
            Err(failure) => self.target.asked(entry.number, marker, failure).await,
        };
        entry.record(recorded);
        task.log.flush_at_once().await;
        told
    }

    /// Rolls back, and records the results in the journal.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn rollback(mut self) -> Result<(), Stop> {
        if let Mode::Replayed { .. } = self.mode {
            return Ok(self.ended_before(ROLLED_BACK)?);
        }
        let Mode::Live(live) = &mut self.mode else { return Err(over().into()) };
        let live = live.take().ok_or_else(over)?;
        self.record_rollback();
        Ok(live.rollback().await?)
    }

    /// Ends a replayed transaction, if the recorded transaction ended in the same way: by a commit
    /// or a rollback.
    fn ended_before(&self, now: &str) -> Result<(), Unwind> {
        let Mode::Replayed { end, call } = &self.mode else { return Ok(()) };
        let journaled = match self.statements.get(self.next) {
            None if end == now => return Ok(()),
            None => end,
            Some(statement) => &statement.text,
        };
        let request = |text: &str| json!({ "function": TRANSACTION, "request": text });
        Err(divergence(*call, request(journaled), request(now)))
    }

    /// Returns the record of this transaction, if an earlier execution of the task committed it.
    async fn committed_before(&mut self, entry: &Entry) -> Result<Option<Value>, Failure> {
        if !may_be_repeated(entry) {
            return Ok(None);
        }
        self.live()?.claim(&marker_key(entry)).await
    }

    fn live(&mut self) -> Result<&mut Box<dyn SqlTransaction>, Failure> {
        match &mut self.mode {
            Mode::Live(Some(live)) => Ok(live),
            _ => Err(over()),
        }
    }

    /// Returns the recorded result of the next statement, if the transaction is replayed.
    fn replayed(
        &mut self,
        text: &str,
        digest: Digest,
    ) -> Result<Option<Result<Value, Failure>>, Unwind> {
        let Mode::Replayed { call, .. } = self.mode else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        match self.statements.get(index) {
            Some(kept) if kept.digest == digest => {
                let answer = kept.answer.clone();
                self.count_answer(&answer)?;
                Ok(Some(answer))
            }
            kept => {
                let journaled = kept.map_or("the end of the transaction", |kept| &kept.text);
                let request = |text: &str| json!({ "function": TRANSACTION, "request": text });
                Err(divergence(call, request(journaled), request(text)))
            }
        }
    }

    fn keep<T: Serialize>(
        &mut self,
        text: &str,
        digest: Digest,
        answer: &Result<T, Failure>,
    ) -> Result<(), Stop> {
        let answer = match answer {
            Ok(answer) => Ok(serde_json::to_value(answer)
                .map_err(|error| Failure::internal(format!("cannot journal rows: {error}")))?),
            Err(failure) => Err(failure.clone()),
        };
        let counted = self.count_answer(&answer);
        self.statements.push(Statement { text: text.to_owned(), digest, answer });
        Ok(counted?)
    }

    /// Charges a statement and returns the digest that identifies it.
    fn asked(&self, text: &str, parameters: &[SqlValue]) -> Result<Digest, Unwind> {
        let request = json!([text, parameters]).to_string();
        self.count(request.len() as u64)?;
        Ok(Digest::of(request.as_bytes()))
    }

    fn count_answer(&self, answer: &Result<Value, Failure>) -> Result<(), Unwind> {
        answer.as_ref().map_or(Ok(()), |answer| self.count(weight(answer)))
    }

    fn count(&self, bytes: u64) -> Result<(), Unwind> {
        self.meter.as_ref().map_or(Ok(()), |meter| meter.count(bytes))
    }

    fn kept(&self, end: &str) -> Value {
        json!({ "statements": self.statements, TRANSACTION_END: end })
    }

    fn record_rollback(&mut self) {
        if let Some(entry) = self.entry.take() {
            entry.record(Ok(self.kept(ROLLED_BACK)));
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

fn decode<T: serde::de::DeserializeOwned>(answer: Result<Value, Failure>) -> Result<T, Stop> {
    let value = answer?;
    serde_json::from_value(value).map_err(|error| {
        Failure::internal(format!("cannot read the journaled rows: {error}")).into()
    })
}

fn over() -> Failure {
    Failure::new(code::CONFLICT, "the transaction has ended; begin a new one")
}
