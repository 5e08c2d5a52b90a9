//! Writer tasks: each commits all batches in its queue in one transaction.
//!
//! A thread belongs to one task, so its batches become durable in order. Several tasks let commits
//! overlap, since most of their time is latency of the network and of the server's disk. Batches
//! that no caller awaits wait for the commit delay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlx::Row as _;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{Batch, StoreError, Ticket};

use crate::commit_delay::FlushRequests;
use crate::error::backend;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::direct::{Known, Lane};
use crate::postgres::facts::{self, Wanted};
use crate::postgres::head;
use crate::postgres::news::News;
use crate::postgres::outcome::has_committed;
use crate::postgres::retry::{
    MAX_LOCK_ATTEMPTS, RetryState, has_no_connection, is_lock_timeout, is_transient, to_store_error,
};
use crate::postgres::stage::{Desk, Head, Stage};

/// Number of writer tasks. More tasks overlap more round trips, but have smaller groups.
pub(super) const WRITERS: usize = 4;

/// Connections of the writer tasks: one that each keeps, and one for the slow path.
pub(super) const CONNECTIONS: u32 = 2 * WRITERS as u32;

/// Capacity of a queue. If it is full, [`append`](wattle_run::ports::Store::append) waits.
const QUEUE_LIMIT: usize = 1024;

/// Maximum number of batches in one transaction: enough to make the commit cheap for each, few
/// enough that the first does not wait long for the last.
const GROUP_LIMIT: usize = 256;

/// A transaction takes no further batches once its rows have this size, so that a few large values
/// do not delay the small ones after them.
const GROUP_LIMIT_BYTES: usize = 8 * 1024 * 1024;

pub(super) const OPERATION: &str = "append";

/// The newest sequence number of the thread, or the error of the batch.
pub(super) type Answer = Result<u64, StoreError>;

/// Resolves a ticket.
pub(super) type Asker = oneshot::Sender<Result<(), StoreError>>;

/// A command for a writer task.
#[derive(Debug)]
pub(super) enum Job {
    /// Writes a batch, which has a number of [`FlushRequests`].
    Append(ThreadId, Box<Batch>, Asker, u64),
    /// Resolves once all commands before it are done.
    Settle(ThreadId, Asker),
    /// Caches the state of a thread whose lease was acquired.
    Leased(ThreadId, Box<Head>),
}

impl Job {
    fn thread(&self) -> &ThreadId {
        let (Self::Append(thread, ..) | Self::Settle(thread, _) | Self::Leased(thread, _)) = self;
        thread
    }
}

/// Handles of all writer tasks.
#[derive(Debug)]
pub(super) struct Desks(Vec<Post>);

/// The handle of one writer task.
#[derive(Debug)]
struct Post {
    jobs: mpsc::Sender<Job>,
    bell: Arc<Bell>,
}

/// Wakes a writer task during the commit delay.
#[derive(Debug, Default)]
pub(super) struct Bell {
    flush_requests: FlushRequests,
    rung: Notify,
}

impl Desks {
    /// Starts the writer tasks. The tasks end when the handles are dropped and all batches are
    /// written.
    pub(super) fn open(database: &Database, news: &News) -> Self {
        let start = |_| {
            let (jobs, queue) = mpsc::channel(QUEUE_LIMIT);
            let (database, news, bell) = (database.clone(), news.clone(), Arc::<Bell>::default());
            let (known, lane) = (Known::default(), Lane::default());
            tokio::spawn(Writer { database, news, bell: bell.clone(), known, lane }.run(queue));
            Post { jobs, bell }
        };
        Self((0..WRITERS).map(start).collect())
    }

