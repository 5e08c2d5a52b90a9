//! SQL transactions: their answers enter the journal together, when they end.
//!
//! A commit leaves a marker row in the database with all answers, in the same transaction. If the
//! host dies between the commit and the journal, the re-executed task finds the marker and gets
//! its answers from there, so nothing is written twice.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;

use crate::call::sql::{self, Executed, Rows, SqlValue};
use crate::gate::Setting;
use crate::gate::journal::{Known, ROLLED_BACK, TRANSACTION_END, divergence};
use crate::gate::task::{Answered, TaskSide, log_lost};
use crate::gate::unwind::{Stop, Unwind};
use crate::limit::Limits;
use crate::log::ThreadLog;
use crate::ports::Ports;
use crate::ports::sql::{Marker, SqlTransaction};

/// Name of a transaction in the journal.
pub(crate) const FUNCTION: &str = "sql.transaction";

/// An open transaction of a guest. Dropped without commit, it is rolled back.
pub struct Transaction {
    mode: Mode,
    statements: Vec<Statement>,
    next: usize,
    database: String,
    entry: Option<Entry>,
    ports: Ports,
}

enum Mode {
    /// It runs in the database; `None` once it is over.
    Live(Option<Box<dyn SqlTransaction>>),
    /// It ended before; statements are answered from the journal.
    Replayed { end: String },
}

/// Where in the journal the transaction belongs.
struct Entry {
    task: Arc<TaskSide>,
    call: u32,
    digest: Digest,
    started_ms: i64,
    started: Instant,
}

/// One statement with its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Statement {
    text: String,
    digest: Digest,
    answer: Result<Value, Failure>,
}

/// What the journal and the marker keep of a transaction.
#[derive(Serialize, Deserialize)]
struct Kept {
    statements: Vec<Statement>,
    end: String,
}

pub(crate) async fn begin(
    setting: &Setting,
    task: Option<&Arc<TaskSide>>,
    database: &str,
) -> Result<Transaction, Stop> {
    let limits: &Limits = &setting.grants.limits;
    let request = json!({ "database": database });
    let digest = Digest::of(request.to_string().as_bytes());
    let numbered = match task {
        None => None,
        Some(task) => Some((task, task.take_numbers(1, limits)?)),
    };
    if let Some((task, call)) = numbered {
        let known = task.journal.look_up(call, FUNCTION, digest, || request.clone())?;
        match known {
            Known::Answered(Ok(kept)) => return replay(setting, database, kept),
            Known::Answered(Err(failure)) => return Err(failure.into()),
            Known::Open(_) | Known::New | Known::Settled(_) => {}
        }
    }
    sql::writable(&setting.grants, &setting.caller, database)?;
    let entry = numbered.map(|(task, call)| Entry {
        task: task.clone(),
        call,
        digest,
        started_ms: setting.ports.clock.now_ms(),
        started: Instant::now(),
    });
    if let Some(entry) = entry.as_ref().filter(|entry| entry.task.journal.is_repeated())
        && let Some(kept) = setting.ports.sql.committed(database, &entry.key()).await?
    {
        entry.write_down(database, Ok(kept.clone()));
        return replay(setting, database, kept);
    }
    let live = setting.ports.sql.begin(database, &limits.sql).await?;
    Ok(Transaction {
        mode: Mode::Live(Some(live)),
        statements: Vec::new(),
        next: 0,
        database: database.to_owned(),
        entry,
        ports: setting.ports.clone(),
    })
}

fn replay(setting: &Setting, database: &str, kept: Value) -> Result<Transaction, Stop> {
    let Kept { statements, end } = serde_json::from_value(kept).map_err(|error| {
        Failure::internal(format!("journaled transaction cannot be read: {error}"))
    })?;
    Ok(Transaction {
        mode: Mode::Replayed { end },
        statements,
        next: 0,
        database: database.to_owned(),
        entry: None,
        ports: setting.ports.clone(),
    })
}

impl Entry {
    /// Names the transaction in the database.
    fn key(&self) -> String {
        format!("{}:{}", self.task.task, self.task.place_of(self.call))
    }

    fn write_down(&self, database: &str, result: Result<Value, Failure>) {
        self.task.write_down(Answered {
            call: self.call,
            batch: self.call,
            function: FUNCTION,
            digest: self.digest,
            request: json!({ "database": database }),
            result,
            started_ms: self.started_ms,
            started: self.started,
            summary: database.to_owned(),
            tokens: None,
            reused: None,
        });
    }
}

impl Transaction {
    /// Runs one statement that reads.
    ///
    /// # Errors
    ///
    /// Those of the database; [`Unwind::Divergence`] if a re-execution runs another statement.
    pub async fn query(&mut self, text: &str, parameters: Vec<SqlValue>) -> Result<Rows, Stop> {
        let digest = digest(text, &parameters);
        if let Some(answer) = self.replayed(text, digest)? {
            return decode(answer);
        }
        let answer = self.live()?.query(text, &parameters).await;
        self.keep(text, digest, &answer)?;
        Ok(answer?)
    }

