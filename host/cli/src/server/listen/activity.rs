//! What a connection does at the moment, and how long it may go on so.
//!
//! The parts of a connection (its socket, its requests, its answers) note here what happens. One
//! task for each connection looks when the next time is over. A time that begins later than a look
//! cannot be over before the shortest of all times has passed, so that task sleeps at least that
//! long, and nothing has to wake it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use wattle_api::traffic::Cut;

use super::limits::{LEAST_BYTES_PER_SECOND, STOP_HEAD_TIME};

/// How long a connection may go on with the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) head: Duration,
    pub(super) stall: Duration,
    pub(super) idle: Duration,
}

impl Times {
    fn shortest(self) -> Duration {
        self.head.min(self.stall).min(self.idle)
    }
}

/// The state of one connection.
pub(super) struct Activity {
    times: Times,
    state: Mutex<State>,
    evicted: Notify,
}

struct State {
    /// What it does while no request is under way.
    rest: Rest,
    /// Requests whose answers were not handed over to the connection in whole.
    open: usize,
    /// Pieces of answers that the connection has taken and not sent, by request: when it took the
    /// last one, and its bytes.
    pieces: HashMap<u64, (Instant, u64)>,
    next_request: u64,
    /// Since when the socket takes no bytes.
    blocked: Option<Instant>,
    /// Frames of HTTP/2 also come where there is no request.
    is_http2: bool,
    /// The socket was handed over, as to a WebSocket, which has limits of its own.
    is_upgraded: bool,
    /// Since when the host stops.
    stopping: Option<Instant>,
}

#[derive(Clone, Copy)]
enum Rest {
    /// A head is on its way, or the first one has not come.
    Head(Instant),
    /// Nothing comes.
    Idle(Instant),
}

impl Rest {
    fn since(self) -> Instant {
        match self {
            Self::Head(since) | Self::Idle(since) => since,
        }
    }
}

impl Activity {
    /// That of a connection that begins now.
    pub(super) fn new(times: Times) -> Arc<Self> {
        let state = State {
            rest: Rest::Head(Instant::now()),
            open: 0,
            pieces: HashMap::new(),
            next_request: 0,
            blocked: None,
            is_http2: false,
            is_upgraded: false,
            stopping: None,
        };
        Arc::new(Self { times, state: Mutex::new(state), evicted: Notify::new() })
    }

    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes have come.
    pub(super) fn read(&self) {
        let mut state = self.lock();
        if state.open == 0 && !state.is_http2 && matches!(state.rest, Rest::Idle(_)) {
            state.rest = Rest::Head(Instant::now());
        }
    }

    /// The socket takes bytes, or it does not.
    pub(super) fn writes(&self, is_blocked: bool) {
        self.lock().blocked = is_blocked.then(Instant::now);
    }

    /// The socket is handed over.
    pub(super) fn upgraded(&self) {
        self.lock().is_upgraded = true;
    }

    /// A request begins.
    pub(super) fn request(self: &Arc<Self>, is_http2: bool) -> Underway {
        let mut state = self.lock();
        state.open += 1;
        state.is_http2 |= is_http2;
        let id = state.next_request;
        state.next_request += 1;
        Underway { activity: self.clone(), id }
    }

    /// Since when the connection has no request, if it has none.
    pub(super) fn resting_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.open == 0 && !state.is_upgraded).then(|| state.rest.since())
    }

    /// The host stops: a head that is on its way has [`STOP_HEAD_TIME`] from now on.
    pub(super) fn stop(&self) {
        self.lock().stopping = Some(Instant::now());
    }

    /// Ends the connection in favor of another one.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Ends when a time is over, and says which.
    pub(super) async fn overdue(&self) -> Cut {
        loop {
            let now = Instant::now();
            let due = self.due();
            if let Some((_, cut)) = due.filter(|(at, _)| *at <= now) {
                return cut;
            }
            let look = now + self.times.shortest();
            let next = due.map_or(look, |(at, _)| at.min(look));
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.evicted.notified() => return Cut::Room,
            }
        }
    }

    /// When the next time is over.
    fn due(&self) -> Option<(Instant, Cut)> {
        let Times { head, stall, idle } = self.times;
        let state = self.lock();
        if state.is_upgraded {
            return None;
        }
        let rest = (state.open == 0).then_some(match state.rest {
            Rest::Head(since) => {
                let head = (since + head, Cut::Head);
                let stop = state.stopping.map(|since| (since + STOP_HEAD_TIME, Cut::Stop));
                stop.map_or(head, |stop| sooner(head, stop))
            }
            Rest::Idle(since) => (since + idle, Cut::Idle),
        });
        let blocked = state.blocked.map(|since| (since + stall, Cut::Stalled));
        let pieces = state.pieces.values().map(|(since, bytes)| {
            let least = Duration::from_secs(bytes / LEAST_BYTES_PER_SECOND);
            (*since + stall + least, Cut::Stalled)
        });
        rest.into_iter().chain(blocked).chain(pieces).reduce(sooner)
    }
}

