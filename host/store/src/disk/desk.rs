//! The queue of the writer thread, for batches and other commands.

use std::sync::Arc;
use std::thread::Thread;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{Batch, RunRecord, StoreError, Ticket};

use crate::commit_delay::FlushRequests;
use crate::disk::encode::EncodedBatch;
use crate::disk::leases::LeaseTable;
use crate::disk::writer::{Command, Entry, Handed, QueuedBatch, Work, Writer};
use crate::watch::WatchRegistry;

/// Handle to the writer thread. Clones share one queue. The writer thread parks during the commit
/// delay; the handle unparks it when a caller needs a commit.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) flush_requests: Arc<FlushRequests>,
    pub(crate) writer: Thread,
    pub(crate) watches: Arc<WatchRegistry>,
    pub(crate) leases: Arc<LeaseTable>,
}

impl Desk {
    /// Encodes a batch and queues it. Waits for a free slot if the queue is full.
    pub(crate) async fn append(&self, thread: ThreadId, batch: Batch) -> Ticket {
        let encoded = Some(EncodedBatch::of(&batch));
        let queued = Box::new(QueuedBatch { batch, encoded });
        self.hand_in(thread, Entry::Batch(queued)).await
    }

    /// Queues the addition of a pending run.
    pub(crate) async fn enqueue(&self, run: &RunRecord) -> Ticket {
        self.hand_in(run.thread.clone(), Entry::Enqueue(Box::new(run.clone()))).await
    }

    /// Queues the removal of a pending run.
    pub(crate) async fn dequeue(
        &self,
        thread: ThreadId,
        run: &RunId,
        ended: Option<&RunRecord>,
    ) -> Ticket {
        let ended = ended.map(|ended| Box::new(ended.clone()));
        self.hand_in(thread, Entry::Dequeue(run.clone(), ended)).await
    }

    async fn hand_in(&self, thread: ThreadId, entry: Entry) -> Ticket {
        let (answer, ticket) = oneshot::channel();
        let number = self.flush_requests.next_batch_no();
        // Follows the assignment of the number: a watch that begins later requests the commit of
        // all numbers so far.
        let hurries = !matches!(entry, Entry::Batch(_)) || self.watches.is_watched(&thread);
        let handed = Handed { number, thread: self.leases.begin_write(thread), entry, answer };
        if let Err(closed) = self.send(Command::Append(handed)).await {
            return Ticket::ready(Err(closed));
        }
        let (flush_requests, writer) = (self.flush_requests.clone(), self.writer.clone());
        let hurry = move || {
            flush_requests.request(number);
            writer.unpark();
        };
        if hurries {
            hurry();
        }
        Ticket::waiting(ticket, hurry)
    }

    /// Requests the commit of all queued batches without the commit delay.
    pub(crate) fn hurry(&self) {
        self.flush_requests.request_all();
        self.writer.unpark();
    }

    /// Queues a closure, which the writer runs after all commands that were queued before.
    pub(crate) async fn ask(&self, work: Work) -> Result<(), StoreError> {
        let sent = self.send(Command::Work(work)).await;
        self.writer.unpark();
        sent
    }

    /// Queues a closure from a blocking thread.
    pub(crate) fn blocking_ask(&self, work: Work) -> Result<(), StoreError> {
        let sent = match self.try_send(Command::Work(work))? {
            Some(command) => self.commands.blocking_send(command),
            None => Ok(()),
        };
        self.writer.unpark();
        sent.map_err(|_| StoreError::Closed)
    }

    /// Asks the writer to reopen a file that failed. If the queue is full, one of the queued
    /// commands does that.
    pub(crate) fn heal(&self) {
        let heal: Work = Box::new(|writer: &mut Writer| drop(writer.heal()));
        drop(self.try_send(Command::Work(heal)));
        self.writer.unpark();
    }

    async fn send(&self, command: Command) -> Result<(), StoreError> {
        match self.try_send(command)? {
            Some(command) => self.commands.send(command).await.map_err(|_| StoreError::Closed),
            None => Ok(()),
        }
    }

    /// Sends a command without waiting. Returns the command if the queue is full, and unparks the
    /// writer so that it drains the queue.
    fn try_send(&self, command: Command) -> Result<Option<Command>, StoreError> {
        match self.commands.try_send(command) {
            Ok(()) => Ok(None),
            Err(TrySendError::Full(command)) => {
                self.writer.unpark();
                Ok(Some(command))
            }
            Err(TrySendError::Closed(_)) => Err(StoreError::Closed),
        }
    }
}
