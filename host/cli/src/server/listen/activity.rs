//! The activity of a connection, and its timeouts.
//!
//! The socket, the requests and the responses of a connection record their activity in
//! [`Activity`]. One task per connection waits for the next timeout. A timeout that begins while
//! the task sleeps cannot expire before the shortest timeout has passed. The task therefore sleeps
//! for at most the shortest timeout, and activity need not wake the task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use wattle_api::traffic::CutReason;

use super::limits::{LEAST_BYTES_PER_SECOND, STOP_HEAD_TIME};

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) head: Duration,
    pub(super) stall: Duration,
    pub(super) idle: Duration,
}

impl Timeouts {
    fn shortest(self) -> Duration {
        self.head.min(self.stall).min(self.idle)
    }
}

/// The activity of one connection.
pub(super) struct Activity {
    timeouts: Timeouts,
    state: Mutex<State>,
    evicted: Notify,
}

struct State {
    /// State of a connection without an open request.
    rest: RestState,
    /// Number of requests whose responses the connection has not received completely.
    open: usize,
    /// Response chunks that the connection has received but not sent, by request: the time of the
    /// last chunk, and the size in bytes.
    unsent_chunks: HashMap<u64, (Instant, u64)>,
    next_request: u64,
    /// Time since which the socket has accepted no bytes.
    blocked: Option<Instant>,
    /// Whether the connection uses HTTP/2, in which frames also arrive without a request.
    is_http2: bool,
    /// Whether the connection was upgraded, for example to a WebSocket, which has its own limits.
    is_upgraded: bool,
    /// Time at which the host began to stop.
    stopping: Option<Instant>,
}

#[derive(Clone, Copy)]
enum RestState {
    /// A part of a request head has arrived, or the connection is new.
    Head(Instant),
    /// No byte has arrived since the last request.
    Idle(Instant),
}

impl RestState {
    fn since(self) -> Instant {
        match self {
            Self::Head(since) | Self::Idle(since) => since,
        }
    }
}

impl Activity {
    /// Creates the activity of a new connection.
    pub(super) fn new(timeouts: Timeouts) -> Arc<Self> {
        let state = State {
            rest: RestState::Head(Instant::now()),
            open: 0,
            unsent_chunks: HashMap::new(),
            next_request: 0,
            blocked: None,
            is_http2: false,
            is_upgraded: false,
            stopping: None,
        };
        Arc::new(Self { timeouts, state: Mutex::new(state), evicted: Notify::new() })
    }

    /// Locks the state and ignores poisoning: no code that holds the lock can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that bytes have arrived.
    pub(super) fn read(&self) {
        let mut state = self.lock();
        if state.open == 0 && !state.is_http2 && matches!(state.rest, RestState::Idle(_)) {
            state.rest = RestState::Head(Instant::now());
        }
    }

    /// Records whether the socket accepts bytes.
    pub(super) fn writes(&self, is_blocked: bool) {
        self.lock().blocked = is_blocked.then(Instant::now);
    }

    /// Records that the connection was upgraded.
    pub(super) fn upgraded(&self) {
        self.lock().is_upgraded = true;
    }

    /// Records the start of a request.
    pub(super) fn request(self: &Arc<Self>, is_http2: bool) -> OpenRequest {
        let mut state = self.lock();
        state.open += 1;
        state.is_http2 |= is_http2;
        let id = state.next_request;
        state.next_request += 1;
        OpenRequest { activity: self.clone(), id }
    }

    /// Returns the time since which the connection has had no open request. Returns `None` if a
    /// request is open or the connection was upgraded.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.open == 0 && !state.is_upgraded).then(|| state.rest.since())
    }

    /// Records that the host stops. A partly received head gets [`STOP_HEAD_TIME`] to complete.
    pub(super) fn stop(&self) {
        self.lock().stopping = Some(Instant::now());
    }

    /// Ends the connection so that another connection can be accepted.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Waits until a timeout expires or the connection is evicted. Returns the reason.
    pub(super) async fn wait_for_timeout(&self) -> CutReason {
        loop {
            let now = Instant::now();
            let next_timeout = self.next_timeout();
            if let Some((_, reason)) = next_timeout.filter(|(at, _)| *at <= now) {
                return reason;
            }
            let latest_check = now + self.timeouts.shortest();
            let next = next_timeout.map_or(latest_check, |(at, _)| at.min(latest_check));
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.evicted.notified() => return CutReason::Evicted,
            }
        }
    }

    /// Returns the time at which the next timeout expires, and the reason for which the connection
    /// is then closed.
    fn next_timeout(&self) -> Option<(Instant, CutReason)> {
        let Timeouts { head, stall, idle } = self.timeouts;
        let state = self.lock();
        if state.is_upgraded {
            return None;
        }
        let rest = (state.open == 0).then_some(match state.rest {
            RestState::Head(since) => {
                let head = (since + head, CutReason::HeadTimeout);
                let stop =
                    state.stopping.map(|since| (since + STOP_HEAD_TIME, CutReason::Shutdown));
                stop.map_or(head, |stop| earlier(head, stop))
            }
            RestState::Idle(since) => (since + idle, CutReason::IdleTimeout),
        });
        let blocked = state.blocked.map(|since| (since + stall, CutReason::WriteTimeout));
        let unsent_chunks = state.unsent_chunks.values().map(|(since, bytes)| {
            let least = Duration::from_secs(bytes / LEAST_BYTES_PER_SECOND);
            (*since + stall + least, CutReason::WriteTimeout)
        });
        rest.into_iter().chain(blocked).chain(unsent_chunks).reduce(earlier)
    }
}