fn sooner(one: (Instant, Cut), other: (Instant, Cut)) -> (Instant, Cut) {
    if other.0 < one.0 { other } else { one }
}

/// A request, until its answer was handed over to the connection in whole.
pub(super) struct Underway {
    activity: Arc<Activity>,
    id: u64,
}

impl Underway {
    /// The connection asks for the next piece of the answer: it has sent those that it had.
    pub(super) fn asked(&self) {
        self.activity.lock().pieces.remove(&self.id);
    }

    /// The connection has taken a piece.
    pub(super) fn handed(&self, bytes: usize) {
        self.activity.lock().pieces.insert(self.id, (Instant::now(), bytes as u64));
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.pieces.remove(&self.id);
        state.open -= 1;
        if state.open == 0 {
            state.rest = Rest::Idle(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        head: Duration::from_secs(10),
        stall: Duration::from_secs(20),
        idle: Duration::from_mins(1),
    };

    /// What ends the connection, and after how many seconds.
    async fn end(activity: &Activity) -> (Cut, u64) {
        let begun = Instant::now();
        let cut = activity.overdue().await;
        (cut, begun.elapsed().as_secs())
    }

    async fn pass(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_time_however_many_bytes_come() {
        let activity = Activity::new(TIMES);
        let drip = async {
            loop {
                pass(1).await;
                activity.read();
            }
        };
        tokio::select! {
            ended = end(&activity) => assert_eq!(ended, (Cut::Head, 10)),
            () = drip => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_between_requests_and_no_longer() {
        let activity = Activity::new(TIMES);
        drop(activity.request(false));
        assert_eq!(end(&activity).await, (Cut::Idle, 60));
        // The next head begins with its first byte.
        drop(activity.request(false));
        pass(30).await;
        activity.read();
        assert_eq!(end(&activity).await, (Cut::Head, 10));
        // In HTTP/2 bytes mean nothing.
        drop(activity.request(true));
        pass(30).await;
        activity.read();
        assert_eq!(end(&activity).await, (Cut::Idle, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_a_second_when_the_host_stops() {
        let activity = Activity::new(TIMES);
        pass(3).await;
        activity.stop();
        assert_eq!(end(&activity).await, (Cut::Stop, 1));
        let late = Activity::new(Times { head: STOP_HEAD_TIME / 2, ..TIMES });
        late.stop();
        assert_eq!(end(&late).await, (Cut::Head, 0), "no longer than before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_takes_as_long_as_it_does() {
        let activity = Activity::new(TIMES);
        let request = activity.request(false);
        let watched = tokio::time::timeout(Duration::from_hours(1), activity.overdue()).await;
        assert!(watched.is_err());
        assert!(activity.resting_since().is_none());
        drop(request);
        assert!(activity.resting_since().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_taken_ends_the_connection() {
        let activity = Activity::new(TIMES);
        let request = activity.request(true);
        request.handed(10 * 1_024);
        assert_eq!(end(&activity).await, (Cut::Stalled, 30));
        request.asked();
        activity.writes(true);
        assert_eq!(end(&activity).await, (Cut::Stalled, 20));
        activity.writes(false);
        let watched = tokio::time::timeout(Duration::from_hours(1), activity.overdue()).await;
        assert!(watched.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_handed_over_is_not_watched() {
        let activity = Activity::new(TIMES);
        activity.upgraded();
        let watched = tokio::time::timeout(Duration::from_hours(1), activity.overdue()).await;
        assert!(watched.is_err() && activity.resting_since().is_none());
        activity.evict();
        assert_eq!(end(&activity).await, (Cut::Room, 0));
    }
}
