//! Notifications between hosts, by `LISTEN` and `NOTIFY`.
//!
//! Notifications are sent in a separate transaction. PostgreSQL serializes commits of transactions
//! with notifications, so commits of batches with notifications could not share a flush. A
//! notification is lost if its host ends right after a commit. Each host therefore polls all
//! threads that have a watcher on this host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use sqlx::postgres::PgListener;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;
use wattle_graph::id::{RunId, ThreadId};
use wattle_graph::principal::Principal;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::store::{LeaseHolder, Notification, StoreError};

use crate::postgres::database::Database;
use crate::watch::WatchRegistry;

/// Capacity of the queue of notifications. If the queue is full, notifications of events are
/// dropped, and a poll finds the events.
const QUEUE_CAPACITY: usize = 4096;

/// Capacity of the channel of received notifications. If the channel is full, the oldest
/// notifications are lost, and their senders repeat them.
const NOTIFICATION_CAPACITY: usize = 1024;

/// Interval between two polls of all watched threads.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Delay before the next attempt to listen.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Interval between two `NOTIFY` statements, so that one statement sends the notifications of
/// several commits.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(10);

/// Number of threads that one statement polls.
const PAGE_THREADS: usize = 1000;

const NOTIFY: &str = "SELECT pg_notify($1, news) FROM unnest($2::text[]) AS news";

const LAST_SEQS: &str =
    "SELECT id, last_seq FROM threads WHERE id = ANY($1) AND record IS NOT NULL";

/// The payload of a notification. It is sent as JSON, which contains no zero bytes. Even with the
/// longest id, a payload is far shorter than the 8000 bytes that PostgreSQL allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
enum Payload {
    /// A thread and its newest event; `None` if the thread was deleted.
    Thread(ThreadId, Option<u64>),
    /// Requests that the host that executes the run cancel the run.
    Cancel {
        cancel: RunId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
    },
    /// Requests that the host that executes the run drain the run.
    Drain { drain: RunId },
    /// A run of a thread was enqueued, with its due time, its caller and the host that starts it.
    Enqueued {
        enqueued: ThreadId,
        due_ms: i64,
        #[serde(default, skip_serializing_if = "CallerId::is_unknown")]
        caller: CallerId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<LeaseHolder>,
    },
    /// A host has stopped runs and released their leases.
    HandedOver { handed_over: bool },
}

impl Payload {
    fn of(notification: Notification) -> Self {
        match notification {
            Notification::Cancel { run, principal } => Self::Cancel { cancel: run, principal },
            Notification::Drain(drain) => Self::Drain { drain },
            Notification::Enqueued { thread, due_ms, caller, host } => {
                Self::Enqueued { enqueued: thread, due_ms, caller, host }
            }
            Notification::HandedOver => Self::HandedOver { handed_over: true },
        }
    }
}

/// Announces appends and deletions of threads to all hosts, and sends [`Notification`]s.
#[derive(Clone, Debug)]
pub(super) struct Notifier {
    watches: Arc<WatchRegistry>,
    notifications: broadcast::Sender<Notification>,
    queue: mpsc::Sender<Payload>,
}

impl Notifier {
    /// Starts the tasks that send notifications to other hosts and receive notifications of other
    /// hosts. Dropping the returned [`ListenerTasks`] stops the receiving tasks.
    pub(super) fn open(database: &Database) -> (Self, ListenerTasks) {
        let watches = Arc::new(WatchRegistry::default());
        let notifications = broadcast::Sender::new(NOTIFICATION_CAPACITY);
        let (queue, receiver) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(notify_loop(database.clone(), receiver));
        let listener_tasks = [
            tokio::spawn(listen_loop(database.clone(), watches.clone(), notifications.clone())),
            tokio::spawn(poll_loop(database.clone(), watches.clone())),
        ];
        (Self { watches, notifications, queue }, ListenerTasks(listener_tasks))
    }

