//! The leases of an open file, which the writer thread and its callers share.
//!
//! A lease request takes effect immediately and bypasses the queue of the writer thread, unless the
//! thread of the lease has a *write*: a batch that is queued or being committed, or a deletion, a
//! rewrite or a copy that has begun. Such a request goes through the queue, after the write. So a
//! batch is written under the lease that was valid when the batch was appended, and a new lease
//! holder reads everything that was written under the lease before. Writes of other threads delay
//! no request.
//!
//! While the file cannot be written, requests for leases also go through the queue, so that the
//! writer opens the file again or refuses them. Heartbeats always go through the queue: the reply
//! to a heartbeat shows that the writer is running.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{LeaseEpoch, LeaseHolder, StoreError};

use crate::lease::Leases;
use crate::lock::lock;

/// The leases of a file, with the threads whose writes are not complete.
pub(crate) struct LeaseTable(Mutex<Table>);

struct Table {
    leases: Leases,
    /// Number of writes of each thread that has any.
    writes: HashMap<ThreadId, usize>,
    /// Whether the file failed and is not open again.
    has_failed: bool,
}

impl LeaseTable {
    /// Creates the table of a file that can be written.
    pub(crate) fn new(leases: Leases) -> Self {
        Self(Mutex::new(Table { leases, writes: HashMap::new(), has_failed: false }))
    }

    /// Begins a write of a thread.
    pub(crate) fn begin_write(self: &Arc<Self>, thread: ThreadId) -> ThreadWrite {
        *lock(&self.0).writes.entry(thread.clone()).or_default() += 1;
        ThreadWrite { thread, table: self.clone(), has_ended: false }
    }

    /// Grants a lease. Returns `None` if the request must go through the queue.
    pub(crate) fn acquire_now(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Option<Result<LeaseEpoch, StoreError>> {
        let mut table = lock(&self.0);
        let is_possible = !table.has_failed && !table.writes.contains_key(thread);
        is_possible.then(|| table.leases.acquire(thread, holder))
    }

    /// Releases a lease. Returns `false` if the request must go through the queue.
    pub(crate) fn release_now(&self, thread: &ThreadId, epoch: LeaseEpoch) -> bool {
        let mut table = lock(&self.0);
        let is_possible = !table.writes.contains_key(thread);
        if is_possible {
            table.leases.release(thread, epoch);
        }
        is_possible
    }

    /// Runs a closure on the leases, under the lock of the table.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Leases) -> T) -> T {
        work(&mut lock(&self.0).leases)
    }

    /// Records whether the file failed and is not open again.
    pub(crate) fn set_failed(&self, has_failed: bool) {
        lock(&self.0).has_failed = has_failed;
    }
}

/// A write of a thread, which ends when this value is dropped.
pub(crate) struct ThreadWrite {
    thread: ThreadId,
    table: Arc<LeaseTable>,
    has_ended: bool,
}

impl ThreadWrite {
    /// Returns the thread.
    pub(crate) fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Ends the write, before its caller is notified. Further calls do nothing.
    pub(crate) fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let mut table = lock(&self.table.0);
        if let Some(writes) = table.writes.get_mut(&self.thread) {
            *writes -= 1;
            if *writes == 0 {
                table.writes.remove(&self.thread);
            }
        }
    }
}

impl Drop for ThreadWrite {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::monotonic_clock;

    fn table() -> Arc<LeaseTable> {
        Arc::new(LeaseTable::new(Leases::new(1, monotonic_clock())))
    }

    fn thread(name: &str) -> ThreadId {
        ThreadId::new(name).unwrap()
    }

    fn holder() -> LeaseHolder {
        LeaseHolder("a".to_owned())
    }

    #[test]
    fn lease_requests_wait_for_writes_of_their_thread_only() {
        let table = table();
        let epoch = table.acquire_now(&thread("t"), &holder()).unwrap().unwrap();
        let mut first = table.begin_write(thread("t"));
        let second = table.begin_write(thread("t"));
        assert!(table.acquire_now(&thread("other"), &holder()).unwrap().is_ok());
        first.end();
        first.end();
        drop(first);
        assert!(table.acquire_now(&thread("t"), &holder()).is_none());
        assert!(!table.release_now(&thread("t"), epoch));
        assert!(table.with(|leases| leases.check_epoch(&thread("t"), Some(epoch))).is_ok());
        drop(second);
        assert!(table.release_now(&thread("t"), epoch));
        assert!(table.with(|leases| leases.check_epoch(&thread("t"), Some(epoch))).is_err());
        assert!(table.acquire_now(&thread("t"), &holder()).unwrap().is_ok());
    }

    #[test]
    fn lease_requests_go_through_the_queue_while_the_file_has_failed() {
        let table = table();
        let epoch = table.acquire_now(&thread("t"), &holder()).unwrap().unwrap();
        table.set_failed(true);
        assert!(table.acquire_now(&thread("other"), &holder()).is_none());
        assert!(table.release_now(&thread("t"), epoch), "a release needs no file");
        table.set_failed(false);
        assert!(table.acquire_now(&thread("other"), &holder()).unwrap().is_ok());
    }
}
