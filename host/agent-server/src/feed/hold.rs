//! Delays the start, the pauses and the end of a run on connections whose client is not ready for
//! them.
//!
//! A client opens several connections for one run, one after another: first one for lifecycle
//! events, then one for each part of the run that it shows. As soon as one connection reports that
//! the run paused or ended, the official clients close all parts. They also drop events that no
//! part has subscribed to yet. A run of a few milliseconds ends before the second connection is
//! open, so without a delay the client would not show its messages.
//!
//! * **A start** is sent [`HEAD_START`] after the reply to the command that requested the run, on
//!   connections that were open before the command. The client has subscribed to the run by then.
//! * **A pause or an end** is sent [`GRACE`] after the reply to the command. Each content
//!   connection to the thread that opens within this time restarts it. A connection with only
//!   lifecycle events also waits until every content connection to the thread has sent the events
//!   before, and [`HEAD_START`] longer.
//!
//! A connection with all channels gets pauses and ends without delay. No event is delayed by more
//! than [`LONGEST`], whatever other connections do. An event that is older than this is not
//! delayed, so a replay takes no extra time. Content is never delayed.
//!
//! Each host delays events only by its own commands and connections, not by those of other hosts. A
//! run that no command of the streaming protocol requested has no grace.

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

/// Delay of an event after the content before it, on another connection. It gives the client time
/// to read the content first; otherwise the client drops the content.
pub(crate) const HEAD_START: Duration = Duration::from_millis(30);

/// Maximum delay of an event. A connection that the client does not read delays the other
/// connections by at most this time.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// Number of threads at which unused ones are removed for the first time.
const FIRST_SWEEP: usize = 64;

/// The threads that have connections, or whose runs were requested recently. Clones share the
/// state.
#[derive(Clone, Default)]
pub(crate) struct Holds(Arc<Mutex<Threads>>);

#[derive(Default)]
struct Threads {
    by_id: HashMap<ThreadId, Arc<Thread>>,
    /// Number of threads at which unused ones are removed next.
    sweep_at: usize,
}

/// The connections and commands of one thread.
#[derive(Default)]
struct Thread {
    state: Mutex<State>,
    news: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    commands: BTreeMap<RunId, Answered>,
    /// Sequence number of the last event that each content connection has sent, by connection
    /// number.
    handed: BTreeMap<u64, u64>,
    /// Number of the last connection or command.
    next: u64,
}

/// A command that requested a run.
#[derive(Clone, Copy)]
struct Answered {
    /// Connections with lower numbers were open before the command was received.
    number: u64,
    answered: Option<Instant>,
    /// Time from which pauses and the end of the run may be sent; `None` before the reply.
    due: Option<Instant>,
}

/// The events that a connection receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Lifecycle events and interrupts only.
    #[default]
    Lifecycle,
    /// Some content.
    Content,
    /// Every channel of every graph.
    All,
}

/// A command that requests a run, until its reply. If it is dropped without a reply, the command
/// failed.
pub(crate) struct Command {
    thread: Arc<Thread>,
    run: RunId,
}

/// A connection to the events of a thread.
pub(crate) struct Connection {
    thread: Arc<Thread>,
    news: watch::Receiver<()>,
    number: u64,
    scope: Scope,
    held: Option<Held>,
}

/// The event that a connection delays.
#[derive(Clone, Copy)]
struct Held {
    seq: u64,
    /// Time at which the delay ends at the latest.
    until: Instant,
    /// Time at which all content connections had sent the events before this one.
    caught_up: Option<Instant>,
}

impl Holds {
    /// Records that a command requests a run.
    pub(crate) fn command(&self, thread: &ThreadId, run: &RunId) -> Command {
        let thread = self.thread(thread);
        let mut state = thread.lock();
        // Commands whose grace has ended delay nothing any more.
        state.commands.retain(|_, it| it.due.is_none_or(|due| due > Instant::now()));
        let number = state.number();
        state.commands.insert(run.clone(), Answered { number, answered: None, due: None });
        drop(state);
        Command { thread, run: run.clone() }
    }

    /// Opens a connection without subscriptions.
    pub(crate) fn connect(&self, thread: &ThreadId) -> Connection {
        let thread = self.thread(thread);
        let number = thread.lock().number();
        let (news, scope) = (thread.news.subscribe(), Scope::default());
        Connection { thread, news, number, scope, held: None }
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

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.news.send_replace(());
    }
}

impl State {
    /// Returns whether a command has no reply yet, or its grace has not ended.
    fn is_recent(&self) -> bool {
        self.commands.values().any(|it| it.due.is_none_or(|due| due > Instant::now()))
    }

