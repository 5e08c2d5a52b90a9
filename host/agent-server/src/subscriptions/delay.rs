//! Delays the start, the pauses and the end of a run on connections whose client is not ready for
//! these events.
//!
//! A client opens several connections for one run, one after another. The first connection receives
//! lifecycle events. Each further connection receives the content of one view of the run, and is
//! called a content connection here. As soon as one connection reports that the run paused or
//! ended, the official clients close all views. They also drop events to which no view has
//! subscribed yet. A run of a few milliseconds ends before the second connection is open, so
//! without a delay the client would not show the messages of the run.
//!
//! * **A start** is sent [`HEAD_START`] after the reply to the command that requested the run, on
//!   connections that were open before the command. The client has subscribed to the run by then.
//! * **A pause or an end** is sent [`GRACE`] after the reply to the command. Each content
//!   connection to the thread that opens within this time restarts this time. A connection with
//!   only lifecycle events also waits until every content connection to the thread has sent the
//!   earlier events, and then for [`HEAD_START`].
//!
//! A connection with all channels gets pauses and ends without delay. No event is delayed by more
//! than [`MAX_DELAY`], independent of other connections. An event that is older than [`MAX_DELAY`]
//! is not delayed, so reading an old run takes no extra time. Content is never delayed.
//!
//! Each host considers only the commands and connections that it serves, not those of other hosts.
//! The grace applies only to runs that a command of the streaming protocol requested.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{RunId, ThreadId};

/// Time that a client may take from the reply to its command to its first content connection, and
/// from each connection to the next: three round trips of 80 ms, as for a TLS handshake. The end of
/// a run that takes longer than this is not delayed.
pub(crate) const GRACE: Duration = Duration::from_millis(250);

/// Delay of an event after another connection has sent the content before the event. The client
/// needs this time to read the content first; otherwise the client drops the content.
pub(crate) const HEAD_START: Duration = Duration::from_millis(30);

/// Maximum delay of an event. A connection that the client does not read delays the other
/// connections by at most this time.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(1);

/// Number of threads at which unused threads are removed for the first time.
const FIRST_SWEEP: usize = 64;

/// Delays the events of threads. Tracks the connections to each thread and the commands that
/// recently requested its runs. Clones share the state.
#[derive(Clone, Default)]
pub(crate) struct EventDelays(Arc<Mutex<Threads>>);

#[derive(Default)]
struct Threads {
    by_id: HashMap<ThreadId, Arc<Thread>>,
    /// Number of threads at which unused threads are removed next.
    sweep_at: usize,
}

/// The connections and commands of one thread.
#[derive(Default)]
struct Thread {
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    commands: BTreeMap<RunId, CommandTimes>,
    /// Sequence number of the last event that each content connection has sent, by connection
    /// number.
    sent: BTreeMap<u64, u64>,
    /// Number of the last connection or command.
    last_number: u64,
}

/// A command that requested a run.
#[derive(Clone, Copy)]
struct CommandTimes {
    /// Connections with lower numbers were open before the command was received.
    number: u64,
    replied: Option<Instant>,
    /// Time from which pauses and the end of the run may be sent; `None` before the reply.
    due: Option<Instant>,
}

/// The events that a connection receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReceivedChannels {
    /// Lifecycle events and interrupts only.
    #[default]
    Lifecycle,
    /// Some content.
    Content,
    /// Every channel of every graph.
    All,
}

/// A command that requests a run and has no reply yet. If the value is dropped without a reply, the
/// command has failed.
pub(crate) struct PendingCommand {
    thread: Arc<Thread>,
    run: RunId,
}

/// A connection to the events of a thread.
pub(crate) struct Connection {
    thread: Arc<Thread>,
    changes: watch::Receiver<()>,
    number: u64,
    channels: ReceivedChannels,
    delayed: Option<DelayedEvent>,
}

/// The event that a connection delays.
#[derive(Clone, Copy)]
struct DelayedEvent {
    seq: u64,
    /// Time at which the delay ends at the latest.
    until: Instant,
    /// Time at which all content connections had sent the events before this event.
    caught_up: Option<Instant>,
}

