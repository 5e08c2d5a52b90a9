//! Writer tasks: each commits all batches in its queue in one transaction.
//!
//! One task writes all batches of a thread, so these become durable in order. The commits of
//! several tasks overlap, since most of the time of a commit is latency of the network and of the
//! server's disk. Batches that no caller awaits wait for the commit delay.

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
use crate::postgres::in_doubt::has_committed;
use crate::postgres::notify::Notifier;
use crate::postgres::pinned_connection::PinnedConnection;
use crate::postgres::prefetch::{self, Lookups};
use crate::postgres::retry::{
    MAX_LOCK_ATTEMPTS, RetryState, has_no_connection, is_lock_timeout, is_transient, to_store_error,
};
use crate::postgres::stage::{CachedThread, CommitGroup, ThreadRow};
use crate::postgres::thread_cache::ThreadCache;
use crate::postgres::thread_row;

/// Number of writer tasks. With more tasks, more round trips overlap, but groups are smaller.
pub(super) const WRITER_TASKS: usize = 4;

/// Number of connections of the writer tasks. Each task keeps one connection for the fast path, and
/// needs one for the slow path.
pub(super) const WRITER_CONNECTIONS: u32 = 2 * WRITER_TASKS as u32;

/// Capacity of a queue. If it is full, [`append`](wattle_run::ports::Store::append) waits.
const QUEUE_CAPACITY: usize = 1024;

/// Maximum number of batches in one transaction: enough that the cost of the commit per batch is
/// low, and few enough that no batch waits long for the transaction to fill.
const MAX_GROUP_BATCHES: usize = 256;

/// A transaction takes no further batches once its rows have this size, so that a few large values
/// do not delay the small values after them.
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;

pub(super) const OPERATION: &str = "append";

/// The newest sequence number of the thread, or the error of the batch.
pub(super) type AppendResult = Result<u64, StoreError>;

/// The sender that resolves a ticket.
pub(super) type TicketSender = oneshot::Sender<Result<(), StoreError>>;

/// A command for a writer task.
#[derive(Debug)]
pub(super) enum Command {
    /// Writes a batch. The number is the number that [`FlushRequests`] assigned to the batch.
    Append(ThreadId, Box<Batch>, TicketSender, u64),
    /// Resolves once all commands before it are done.
    Flush(ThreadId, TicketSender),
    /// Caches the state of a thread whose lease was acquired.
    LeaseTaken(ThreadId, Box<ThreadRow>),
}

impl Command {
    fn thread(&self) -> &ThreadId {
        let (Self::Append(thread, ..) | Self::Flush(thread, _) | Self::LeaseTaken(thread, _)) =
            self;
        thread
    }
}

/// Handles of all writer tasks.
#[derive(Debug)]
pub(super) struct WriterPool(Vec<WriterHandle>);

/// The handle of one writer task.
#[derive(Debug)]
struct WriterHandle {
    commands: mpsc::Sender<Command>,
    signal: Arc<WriterSignal>,
}

/// Wakes a writer task during the commit delay.
#[derive(Debug, Default)]
pub(super) struct WriterSignal {
    flush_requests: FlushRequests,
    wake: Notify,
}

impl WriterPool {
    /// Starts the writer tasks. The tasks end when the handles are dropped and all batches are
    /// written.
    pub(super) fn open(database: &Database, notifier: &Notifier) -> Self {
        let start = |_| {
            let (commands, queue) = mpsc::channel(QUEUE_CAPACITY);
            let (database, notifier, signal) =
                (database.clone(), notifier.clone(), Arc::<WriterSignal>::default());
            let (cache, connection) = (ThreadCache::default(), PinnedConnection::default());
            tokio::spawn(
                Writer { database, notifier, signal: signal.clone(), cache, connection }.run(queue),
            );
            WriterHandle { commands, signal }
        };
        Self((0..WRITER_TASKS).map(start).collect())
    }