    /// Announces the newest event of a thread.
    pub(super) fn thread_appended(&self, thread: &ThreadId, last_seq: u64) {
        self.watches.publish_retained(thread, last_seq);
        // If the queue is full or closed, other hosts find the event by a poll.
        let _ = self.queue.try_send(Payload::Thread(thread.clone(), Some(last_seq)));
    }

    /// Announces that a thread was deleted.
    pub(super) fn thread_deleted(&self, thread: &ThreadId) {
        self.watches.remove(thread);
        let _ = self.queue.try_send(Payload::Thread(thread.clone(), None));
    }

    /// Sends a notification to all hosts, including this host.
    pub(super) fn send(&self, notification: Notification) {
        // If the queue is full, the caller sends the notification again.
        let _ = self.queue.try_send(Payload::of(notification));
    }

    /// Returns a receiver of the notifications that all hosts send from now on.
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Notification> {
        self.notifications.subscribe()
    }

    /// Returns true if a thread has a watcher on this host.
    pub(super) fn is_watched(&self, thread: &ThreadId) -> bool {
        self.watches.is_watched(thread)
    }

    /// Watches a thread, and reads its newest event in the background.
    pub(super) fn watch(&self, database: &Database, thread: &ThreadId) -> watch::Receiver<u64> {
        let receiver = self.watches.subscribe(thread, || 0);
        let (database, watches, thread) = (database.clone(), self.watches.clone(), thread.clone());
        tokio::spawn(async move {
            if let Err(error) = poll_last_seqs(&database, &watches, &[(thread, 0)]).await {
                tracing::debug!(%error, "newest event of a thread cannot be read");
            }
        });
        receiver
    }
}

/// The tasks that receive notifications and poll.
#[derive(Debug)]
pub(super) struct ListenerTasks([JoinHandle<()>; 2]);

impl Drop for ListenerTasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

async fn notify_loop(database: Database, mut queue: mpsc::Receiver<Payload>) {
    let mut queued = Vec::new();
    while queue.recv_many(&mut queued, QUEUE_CAPACITY).await > 0 {
        let payloads = payloads(queued.drain(..));
        let sent = sqlx::query(NOTIFY)
            .bind(&database.schema)
            .bind(payloads)
            .execute(&database.notify_pool)
            .await;
        if let Err(error) = sent {
            tracing::debug!(%error, "cannot notify other hosts");
        }
        tokio::time::sleep(NOTIFY_INTERVAL).await;
    }
}

/// Serializes payloads: for each thread only the newest payload, and all other payloads without
/// duplicates.
fn payloads(queued: impl Iterator<Item = Payload>) -> Vec<String> {
    let (mut threads, mut others) = (BTreeMap::new(), BTreeSet::new());
    for payload in queued {
        match payload {
            Payload::Thread(thread, newest) => drop(threads.insert(thread, newest)),
            other => drop(others.insert(other)),
        }
    }
    let threads = threads.into_iter().map(|(thread, newest)| Payload::Thread(thread, newest));
    threads.chain(others).filter_map(|payload| serde_json::to_string(&payload).ok()).collect()
}

async fn listen_loop(
    database: Database,
    watches: Arc<WatchRegistry>,
    notifications: broadcast::Sender<Notification>,
) {
    loop {
        if let Err(error) = listen_until_error(&database, &watches, &notifications).await {
            tracing::debug!(%error, "cannot receive notifications, listening again");
        }
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}

async fn listen_until_error(
    database: &Database,
    watches: &WatchRegistry,
    notifications: &broadcast::Sender<Notification>,
) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(&database.notify_pool).await?;
    listener.eager_reconnect(false);
    listener.listen(&database.schema).await?;
    // Notifications before `LISTEN` are lost, so this poll reads the newest events.
    watches.drop_idle();
    if let Err(error) = poll_last_seqs(database, watches, &watches.watched()).await {
        tracing::debug!(%error, "watched threads cannot be read");
    }
    while let Some(notification) = listener.try_recv().await? {
        match serde_json::from_str(notification.payload()) {
            Ok(Payload::Thread(thread, Some(last_seq))) => watches.publish(&thread, last_seq),
            Ok(Payload::Thread(thread, None)) => watches.remove(&thread),
            // An error means that no engine of this process receives notifications.
            Ok(Payload::Cancel { cancel, principal }) => {
                drop(notifications.send(Notification::Cancel { run: cancel, principal }));
            }
            Ok(Payload::Drain { drain }) => drop(notifications.send(Notification::Drain(drain))),
            Ok(Payload::Enqueued { enqueued: thread, due_ms, caller, host }) => {
                drop(notifications.send(Notification::Enqueued { thread, due_ms, caller, host }));
            }
            Ok(Payload::HandedOver { .. }) => drop(notifications.send(Notification::HandedOver)),
            Err(error) => tracing::debug!(%error, "invalid notification payload"),
        }
    }
    Ok(())
}

