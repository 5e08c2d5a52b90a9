//! The queue of the writer thread, for batches and other commands.

use std::sync::Arc;
use std::thread::Thread;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_run::ports::store::{Batch, RunRecord, StoreError, Ticket};

use crate::commit_delay::FlushRequests;
use crate::disk::encode::EncodedBatch;
use crate::disk::leases::LeaseTable;
use crate::disk::writer::{Command, QueuedBatch, QueuedWrite, WriteOp, Writer, WriterTask};
use crate::watch::WatchRegistry;

/// Handle to the writer thread. Clones share one queue. The writer thread parks during the commit
/// delay; the handle unparks it when a caller needs a commit.
#[derive(Clone)]
pub(crate) struct WriterHandle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) flush_requests: Arc<FlushRequests>,
    pub(crate) thread: Thread,
    pub(crate) watches: Arc<WatchRegistry>,
    pub(crate) leases: Arc<LeaseTable>,
}

impl WriterHandle {
    /// Encodes a batch and queues it. Waits for a free slot if the queue is full.
    pub(crate) async fn append(&self, thread: ThreadId, batch: Batch) -> Ticket {
        let encoded = Some(EncodedBatch::of(&thread, &batch));
        let queued = Box::new(QueuedBatch { batch, encoded });
        self.queue(thread, WriteOp::Batch(queued)).await
    }

    /// Queues the addition of a pending run, which requests an app and a graph.
    pub(crate) async fn enqueue(
        &self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Ticket {
        let op = WriteOp::Enqueue(Box::new(run.clone()), requested.cloned());
        self.queue(run.thread.clone(), op).await
    }

    /// Queues the removal of a pending run.
    pub(crate) async fn dequeue(
        &self,
        thread: ThreadId,
        run: &RunId,
        ended: Option<&RunRecord>,
    ) -> Ticket {
        let ended = ended.map(|ended| Box::new(ended.clone()));
        self.queue(thread, WriteOp::Dequeue(run.clone(), ended)).await
    }

    async fn queue(&self, thread: ThreadId, op: WriteOp) -> Ticket {
        let (reply, ticket) = oneshot::channel();
        let number = self.flush_requests.next_batch_no();
        // This check must come after the assignment of the number. A watch that begins after the
        // check requests the commit of all numbers assigned so far.
        let flushes_now = !matches!(op, WriteOp::Batch(_)) || self.watches.is_watched(&thread);
        let queued_write =
            QueuedWrite { number, thread: self.leases.begin_write(thread), op, reply };
        if let Err(closed) = self.send(Command::Append(queued_write)).await {
            return Ticket::ready(Err(closed));
        }
        let (flush_requests, writer_thread) = (self.flush_requests.clone(), self.thread.clone());
        let request_flush = move || {
            flush_requests.request(number);
            writer_thread.unpark();
        };
        if flushes_now {
            request_flush();
        }
        Ticket::waiting(ticket, request_flush)
    }

    /// Requests the commit of all queued batches without the commit delay.
    pub(crate) fn request_flush(&self) {
        self.flush_requests.request_all();
        self.thread.unpark();
    }

    /// Queues a closure, which the writer runs after all commands that were queued before.
    pub(crate) async fn run(&self, work: WriterTask) -> Result<(), StoreError> {
        let sent = self.send(Command::Run(work)).await;
        self.thread.unpark();
        sent
    }

    /// Queues a closure from a blocking thread.
    pub(crate) fn run_blocking(&self, work: WriterTask) -> Result<(), StoreError> {
        let sent = match self.send_or_return(Command::Run(work))? {
            Some(command) => self.commands.blocking_send(command),
            None => Ok(()),
        };
        self.thread.unpark();
        sent.map_err(|_| StoreError::Closed)
    }

    /// Requests that the writer reopen a file that failed. If the queue is full, one of the queued
    /// commands reopens the file.
    pub(crate) fn request_reopen(&self) {
        let reopen: WriterTask = Box::new(|writer: &mut Writer| drop(writer.reopen_if_failed()));
        drop(self.send_or_return(Command::Run(reopen)));
        self.thread.unpark();
    }

    async fn send(&self, command: Command) -> Result<(), StoreError> {
        match self.send_or_return(command)? {
            Some(command) => self.commands.send(command).await.map_err(|_| StoreError::Closed),
            None => Ok(()),
        }
    }

    /// Sends a command without waiting. Returns the command if the queue is full, and unparks the
    /// writer so that it drains the queue.
    fn send_or_return(&self, command: Command) -> Result<Option<Command>, StoreError> {
        match self.commands.try_send(command) {
            Ok(()) => Ok(None),
            Err(TrySendError::Full(command)) => {
                self.thread.unpark();
                Ok(Some(command))
            }
            Err(TrySendError::Closed(_)) => Err(StoreError::Closed),
        }
    }
}