    /// Queues a batch. Waits for a free slot if the queue is full.
    pub(super) async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let Post { jobs, bell } = self.post(thread);
        let (answer, ticket) = oneshot::channel();
        let number = bell.flush_requests.next_batch_no();
        let job = Job::Append(thread.clone(), Box::new(batch), answer, number);
        if jobs.send(job).await.is_err() {
            return Ticket::ready(Err(StoreError::Closed));
        }
        let bell = bell.clone();
        Ticket::waiting(ticket, move || {
            bell.flush_requests.request(number);
            bell.rung.notify_one();
        })
    }

    /// Requests a flush of the batches of a thread.
    pub(super) fn hurry(&self, thread: &ThreadId) {
        let bell = &self.post(thread).bell;
        bell.flush_requests.request_all();
        bell.rung.notify_one();
    }

    /// Queues another command. Waits for a free slot if the queue is full.
    pub(super) async fn send(&self, job: Job) -> Result<(), StoreError> {
        self.post(job.thread()).jobs.send(job).await.map_err(|_| StoreError::Closed)
    }

    fn post(&self, thread: &ThreadId) -> &Post {
        let digest = blake3::hash(thread.as_str().as_bytes());
        &self.0[usize::from(digest.as_bytes()[0]) % self.0.len()]
    }
}

/// One writer task.
pub(super) struct Writer {
    pub(super) database: Database,
    news: News,
    bell: Arc<Bell>,
    pub(super) known: Known,
    pub(super) lane: Lane,
}

/// A group of batches for one transaction.
pub(super) type Batches = Arc<Vec<(ThreadId, Batch)>>;

/// Why an attempt to write a group failed.
pub(super) enum AppendError {
    /// Nothing was written, and the error is transient.
    Transient(sqlx::Error),
    /// Nothing was written: another transaction holds the lock of a thread.
    LockTimeout(sqlx::Error),
    /// Nothing was written, and a batch may be the cause.
    Rejected(StoreError),
    /// The server is not available, or it is unknown whether anything was written.
    Unavailable(StoreError),
}

impl AppendError {
    /// Classifies the error of a transaction that could not begin, of which no batch is the cause.
    fn on_begin(error: sqlx::Error) -> Self {
        if is_transient(&error) || has_no_connection(&error) {
            return Self::Transient(error);
        }
        Self::Unavailable(to_store_error(OPERATION, &error))
    }
}

impl From<sqlx::Error> for AppendError {
    fn from(error: sqlx::Error) -> Self {
        // A duplicate key: another host inserted the same row first, and the next attempt sees it.
        let database = error.as_database_error();
        let is_duplicate = database.is_some_and(sqlx::error::DatabaseError::is_unique_violation);
        if is_lock_timeout(&error) {
            return Self::LockTimeout(error);
        }
        let is_taken =
            database.is_some_and(|error| error.kind() == sqlx::error::ErrorKind::NotNullViolation);
        if is_duplicate || is_taken || is_transient(&error) {
            return Self::Transient(error);
        }
        Self::Rejected(to_store_error(OPERATION, &error))
    }
}

impl From<StoreError> for AppendError {
    fn from(error: StoreError) -> Self {
        Self::Rejected(error)
    }
}