async fn poll_loop(database: Database, watches: Arc<WatchRegistry>) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        if let Err(error) = poll_last_seqs(&database, &watches, &watches.watched()).await {
            tracing::debug!(%error, "watched threads cannot be read");
        }
    }
}

/// Reads the newest events of threads. If a thread now has fewer events than before, the watched
/// thread was deleted and another thread has its id.
async fn poll_last_seqs(
    database: &Database,
    watches: &WatchRegistry,
    watched: &[(ThreadId, u64)],
) -> Result<(), StoreError> {
    for page in watched.chunks(PAGE_THREADS) {
        let ids: Vec<&[u8]> = page.iter().map(|(thread, _)| thread.as_str().as_bytes()).collect();
        let newest = || sqlx::query(LAST_SEQS).bind(&ids);
        let rows = database.rows("read the newest events", newest).await?;
        let mut found = BTreeMap::new();
        for row in &rows {
            if let (Ok(id), Ok(seq)) = (row.try_get::<&[u8], _>(0), row.try_get::<i64, _>(1)) {
                found.insert(id, seq.cast_unsigned());
            }
        }
        for (thread, seen) in page {
            match found.get(thread.as_str().as_bytes()) {
                Some(last_seq) if last_seq >= seen => watches.publish(thread, *last_seq),
                None if *seen == 0 => {}
                _ => watches.remove(thread),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_deduplicated_and_round_trip() {
        let thread = |newest| Payload::Thread(ThreadId::new("t").unwrap(), newest);
        let run = || RunId::new("r").unwrap();
        let cancel = || Payload::of(Notification::Cancel { run: run(), principal: None });
        let drain = || Payload::of(Notification::Drain(run()));
        let enqueued_for = |host| {
            let thread = ThreadId::new("t").unwrap();
            let caller = CallerId::default();
            Payload::of(Notification::Enqueued { thread, due_ms: 5, caller, host })
        };
        let enqueued = || enqueued_for(None);
        let called = || {
            let (thread, caller) = (ThreadId::new("t").unwrap(), CallerId::of_key("k"));
            Payload::of(Notification::Enqueued { thread, due_ms: 5, caller, host: None })
        };
        let queued = [
            thread(Some(1)),
            enqueued(),
            drain(),
            cancel(),
            thread(Some(2)),
            drain(),
            cancel(),
            enqueued(),
        ];
        let payloads = payloads(queued.into_iter());
        let enqueues = r#"{"enqueued":"t","due_ms":5}"#;
        assert_eq!(payloads, [r#"["t",2]"#, r#"{"cancel":"r"}"#, r#"{"drain":"r"}"#, enqueues]);
        let principal = Some(Principal { user: Some("jane".into()), ..Principal::default() });
        let named = Payload::of(Notification::Cancel { run: run(), principal });
        let handed_over = Payload::of(Notification::HandedOver);
        let elsewhere = enqueued_for(Some(LeaseHolder("h".into())));
        for payload in [
            thread(Some(7)),
            thread(None),
            cancel(),
            named,
            drain(),
            enqueued(),
            elsewhere,
            called(),
            handed_over,
        ] {
            let text = serde_json::to_string(&payload).unwrap();
            assert_eq!(serde_json::from_str::<Payload>(&text).unwrap(), payload, "{text}");
        }
    }
}