impl EventDelays {
    /// Records that a command requests a run.
    pub(crate) fn command(&self, thread: &ThreadId, run: &RunId) -> PendingCommand {
        let thread = self.thread(thread);
        let mut state = thread.lock();
        // A command whose grace has ended no longer delays events.
        state.commands.retain(|_, it| it.due.is_none_or(|due| due > Instant::now()));
        let number = state.number();
        state.commands.insert(run.clone(), CommandTimes { number, replied: None, due: None });
        drop(state);
        PendingCommand { thread, run: run.clone() }
    }

    /// Records a new connection to a thread. The connection has no subscriptions yet.
    pub(crate) fn connect(&self, thread: &ThreadId) -> Connection {
        let thread = self.thread(thread);
        let number = thread.lock().number();
        let (changes, channels) = (thread.changes.subscribe(), ReceivedChannels::default());
        Connection { thread, changes, number, channels, delayed: None }
    }

    fn thread(&self, id: &ThreadId) -> Arc<Thread> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.by_id.len() >= threads.sweep_at {
            threads.by_id.retain(|_, it| Arc::strong_count(it) > 1 || it.lock().is_recent());
            threads.sweep_at = FIRST_SWEEP.max(2 * threads.by_id.len());
        }
        Arc::clone(threads.by_id.entry(id.clone()).or_default())
    }
}

impl Thread {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changes.send_replace(());
    }
}

impl State {
    /// Returns whether a command has no reply yet, or its grace has not ended.
    fn is_recent(&self) -> bool {
        self.commands.values().any(|it| it.due.is_none_or(|due| due > Instant::now()))
    }