    /// Extends the grace of recent commands after a content connection was opened, because the
    /// client may open another one. A connection that is opened after the grace belongs to another
    /// client or to a reloaded page, and extends nothing.
    fn extend(&mut self) {
        let now = Instant::now();
        for due in self.commands.values_mut().filter_map(|command| command.due.as_mut()) {
            if *due > now {
                *due = now + GRACE;
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns the time from which the start of a run may be sent to a connection; `None` if this
    /// depends on a reply that was not sent yet.
    fn beginning(&self, run: &RunId, connection: u64) -> Option<Instant> {
        match self.commands.get(run) {
            Some(command) if connection < command.number => Some(command.answered? + HEAD_START),
            _ => Some(Instant::now()),
        }
    }

    /// Returns the time from which a pause or the end of a run may be sent; `None` if this depends
    /// on a reply or on other connections.
    fn end(&self, run: &RunId, scope: Scope, held: &mut Held) -> Option<Instant> {
        let due = match self.commands.get(run) {
            Some(command) => command.due?,
            None => Instant::now(),
        };
        if scope != Scope::Lifecycle || self.handed.is_empty() {
            return Some(due);
        }
        if !self.handed.values().all(|handed| *handed + 1 >= held.seq) {
            return None;
        }
        let caught_up = *held.caught_up.get_or_insert_with(Instant::now);
        Some(due.max(caught_up + HEAD_START))
    }
}

impl Command {
    /// Records that the run was created and that the reply to the command is sent.
    pub(crate) fn answered(self) {
        self.thread.change(|state| {
            if let Some(command) = state.commands.get_mut(&self.run) {
                let now = Instant::now();
                (command.answered, command.due) = (Some(now), Some(now + GRACE));
            }
        });
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.thread.change(|state| {
            if state.commands.get(&self.run).is_some_and(|it| it.answered.is_none()) {
                state.commands.remove(&self.run);
            }
        });
    }
}

impl Connection {
    /// Records the events that the connection receives from the one after `after` on. New content
    /// counts like a new connection.
    pub(crate) fn see(&mut self, scope: Scope, after: u64, is_new: bool) {
        self.scope = scope;
        let number = self.number;
        self.thread.change(|state| {
            if scope == Scope::Lifecycle {
                state.handed.remove(&number);
                return;
            }
            state.handed.insert(number, after);
            if is_new {
                state.extend();
            }
        });
    }

    /// Records that the connection has sent the events up to `seq`.
    pub(crate) fn handed(&self, seq: u64) {
        let is_new = |handed: &mut u64| std::mem::replace(handed, seq) != seq;
        let has_changed = self.thread.lock().handed.get_mut(&self.number).is_some_and(is_new);
        if has_changed {
            self.thread.news.send_replace(());
        }
    }

    /// Waits until an event may be sent to the client. This method is cancel safe.
    pub(crate) async fn may_have(&mut self, event: &Event, now_ms: i64) {
        loop {
            // Mark earlier changes as seen before the state is read, so that a later change ends
            // the wait.
            self.news.borrow_and_update();
            let Some((due, until)) = self.due(event, now_ms) else { return };
            let due = due.unwrap_or(until).min(until);
            if due <= Instant::now() {
                return;
            }
            tokio::select! {
                () = sleep_until(due) => {}
                changed = self.news.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Returns the time from which an event may be sent, if it is known, and the time at which its
    /// delay ends at the latest. Returns `None` for an event that is not delayed.
    fn due(&mut self, event: &Event, now_ms: i64) -> Option<(Option<Instant>, Instant)> {
        let begins = match &event.kind {
            EventKind::RunStarted(_) if event.namespace.is_root() => true,
            EventKind::RunEnded(_) if event.namespace.is_root() => false,
            EventKind::Asked(asked) if !asked.answered => false,
            _ => return None,
        };
        if !begins && self.scope == Scope::All {
            return None;
        }
        let now = Instant::now();
        let mut held = self.held.filter(|held| held.seq == event.seq).unwrap_or_else(|| Held {
            seq: event.seq,
            until: now + left(event.at_ms, now_ms),
            caught_up: None,
        });
        let state = self.thread.lock();
        let due = if begins {
            state.beginning(&event.run, self.number)
        } else {
            state.end(&event.run, self.scope, &mut held)
        };
        drop(state);
        self.held = Some(held);
        Some((due, held.until))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.thread.change(|state| _ = state.handed.remove(&self.number));
    }
}

/// Returns the remaining part of the maximum delay of an event. The time of the event can be in the
/// future, because the clock of another host may be ahead.
fn left(at_ms: i64, now_ms: i64) -> Duration {
    let gone_ms = u64::try_from(now_ms.saturating_sub(at_ms)).unwrap_or(0);
    LONGEST.saturating_sub(Duration::from_millis(gone_ms))
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
        };
        Event {
            seq: 9,
            at_ms: THEN_MS,
            run: RunId::new("r").unwrap(),
            namespace: Namespace::root(),
            kind: EventKind::RunEnded(ended),
        }
    }

    fn connection(holds: &Holds, scope: Scope) -> Connection {
        let mut connection = holds.connect(&ThreadId::new("t").unwrap());
        connection.see(scope, 0, true);
        connection
    }

    fn commanded(holds: &Holds) -> Command {
        holds.command(&ThreadId::new("t").unwrap(), &RunId::new("r").unwrap())
    }

    async fn waited(connection: &mut Connection) -> Duration {
        let from = Instant::now();
        connection.may_have(&end(), THEN_MS).await;
        from.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn run_end_waits_for_the_grace_without_other_connections() {
        for (scope, grace) in
            [(Scope::Lifecycle, GRACE), (Scope::Content, GRACE), (Scope::All, Duration::ZERO)]
        {
            let holds = Holds::default();
            commanded(&holds).answered();
            assert_eq!(waited(&mut connection(&holds, scope)).await, grace, "{scope:?}");
            let again = waited(&mut connection(&holds, Scope::Content)).await;
            assert_eq!(grace + again, GRACE, "a reloaded page");
        }
        let holds = Holds::default();
        let unasked = waited(&mut connection(&holds, Scope::Content)).await;
        assert_eq!(unasked, Duration::ZERO, "no command requested the run");
    }

    #[tokio::test(start_paused = true)]
    async fn content_connection_extends_the_grace_before_its_end() {
        let holds = Holds::default();
        let mut watcher = connection(&holds, Scope::Lifecycle);
        commanded(&holds).answered();
        let open = async {
            tokio::time::sleep(GRACE / 2).await;
            let content = connection(&holds, Scope::Content);
            content.handed(8);
            tokio::time::sleep(GRACE / 2).await;
            content
        };
        let (waiting, _content) = tokio::join!(waited(&mut watcher), open);
        assert_eq!(waiting, GRACE / 2 + GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn run_end_waits_for_content_connections_up_to_a_limit() {
        let holds = Holds::default();
        let mut watcher = connection(&holds, Scope::Lifecycle);
        let content = connection(&holds, Scope::Content);
        let read = async {
            tokio::time::sleep(GRACE).await;
            content.handed(8);
        };
        let (waiting, ()) = tokio::join!(waited(&mut watcher), read);
        assert_eq!(waiting, GRACE + HEAD_START);
        let mut watcher = connection(&holds, Scope::Lifecycle);
        let stalled = connection(&holds, Scope::Content);
        assert_eq!(waited(&mut watcher).await, LONGEST);
        let later = THEN_MS + i64::try_from(LONGEST.as_millis()).unwrap();
        let from = Instant::now();
        connection(&holds, Scope::Lifecycle).may_have(&end(), later).await;
        assert_eq!(from.elapsed(), Duration::ZERO, "a replay does not wait");
        drop((stalled, content));
        let mut watcher = connection(&holds, Scope::Lifecycle);
        assert_eq!(waited(&mut watcher).await, Duration::ZERO, "both connections are closed");
    }

    #[tokio::test(start_paused = true)]
    async fn run_end_waits_for_the_reply_unless_the_command_fails() {
        let holds = Holds::default();
        let command = commanded(&holds);
        let mut watcher = connection(&holds, Scope::Lifecycle);
        let answer = async {
            tokio::time::sleep(GRACE).await;
            command.answered();
        };
        let (waiting, ()) = tokio::join!(waited(&mut watcher), answer);
        assert_eq!(waiting, 2 * GRACE);
        drop(commanded(&holds));
        assert_eq!(waited(&mut connection(&holds, Scope::Lifecycle)).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn unused_threads_are_removed() {
        let holds = Holds::default();
        let kept = holds.connect(&ThreadId::new("kept").unwrap());
        for number in 0..10 * FIRST_SWEEP {
            let thread = ThreadId::new(format!("t-{number}")).unwrap();
            holds.command(&thread, &RunId::new("r").unwrap()).answered();
            tokio::time::advance(GRACE).await;
        }
        assert!(holds.0.lock().unwrap().by_id.len() <= FIRST_SWEEP);
        let same = holds.thread(&ThreadId::new("kept").unwrap());
        assert!(Arc::ptr_eq(&kept.thread, &same));
    }
}