    /// Queues a batch. Waits for a free slot if the queue is full.
    pub(super) async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let WriterHandle { commands, signal } = self.handle(thread);
        let (sender, ticket) = oneshot::channel();
        let number = signal.flush_requests.next_batch_no();
        let command = Command::Append(thread.clone(), Box::new(batch), sender, number);
        if commands.send(command).await.is_err() {
            return Ticket::ready(Err(StoreError::Closed));
        }
        let signal = signal.clone();
        Ticket::waiting(ticket, move || {
            signal.flush_requests.request(number);
            signal.wake.notify_one();
        })
    }

    /// Requests a flush of the batches of a thread.
    pub(super) fn request_flush(&self, thread: &ThreadId) {
        let signal = &self.handle(thread).signal;
        signal.flush_requests.request_all();
        signal.wake.notify_one();
    }

    /// Queues a command other than a batch. Waits for a free slot if the queue is full.
    pub(super) async fn send(&self, command: Command) -> Result<(), StoreError> {
        self.handle(command.thread()).commands.send(command).await.map_err(|_| StoreError::Closed)
    }

    fn handle(&self, thread: &ThreadId) -> &WriterHandle {
        let digest = blake3::hash(thread.as_str().as_bytes());
        &self.0[usize::from(digest.as_bytes()[0]) % self.0.len()]
    }
}

/// One writer task.
pub(super) struct Writer {
    pub(super) database: Database,
    notifier: Notifier,
    signal: Arc<WriterSignal>,
    pub(super) cache: ThreadCache,
    pub(super) connection: PinnedConnection,
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
    /// The server is not available, or the outcome of the transaction is unknown.
    Unavailable(StoreError),
}

impl AppendError {
    /// Classifies the error of a transaction that could not begin. No batch is the cause of such an
    /// error.
    fn on_begin(error: sqlx::Error) -> Self {
        if is_transient(&error) || has_no_connection(&error) {
            return Self::Transient(error);
        }
        Self::Unavailable(to_store_error(OPERATION, &error))
    }
}