    /// Extends the grace of recent commands after a content connection was opened, because the
    /// client may open another content connection. A connection that is opened after the grace
    /// belongs to another client or to a reloaded page, and extends no grace.
    fn extend(&mut self) {
        let now = Instant::now();
        for due in self.commands.values_mut().filter_map(|command| command.due.as_mut()) {
            if *due > now {
                *due = now + GRACE;
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Returns the time from which the start of a run may be sent to a connection; `None` if this
    /// depends on a reply that was not sent yet.
    fn start_due(&self, run: &RunId, connection: u64) -> Option<Instant> {
        match self.commands.get(run) {
            Some(command) if connection < command.number => Some(command.replied? + HEAD_START),
            _ => Some(Instant::now()),
        }
    }

    /// Returns the time from which a pause or the end of a run may be sent; `None` if this depends
    /// on a reply or on other connections.
    fn stop_due(
        &self,
        run: &RunId,
        channels: ReceivedChannels,
        delayed: &mut DelayedEvent,
    ) -> Option<Instant> {
        let due = match self.commands.get(run) {
            Some(command) => command.due?,
            None => Instant::now(),
        };
        if channels != ReceivedChannels::Lifecycle || self.sent.is_empty() {
            return Some(due);
        }
        if !self.sent.values().all(|sent| *sent + 1 >= delayed.seq) {
            return None;
        }
        let caught_up = *delayed.caught_up.get_or_insert_with(Instant::now);
        Some(due.max(caught_up + HEAD_START))
    }
}

impl PendingCommand {
    /// Records that the run was created and that the reply to the command is sent.
    pub(crate) fn reply_sent(self) {
        self.thread.update(|state| {
            if let Some(command) = state.commands.get_mut(&self.run) {
                let now = Instant::now();
                (command.replied, command.due) = (Some(now), Some(now + GRACE));
            }
        });
    }
}

impl Drop for PendingCommand {
    fn drop(&mut self) {
        self.thread.update(|state| {
            if state.commands.get(&self.run).is_some_and(|it| it.replied.is_none()) {
                state.commands.remove(&self.run);
            }
        });
    }
}

impl Connection {
    /// Records which events after the sequence number `after` the connection receives. If `is_new`
    /// is set and the connection receives content, extends the grace like a new content connection.
    pub(crate) fn set_channels(&mut self, channels: ReceivedChannels, after: u64, is_new: bool) {
        self.channels = channels;
        let number = self.number;
        self.thread.update(|state| {
            if channels == ReceivedChannels::Lifecycle {
                state.sent.remove(&number);
                return;
            }
            state.sent.insert(number, after);
            if is_new {
                state.extend();
            }
        });
    }

    /// Records that the connection has sent the events up to `seq`.
    pub(crate) fn mark_sent(&self, seq: u64) {
        let is_new = |sent: &mut u64| std::mem::replace(sent, seq) != seq;
        let has_changed = self.thread.lock().sent.get_mut(&self.number).is_some_and(is_new);
        if has_changed {
            self.thread.changes.send_replace(());
        }
    }

    /// Waits until an event may be sent to the client. This method is cancel safe.
    pub(crate) async fn wait_until_due(&mut self, event: &Event, now_ms: i64) {
        loop {
            // Mark earlier changes as seen before the state is read, so that a later change ends
            // the wait.
            self.changes.borrow_and_update();
            let Some((due, until)) = self.due(event, now_ms) else { return };
            let due = due.unwrap_or(until).min(until);
            if due <= Instant::now() {
                return;
            }
            tokio::select! {
                () = sleep_until(due) => {}
                changed = self.changes.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Returns the time from which an event may be sent, if it is known, and the time at which its
    /// delay ends at the latest. Returns `None` for an event that is not delayed.
    fn due(&mut self, event: &Event, now_ms: i64) -> Option<(Option<Instant>, Instant)> {
        let is_start = match &event.kind {
            EventKind::RunStarted(_) if event.namespace.is_root() => true,
            EventKind::RunEnded(_) if event.namespace.is_root() => false,
            EventKind::InterruptRaised(raised) if !raised.answered => false,
            _ => return None,
        };
        if !is_start && self.channels == ReceivedChannels::All {
            return None;
        }
        let now = Instant::now();
        let mut delayed =
            self.delayed.filter(|delayed| delayed.seq == event.seq).unwrap_or_else(|| {
                DelayedEvent {
                    seq: event.seq,
                    until: now + remaining_delay(event.at_ms, now_ms),
                    caught_up: None,
                }
            });
        let state = self.thread.lock();
        let due = if is_start {
            state.start_due(&event.run, self.number)
        } else {
            state.stop_due(&event.run, self.channels, &mut delayed)
        };
        drop(state);
        self.delayed = Some(delayed);
        Some((due, delayed.until))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.thread.update(|state| _ = state.sent.remove(&self.number));
    }
}

/// Returns the remaining part of the maximum delay of an event. The time of the event can be in the
/// future, because the clock of another host may be ahead.
fn remaining_delay(at_ms: i64, now_ms: i64) -> Duration {
    let elapsed_ms = u64::try_from(now_ms.saturating_sub(at_ms)).unwrap_or(0);
    MAX_DELAY.saturating_sub(Duration::from_millis(elapsed_ms))
}

#[cfg(test)]
mod tests {
    use wattle_graph::event::{RunEnded, RunStatus};
    use wattle_graph::id::Namespace;

    use super::*;

    /// Time of the start and end of the run in these tests, in milliseconds since 1970.
    const THEN_MS: i64 = 1_000_000;

    fn end() -> Event {
        let ended = RunEnded {
            status: RunStatus::Completed,
            failure: None,
            drained: false,
            principal: None,
            store_us: 0,
        };
        Event {
            seq: 9,
            at_ms: THEN_MS,
            run: RunId::new("r").unwrap(),
            namespace: Namespace::root(),
            kind: EventKind::RunEnded(ended),
        }
    }

    fn connection(delays: &EventDelays, channels: ReceivedChannels) -> Connection {
        let mut connection = delays.connect(&ThreadId::new("t").unwrap());
        connection.set_channels(channels, 0, true);
        connection
    }

    fn commanded(delays: &EventDelays) -> PendingCommand {
        delays.command(&ThreadId::new("t").unwrap(), &RunId::new("r").unwrap())
    }

    async fn waited(connection: &mut Connection) -> Duration {
        let from = Instant::now();
        connection.wait_until_due(&end(), THEN_MS).await;
        from.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn run_end_waits_for_the_grace_without_other_connections() {
        for (channels, grace) in [
            (ReceivedChannels::Lifecycle, GRACE),
            (ReceivedChannels::Content, GRACE),
            (ReceivedChannels::All, Duration::ZERO),
        ] {
            let delays = EventDelays::default();
            commanded(&delays).reply_sent();
            assert_eq!(waited(&mut connection(&delays, channels)).await, grace, "{channels:?}");
            let again = waited(&mut connection(&delays, ReceivedChannels::Content)).await;
            assert_eq!(grace + again, GRACE, "a reloaded page");
        }
        let delays = EventDelays::default();
        let unasked = waited(&mut connection(&delays, ReceivedChannels::Content)).await;
        assert_eq!(unasked, Duration::ZERO, "no command requested the run");
    }

    #[tokio::test(start_paused = true)]
    async fn content_connection_extends_the_grace_before_its_end() {
        let delays = EventDelays::default();
        let mut watcher = connection(&delays, ReceivedChannels::Lifecycle);
        commanded(&delays).reply_sent();
        let open = async {
            tokio::time::sleep(GRACE / 2).await;
            let content = connection(&delays, ReceivedChannels::Content);
            content.mark_sent(8);
            tokio::time::sleep(GRACE / 2).await;
            content
        };
        let (waiting, _content) = tokio::join!(waited(&mut watcher), open);
        assert_eq!(waiting, GRACE / 2 + GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn run_end_waits_for_content_connections_up_to_a_limit() {
        let delays = EventDelays::default();
        let mut watcher = connection(&delays, ReceivedChannels::Lifecycle);
        let content = connection(&delays, ReceivedChannels::Content);
        let read = async {
            tokio::time::sleep(GRACE).await;
            content.mark_sent(8);
        };
        let (waiting, ()) = tokio::join!(waited(&mut watcher), read);
        assert_eq!(waiting, GRACE + HEAD_START);
        let mut watcher = connection(&delays, ReceivedChannels::Lifecycle);
        let stalled = connection(&delays, ReceivedChannels::Content);
        assert_eq!(waited(&mut watcher).await, MAX_DELAY);
        let later = THEN_MS + i64::try_from(MAX_DELAY.as_millis()).unwrap();
        let from = Instant::now();
        connection(&delays, ReceivedChannels::Lifecycle).wait_until_due(&end(), later).await;
        assert_eq!(from.elapsed(), Duration::ZERO, "an old event is not delayed");
        drop((stalled, content));
        let mut watcher = connection(&delays, ReceivedChannels::Lifecycle);
        assert_eq!(waited(&mut watcher).await, Duration::ZERO, "both connections are closed");
    }

    #[tokio::test(start_paused = true)]
    async fn run_end_waits_for_the_reply_unless_the_command_fails() {
        let delays = EventDelays::default();
        let command = commanded(&delays);
        let mut watcher = connection(&delays, ReceivedChannels::Lifecycle);
        let answer = async {
            tokio::time::sleep(GRACE).await;
            command.reply_sent();
        };
        let (waiting, ()) = tokio::join!(waited(&mut watcher), answer);
        assert_eq!(waiting, 2 * GRACE);
        drop(commanded(&delays));
        assert_eq!(
            waited(&mut connection(&delays, ReceivedChannels::Lifecycle)).await,
            Duration::ZERO
        );
    }

    #[tokio::test(start_paused = true)]
    async fn unused_threads_are_removed() {
        let delays = EventDelays::default();
        let kept = delays.connect(&ThreadId::new("kept").unwrap());
        for number in 0..10 * FIRST_SWEEP {
            let thread = ThreadId::new(format!("t-{number}")).unwrap();
            delays.command(&thread, &RunId::new("r").unwrap()).reply_sent();
            tokio::time::advance(GRACE).await;
        }
        assert!(delays.0.lock().unwrap().by_id.len() <= FIRST_SWEEP);
        let same = delays.thread(&ThreadId::new("kept").unwrap());
        assert!(Arc::ptr_eq(&kept.thread, &same));
    }
}