fn earlier(one: (Instant, CutReason), other: (Instant, CutReason)) -> (Instant, CutReason) {
    if other.0 < one.0 { other } else { one }
}

/// An open request, until the connection has received its whole response.
pub(super) struct OpenRequest {
    activity: Arc<Activity>,
    id: u64,
}

impl OpenRequest {
    /// Records that the connection requests the next chunk of the response, which means that it has
    /// sent the previous chunks.
    pub(super) fn chunk_requested(&self) {
        self.activity.lock().unsent_chunks.remove(&self.id);
    }

    /// Records that the connection has received a chunk.
    pub(super) fn chunk_received(&self, bytes: usize) {
        self.activity.lock().unsent_chunks.insert(self.id, (Instant::now(), bytes as u64));
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.unsent_chunks.remove(&self.id);
        state.open -= 1;
        if state.open == 0 {
            state.rest = RestState::Idle(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        head: Duration::from_secs(10),
        stall: Duration::from_secs(20),
        idle: Duration::from_mins(1),
    };

    /// Returns the reason why the connection ends, and the number of seconds until then.
    async fn end(activity: &Activity) -> (CutReason, u64) {
        let started_at = Instant::now();
        let reason = activity.wait_for_timeout().await;
        (reason, started_at.elapsed().as_secs())
    }

    async fn pass(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_do_not_extend_the_head_timeout() {
        let activity = Activity::new(TIMEOUTS);
        let send_bytes = async {
            loop {
                pass(1).await;
                activity.read();
            }
        };
        tokio::select! {
            ended = end(&activity) => assert_eq!(ended, (CutReason::HeadTimeout, 10)),
            () = send_bytes => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_idle_timeout_applies_between_requests() {
        let activity = Activity::new(TIMEOUTS);
        drop(activity.request(false));
        assert_eq!(end(&activity).await, (CutReason::IdleTimeout, 60));
        // The first byte after a request begins the head of the next request.
        drop(activity.request(false));
        pass(30).await;
        activity.read();
        assert_eq!(end(&activity).await, (CutReason::HeadTimeout, 10));
        // With HTTP/2, a byte need not belong to a request head.
        drop(activity.request(true));
        pass(30).await;
        activity.read();
        assert_eq!(end(&activity).await, (CutReason::IdleTimeout, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn an_incomplete_head_gets_a_second_when_the_host_stops() {
        let activity = Activity::new(TIMEOUTS);
        pass(3).await;
        activity.stop();
        assert_eq!(end(&activity).await, (CutReason::Shutdown, 1));
        let late = Activity::new(Timeouts { head: STOP_HEAD_TIME / 2, ..TIMEOUTS });
        late.stop();
        assert_eq!(
            end(&late).await,
            (CutReason::HeadTimeout, 0),
            "the stop does not extend the head timeout"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_request_has_no_timeout() {
        let activity = Activity::new(TIMEOUTS);
        let request = activity.request(false);
        let watched =
            tokio::time::timeout(Duration::from_hours(1), activity.wait_for_timeout()).await;
        assert!(watched.is_err());
        assert!(activity.idle_since().is_none());
        drop(request);
        assert!(activity.idle_since().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_read_ends_the_connection() {
        let activity = Activity::new(TIMEOUTS);
        let request = activity.request(true);
        request.chunk_received(10 * 1_024);
        assert_eq!(end(&activity).await, (CutReason::WriteTimeout, 30));
        request.chunk_requested();
        activity.writes(true);
        assert_eq!(end(&activity).await, (CutReason::WriteTimeout, 20));
        activity.writes(false);
        let watched =
            tokio::time::timeout(Duration::from_hours(1), activity.wait_for_timeout()).await;
        assert!(watched.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upgraded_socket_has_no_timeouts() {
        let activity = Activity::new(TIMEOUTS);
        activity.upgraded();
        let watched =
            tokio::time::timeout(Duration::from_hours(1), activity.wait_for_timeout()).await;
        assert!(watched.is_err() && activity.idle_since().is_none());
        activity.evict();
        assert_eq!(end(&activity).await, (CutReason::Evicted, 0));
    }
}