impl From<AppendError> for StoreError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Transient(error) | AppendError::LockTimeout(error) => {
                to_store_error(OPERATION, &error)
            }
            AppendError::Rejected(error) | AppendError::Unavailable(error) => error,
        }
    }
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut jobs = Vec::with_capacity(GROUP_LIMIT);
        while queue.recv_many(&mut jobs, GROUP_LIMIT).await > 0 {
            self.gather(&mut queue, &mut jobs).await;
            let (mut batches, mut tickets, mut settled) = (Vec::new(), Vec::new(), Vec::new());
            for job in jobs.drain(..) {
                match job {
                    Job::Append(thread, batch, answer, _) => {
                        batches.push((thread, *batch));
                        tickets.push(answer);
                    }
                    Job::Settle(_, answer) => settled.push(answer),
                    Job::Leased(thread, head) => self.known.leased(thread, *head),
                }
            }
            let batches = Arc::new(batches);
            let answers = self.write(&batches).await;
            let (mut written, mut held) = (Vec::new(), Vec::new());
            for ((one, ticket), answer) in batches.iter().zip(tickets).zip(answers) {
                match answer {
                    Some(answer) => written.push((&one.0, ticket, answer)),
                    None => held.push((one, ticket)),
                }
            }
            self.tell(written);
            self.write_held(held).await;
            for answer in settled {
                let _ = answer.send(Ok(()));
            }
        }
    }

    /// Adds further commands until the commit delay is over or a caller awaits one of the batches.
    async fn gather(&self, queue: &mut mpsc::Receiver<Job>, jobs: &mut Vec<Job>) {
        if self.database.commit_delay.is_zero() {
            return;
        }
        let until = Instant::now() + self.database.commit_delay;
        let (mut seen, mut oldest) = (0, u64::MAX);
        while jobs.len() < GROUP_LIMIT {
            for job in &jobs[seen..] {
                match job {
                    Job::Append(thread, .., number) if !self.news.is_watched(thread) => {
                        oldest = oldest.min(*number);
                    }
                    Job::Leased(..) => {}
                    Job::Append(..) | Job::Settle(..) => return,
                }
            }
            seen = jobs.len();
            if self.bell.flush_requests.is_requested(oldest) {
                return;
            }
            let room = GROUP_LIMIT - jobs.len();
            tokio::select! {
                () = self.bell.rung.notified() => {}
                more = queue.recv_many(jobs, room) => if more == 0 { return },
                () = sleep_until(until) => return,
            }
        }
    }

    fn tell(&self, written: Vec<(&ThreadId, Asker, Answer)>) {
        let mut newest = BTreeMap::new();
        for (thread, _, answer) in &written {
            if let Ok(last_seq) = answer {
                newest.insert(*thread, *last_seq);
            }
        }
        for (thread, last_seq) in newest {
            self.news.written(thread, last_seq);
        }
        // An error means that the caller dropped the ticket.
        for (_, ticket, answer) in written {
            let _ = ticket.send(answer.map(drop));
        }
    }

    /// Writes a group. Returns a result for each batch, and `None` for a batch of a thread that
    /// another transaction has locked.
    async fn write(&mut self, batches: &Batches) -> Vec<Option<Answer>> {
        let (mut answers, mut held) = (Vec::with_capacity(batches.len()), BTreeSet::new());
        while answers.len() < batches.len() {
            let rest = match answers.len() {
                0 => batches.clone(),
                done => Arc::new(batches[done..].to_vec()),
            };
            answers.extend(self.write_some(&rest, &mut held).await);
        }
        answers
    }

    /// Writes the first batches of a group, as many as one transaction takes.
    async fn write_some(
        &mut self,
        batches: &Batches,
        held: &mut BTreeSet<ThreadId>,
    ) -> Vec<Option<Answer>> {
        // Later batches of a locked thread must wait as well.
        if !held.is_empty() {
            return self.write_apart(batches, held).await;
        }
        match self.write_together(batches).await {
            Ok(answers) => answers.into_iter().map(Some).collect(),
            // A rejected batch or a locked thread must not fail the other batches.
            Err(AppendError::LockTimeout(_)) => self.write_apart(batches, held).await,
            Err(AppendError::Rejected(_)) if batches.len() > 1 => {
                self.write_apart(batches, held).await
            }
            Err(error) => vec![Some(Err(error.into())); batches.len()],
        }
    }

    /// Writes each batch in a transaction of its own, except those of locked threads.
    async fn write_apart(
        &mut self,
        batches: &Batches,
        held: &mut BTreeSet<ThreadId>,
    ) -> Vec<Option<Answer>> {
        let mut answers = Vec::with_capacity(batches.len());
        for one in batches.iter() {
            if held.contains(&one.0) {
                answers.push(None);
                continue;
            }
            answers.push(match self.write_one(one).await {
                Err(AppendError::LockTimeout(_)) => {
                    held.insert(one.0.clone());
                    None
                }
                written => Some(written.unwrap_or_else(|error| Err(error.into()))),
            });
        }
        answers
    }

    /// Writes the batches of locked threads, after all other tickets of their group are resolved.
    async fn write_held(&mut self, held: Vec<(&(ThreadId, Batch), Asker)>) {
        let mut given_up: BTreeMap<&ThreadId, StoreError> = BTreeMap::new();
        for (one, ticket) in held {
            let answer = match given_up.get(&one.0) {
                Some(error) => Err(error.clone()),
                None => match self.write_patiently(one).await {
                    Ok(answer) => answer,
                    Err(error) => {
                        given_up.insert(&one.0, error.clone());
                        Err(error)
                    }
                },
            };
            self.tell(vec![(&one.0, ticket, answer)]);
        }
    }

    /// Writes a batch once its thread is unlocked. Fails after [`MAX_LOCK_ATTEMPTS`] lock timeouts.
    async fn write_patiently(&mut self, one: &(ThreadId, Batch)) -> Result<Answer, StoreError> {
        for _ in 0..MAX_LOCK_ATTEMPTS {
            match self.write_one(one).await {
                Err(AppendError::LockTimeout(_)) => {}
                written => return Ok(written.unwrap_or_else(|error| Err(error.into()))),
            }
        }
        Err(backend(OPERATION, format!("thread `{}` is locked by another transaction", one.0)))
    }

    async fn write_one(&mut self, one: &(ThreadId, Batch)) -> Result<Answer, AppendError> {
        let answers = self.write_together(&Arc::new(vec![one.clone()])).await?;
        Ok(answers.into_iter().next().unwrap_or(Err(StoreError::Closed)))
    }

    /// Writes the first batches of a group in one transaction, as many as it takes.
    async fn write_together(&mut self, batches: &Batches) -> Result<Vec<Answer>, AppendError> {
        if let Some((stage, answers)) = self.write_directly(batches).await? {
            self.known.remember(stage);
            return Ok(answers);
        }
        let mut retry = RetryState::for_duration(self.database.retry_timeout);
        loop {
            match self.write_slow_path(batches).await {
                Ok((stage, answers)) => {
                    self.known.remember(stage);
                    return Ok(answers);
                }
                Err(error) => {
                    if !matches!(error, AppendError::Transient(_)) || !retry.backoff().await {
                        return Err(error);
                    }
                }
            }
        }
    }

    async fn write_slow_path(
        &mut self,
        batches: &Batches,
    ) -> Result<(Stage, Vec<Answer>), AppendError> {
        let begun = self.database.begin_append().await;
        let mut transaction = begun.map_err(AppendError::on_begin)?;
        let stage = self.read(&mut transaction, batches).await?;
        let staged = batches.clone();
        let staged = spawn_blocking(move || stage_all(stage, &staged)).await;
        let (stage, answers) = staged.map_err(|error| backend(OPERATION, error))?;
        if stage.rows.heads.is_empty() {
            return Ok((stage, answers));
        }
        let written = stage.rows.write().fetch_one(&mut *transaction).await?;
        let id: String = written.try_get(0)?;
        if let Err(error) = transaction.commit().await {
            // The reply was lost, but the commit may have succeeded.
            match has_committed(&self.database, &id).await {
                Ok(true) => {}
                Ok(false) => return Err(AppendError::Transient(error)),
                Err(unknown) => return Err(AppendError::Unavailable(unknown)),
            }
        }
        Ok((stage, answers))
    }

    /// Locks the threads of a group, and reads what staging needs of them.
    async fn read(
        &mut self,
        transaction: &mut PgTransaction,
        batches: &Batches,
    ) -> Result<Stage, AppendError> {
        let threads: BTreeSet<&ThreadId> = batches.iter().map(|(thread, _)| thread).collect();
        let begun: BTreeSet<&ThreadId> = batches
            .iter()
            .filter(|(_, batch)| batch.record.is_some())
            .map(|(thread, _)| thread)
            .collect();
        let heads = head::lock(transaction, &threads, &begun).await?;
        let mut stage = Stage::default();
        for (thread, head) in heads {
            let past = self.known.past(&thread, &head);
            stage.desks.insert(thread, Desk { head, past });
        }
        let wanted = Wanted::of(&stage.desks, batches);
        facts::read(transaction, &mut stage, wanted).await?;
        Ok(stage)
    }
}

/// Stages batches until the rows are large enough for one transaction.
pub(super) fn stage_all(mut stage: Stage, batches: &Batches) -> (Stage, Vec<Answer>) {
    let (mut answers, mut bytes) = (Vec::with_capacity(batches.len()), 0);
    for (thread, batch) in batches.iter() {
        let before = (stage.rows.batches.len(), stage.rows.values.len());
        answers.push(stage.take(thread, batch));
        bytes += stage.rows.bytes_after(before.0, before.1);
        if bytes >= GROUP_LIMIT_BYTES {
            break;
        }
    }
    (stage, answers)
}