    /// Runs one statement that writes.
    ///
    /// # Errors
    ///
    /// As [`Transaction::query`].
    pub async fn execute(
        &mut self,
        text: &str,
        parameters: Vec<SqlValue>,
    ) -> Result<Executed, Stop> {
        let digest = digest(text, &parameters);
        if let Some(answer) = self.replayed(text, digest)? {
            return decode(answer);
        }
        let answer = self.live()?.execute(text, &parameters).await;
        self.keep(text, digest, &answer)?;
        Ok(answer?)
    }

    /// Commits, and makes the answers part of the journal.
    ///
    /// # Errors
    ///
    /// Those of the database. If the answer to the commit was lost, the database is asked whether
    /// it happened.
    pub async fn commit(mut self) -> Result<(), Stop> {
        let live = match &mut self.mode {
            Mode::Replayed { end } if end == "commit" => return Ok(()),
            Mode::Replayed { end } => return Err(other_end(end, "commit").into()),
            Mode::Live(live) => live.take().ok_or_else(over)?,
        };
        let kept = self.kept("commit");
        let Some(entry) = self.entry.take() else {
            return Ok(live.commit(None).await?);
        };
        entry.task.log.before_effect().await.map_err(log_lost)?;
        let marker = Marker { key: entry.key(), answers: kept.clone() };
        if let Err(failure) = live.commit(Some(&marker)).await {
            let happened = self.ports.sql.committed(&self.database, &marker.key).await;
            if !matches!(happened, Ok(Some(_))) {
                entry.write_down(&self.database, Err(failure.clone()));
                return Err(failure.into());
            }
        }
        entry.write_down(&self.database, Ok(kept));
        let log: &ThreadLog = &entry.task.log;
        log.flush().await;
        Ok(())
    }

    /// Rolls back.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn rollback(mut self) -> Result<(), Stop> {
        match &mut self.mode {
            Mode::Replayed { end } if end == ROLLED_BACK => Ok(()),
            Mode::Replayed { end } => Err(other_end(end, ROLLED_BACK).into()),
            Mode::Live(live) => {
                let live = live.take().ok_or_else(over)?;
                self.write_down_rollback();
                Ok(live.rollback().await?)
            }
        }
    }

    fn live(&mut self) -> Result<&mut Box<dyn SqlTransaction>, Failure> {
        match &mut self.mode {
            Mode::Live(Some(live)) => Ok(live),
            _ => Err(over()),
        }
    }

    /// The answer of the next statement, if the transaction ended before.
    fn replayed(
        &mut self,
        text: &str,
        digest: Digest,
    ) -> Result<Option<Result<Value, Failure>>, Unwind> {
        let Mode::Replayed { .. } = self.mode else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        match self.statements.get(index) {
            Some(kept) if kept.digest == digest => Ok(Some(kept.answer.clone())),
            kept => {
                let journaled = kept.map_or("the end of the transaction", |kept| &kept.text);
                Err(divergence(
                    index as u32,
                    json!({ "function": FUNCTION, "request": journaled }),
                    json!({ "function": FUNCTION, "request": text }),
                ))
            }
        }
    }

    fn keep<T: Serialize>(
        &mut self,
        text: &str,
        digest: Digest,
        answer: &Result<T, Failure>,
    ) -> Result<(), Failure> {
        let answer = match answer {
            Ok(answer) => Ok(serde_json::to_value(answer)
                .map_err(|error| Failure::internal(format!("cannot journal rows: {error}")))?),
            Err(failure) => Err(failure.clone()),
        };
        self.statements.push(Statement { text: text.to_owned(), digest, answer });
        Ok(())
    }

    fn kept(&self, end: &str) -> Value {
        json!({ "statements": self.statements, TRANSACTION_END: end })
    }

    fn write_down_rollback(&mut self) {
        if let Some(entry) = self.entry.take() {
            entry.write_down(&self.database, Ok(self.kept(ROLLED_BACK)));
        }
    }
}

impl Drop for Transaction {
    /// A guest that lets go of a transaction means to roll it back; the adapter does that when
    /// the connection is dropped.
    fn drop(&mut self) {
        if matches!(self.mode, Mode::Live(Some(_))) {
            self.write_down_rollback();
        }
    }
}

fn digest(text: &str, parameters: &[SqlValue]) -> Digest {
    Digest::of(json!([text, parameters]).to_string().as_bytes())
}

fn decode<T: serde::de::DeserializeOwned>(answer: Result<Value, Failure>) -> Result<T, Stop> {
    let value = answer?;
    serde_json::from_value(value).map_err(|error| {
        Failure::internal(format!("journaled rows cannot be read: {error}")).into()
    })
}

fn over() -> Failure {
    Failure::new(code::CONFLICT, "the transaction is over; begin a new one")
}

fn other_end(journaled: &str, now: &str) -> Unwind {
    divergence(
        0,
        json!({ "function": FUNCTION, "request": journaled }),
        json!({ "function": FUNCTION, "request": now }),
    )
}