impl From<sqlx::Error> for AppendError {
    fn from(error: sqlx::Error) -> Self {
        // Another host inserted the same row or run first, and the next attempt sees the row or
        // run.
        let database = error.as_database_error();
        let is_duplicate = database.is_some_and(sqlx::error::DatabaseError::is_unique_violation);
        if is_lock_timeout(&error) {
            return Self::LockTimeout(error);
        }
        let is_foreign_run =
            database.is_some_and(|error| error.kind() == sqlx::error::ErrorKind::NotNullViolation);
        if is_duplicate || is_foreign_run || is_transient(&error) {
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
    async fn run(mut self, mut queue: mpsc::Receiver<Command>) {
        let mut commands = Vec::with_capacity(MAX_GROUP_BATCHES);
        while queue.recv_many(&mut commands, MAX_GROUP_BATCHES).await > 0 {
            self.fill_group(&mut queue, &mut commands).await;
            let (mut batches, mut tickets, mut flushes) = (Vec::new(), Vec::new(), Vec::new());
            for command in commands.drain(..) {
                match command {
                    Command::Append(thread, batch, ticket, _) => {
                        batches.push((thread, *batch));
                        tickets.push(ticket);
                    }
                    Command::Flush(_, flush) => flushes.push(flush),
                    Command::LeaseTaken(thread, row) => self.cache.insert_leased(thread, *row),
                }
            }
            let batches = Arc::new(batches);
            let results = self.write_group(&batches).await;
            let (mut written, mut locked) = (Vec::new(), Vec::new());
            for ((one, ticket), result) in batches.iter().zip(tickets).zip(results) {
                match result {
                    Some(result) => written.push((&one.0, ticket, result)),
                    None => locked.push((one, ticket)),
                }
            }
            self.complete_tickets(written);
            self.write_locked(locked).await;
            for flush in flushes {
                let _ = flush.send(Ok(()));
            }
        }
    }

    /// Adds further commands until the commit delay is over or a caller awaits one of the batches.
    async fn fill_group(&self, queue: &mut mpsc::Receiver<Command>, commands: &mut Vec<Command>) {
        if self.database.commit_delay.is_zero() {
            return;
        }
        let until = Instant::now() + self.database.commit_delay;
        let (mut seen, mut oldest) = (0, u64::MAX);
        while commands.len() < MAX_GROUP_BATCHES {
            for command in &commands[seen..] {
                match command {
                    Command::Append(thread, .., number) if !self.notifier.is_watched(thread) => {
                        oldest = oldest.min(*number);
                    }
                    Command::LeaseTaken(..) => {}
                    Command::Append(..) | Command::Flush(..) => return,
                }
            }
            seen = commands.len();
            if self.signal.flush_requests.is_requested(oldest) {
                return;
            }
            let room = MAX_GROUP_BATCHES - commands.len();
            tokio::select! {
                () = self.signal.wake.notified() => {}
                more = queue.recv_many(commands, room) => if more == 0 { return },
                () = sleep_until(until) => return,
            }
        }
    }

    /// Announces the newest sequence numbers, and resolves the tickets.
    fn complete_tickets(&self, written: Vec<(&ThreadId, TicketSender, AppendResult)>) {
        let mut newest = BTreeMap::new();
        for (thread, _, result) in &written {
            if let Ok(last_seq) = result {
                newest.insert(*thread, *last_seq);
            }
        }
        for (thread, last_seq) in newest {
            self.notifier.thread_appended(thread, last_seq);
        }
        // An error means that the caller dropped the ticket.
        for (_, ticket, result) in written {
            let _ = ticket.send(result.map(drop));
        }
    }

    /// Writes a group. Returns a result for each batch, and `None` for a batch of a thread that
    /// another transaction has locked.
    async fn write_group(&mut self, batches: &Batches) -> Vec<Option<AppendResult>> {
        let (mut results, mut locked) = (Vec::with_capacity(batches.len()), BTreeSet::new());
        while results.len() < batches.len() {
            let rest = match results.len() {
                0 => batches.clone(),
                done => Arc::new(batches[done..].to_vec()),
            };
            results.extend(self.write_prefix(&rest, &mut locked).await);
        }
        results
    }

    /// Writes the first batches of a group, as many as one transaction takes.
    async fn write_prefix(
        &mut self,
        batches: &Batches,
        locked: &mut BTreeSet<ThreadId>,
    ) -> Vec<Option<AppendResult>> {
        // Later batches of a locked thread must also wait.
        if !locked.is_empty() {
            return self.write_each(batches, locked).await;
        }
        match self.write_group_once(batches).await {
            Ok(results) => results.into_iter().map(Some).collect(),
            // A rejected batch or a locked thread must not fail the other batches.
            Err(AppendError::LockTimeout(_)) => self.write_each(batches, locked).await,
            Err(AppendError::Rejected(_)) if batches.len() > 1 => {
                self.write_each(batches, locked).await
            }
            Err(error) => vec![Some(Err(error.into())); batches.len()],
        }
    }

    /// Writes each batch in a separate transaction, except the batches of locked threads.
    async fn write_each(
        &mut self,
        batches: &Batches,
        locked: &mut BTreeSet<ThreadId>,
    ) -> Vec<Option<AppendResult>> {
        let mut results = Vec::with_capacity(batches.len());
        for one in batches.iter() {
            if locked.contains(&one.0) {
                results.push(None);
                continue;
            }
            results.push(match self.write_one(one).await {
                Err(AppendError::LockTimeout(_)) => {
                    locked.insert(one.0.clone());
                    None
                }
                written => Some(written.unwrap_or_else(|error| Err(error.into()))),
            });
        }
        results
    }

    /// Writes the batches of locked threads, after all other tickets of their group are resolved.
    async fn write_locked(&mut self, locked: Vec<(&(ThreadId, Batch), TicketSender)>) {
        let mut failed: BTreeMap<&ThreadId, StoreError> = BTreeMap::new();
        for (one, ticket) in locked {
            let result = match failed.get(&one.0) {
                Some(error) => Err(error.clone()),
                None => match self.write_when_unlocked(one).await {
                    Ok(result) => result,
                    Err(error) => {
                        failed.insert(&one.0, error.clone());
                        Err(error)
                    }
                },
            };
            self.complete_tickets(vec![(&one.0, ticket, result)]);
        }
    }

    /// Writes a batch once its thread is unlocked. Fails after [`MAX_LOCK_ATTEMPTS`] lock timeouts.
    async fn write_when_unlocked(
        &mut self,
        one: &(ThreadId, Batch),
    ) -> Result<AppendResult, StoreError> {
        for _ in 0..MAX_LOCK_ATTEMPTS {
            match self.write_one(one).await {
                Err(AppendError::LockTimeout(_)) => {}
                written => return Ok(written.unwrap_or_else(|error| Err(error.into()))),
            }
        }
        Err(backend(OPERATION, format!("thread `{}` is locked by another transaction", one.0)))
    }

    async fn write_one(&mut self, one: &(ThreadId, Batch)) -> Result<AppendResult, AppendError> {
        let results = self.write_group_once(&Arc::new(vec![one.clone()])).await?;
        Ok(results.into_iter().next().unwrap_or(Err(StoreError::Closed)))
    }

    /// Writes the first batches of a group in one transaction, as many as the transaction takes.
    async fn write_group_once(
        &mut self,
        batches: &Batches,
    ) -> Result<Vec<AppendResult>, AppendError> {
        if let Some((group, results)) = self.write_fast_path(batches).await? {
            self.cache.insert_group(group);
            return Ok(results);
        }
        let mut retry = RetryState::for_duration(self.database.retry_timeout);
        loop {
            match self.write_slow_path(batches).await {
                Ok((group, results)) => {
                    self.cache.insert_group(group);
                    return Ok(results);
                }
                Err(error) => {
                    if !matches!(error, AppendError::Transient(_)) || !retry.backoff().await {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Locks and reads the threads of a group, and writes its first batches.
    async fn write_slow_path(
        &mut self,
        batches: &Batches,
    ) -> Result<(CommitGroup, Vec<AppendResult>), AppendError> {
        let begun = self.database.begin_append().await;
        let mut transaction = begun.map_err(AppendError::on_begin)?;
        let group = self.read(&mut transaction, batches).await?;
        let staged = batches.clone();
        let staged = spawn_blocking(move || stage_all(group, &staged)).await;
        let (group, results) = staged.map_err(|error| backend(OPERATION, error))?;
        if group.write_set.threads.is_empty() {
            return Ok((group, results));
        }
        let written = group.write_set.statement().fetch_optional(&mut *transaction).await?;
        // Another thread took one of the new runs after the read. The next attempt reads its owner.
        let written = written.ok_or(AppendError::Transient(sqlx::Error::RowNotFound))?;
        let id: String = written.try_get(0)?;
        if let Err(error) = transaction.commit().await {
            // The reply was lost, but the commit may have succeeded.
            match has_committed(&self.database, &id).await {
                Ok(true) => {}
                Ok(false) => return Err(AppendError::Transient(error)),
                Err(unknown) => return Err(AppendError::Unavailable(unknown)),
            }
        }
        Ok((group, results))
    }

    /// Locks the threads of a group, and reads the rows of the threads that staging needs.
    async fn read(
        &mut self,
        transaction: &mut PgTransaction,
        batches: &Batches,
    ) -> Result<CommitGroup, AppendError> {
        let threads: BTreeSet<&ThreadId> = batches.iter().map(|(thread, _)| thread).collect();
        let created: BTreeSet<&ThreadId> = batches
            .iter()
            .filter(|(_, batch)| batch.record.is_some())
            .map(|(thread, _)| thread)
            .collect();
        let rows = thread_row::lock(transaction, &threads, &created).await?;
        let mut group = CommitGroup::default();
        for (thread, row) in rows {
            let history = self.cache.take_history(&thread, &row);
            group.threads.insert(thread, CachedThread { row, history });
        }
        let lookups = Lookups::of(&group.threads, batches);
        prefetch::read(transaction, &mut group, lookups).await?;
        Ok(group)
    }
}

/// Stages batches until the rows are large enough for one transaction.
pub(super) fn stage_all(
    mut group: CommitGroup,
    batches: &Batches,
) -> (CommitGroup, Vec<AppendResult>) {
    let (mut results, mut bytes) = (Vec::with_capacity(batches.len()), 0);
    for (thread, batch) in batches.iter() {
        let before = (group.write_set.batches.len(), group.write_set.values.len());
        results.push(group.stage_batch(thread, batch));
        bytes += group.write_set.bytes_after(before.0, before.1);
        if bytes >= MAX_GROUP_BYTES {
            break;
        }
    }
    (group, results)
}
