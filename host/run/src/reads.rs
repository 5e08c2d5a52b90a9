//! Bounds the reads of large states for clients, and divides them between callers.
//!
//! A decoded state takes many times its size in the store, and a request keeps the state until its
//! response is complete. So few requests with a large state proceed at once, in turns of their
//! callers like other long work; see [`crate::meter`]. Other requests, such as lists, and the reads
//! of the engine for its runs take no turn.
//!
//! A store calls [`begin_large_read`] before it decodes anything that may be large.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio::time::error::Elapsed;

use crate::blocking::at_once;
use crate::caller_id::CallerId;
use crate::meter::turns::{Turn, Turns};

/// Number of requests that hold large states at once, if the machine does not have more cores. Each
/// holds the state as the store decodes it, a copy and the text of the response; of a state of the
/// default maximum size, some 200 MiB.
const LARGE_READS: usize = 4;

tokio::task_local! {
    /// The caller for whom the current task reads.
    static READER: Reader;
}

/// The turns of requests with large states. Clones share the turns.
#[derive(Clone)]
pub struct ReadTurns(Turns);

/// How long a caller holds a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnSpan {
    /// From the first large read to the end of the work. For work that responds with what it has
    /// read, and waits for nothing else.
    UntilEnd,
    /// During each large read. For work that may wait for something afterwards.
    EachRead,
}

/// A large read. It holds a turn until it is dropped, if it needs one. Clones share the turn.
#[derive(Clone)]
#[must_use]
pub struct LargeRead {
    _turn: Option<Arc<Turn>>,
}

/// The caller for whom a task reads, for its work on other tasks. Clones share the turn that work
/// holds until its end.
#[derive(Clone)]
pub struct CurrentReader(Option<Reader>);

#[derive(Clone)]
struct Reader {
    turns: ReadTurns,
    caller: CallerId,
    span: TurnSpan,
    /// The turn that the work holds until its end.
    held: Arc<Mutex<Option<Arc<Turn>>>>,
    waits: Arc<Mutex<Waits>>,
}

/// The time for which the reads of some work have waited for turns.
#[derive(Default)]
struct Waits {
    /// Number of reads that wait now.
    waiting: usize,
    /// Start of the current wait, of one read or of several.
    since: Option<Instant>,
    /// Time of the waits before.
    before: Duration,
}

/// A read that waits for its turn.
struct Waiting(Arc<Mutex<Waits>>);

impl Default for ReadTurns {
    /// Creates four turns, or as many as the machine has cores, if that is more.
    fn default() -> Self {
        Self::new(LARGE_READS.max(at_once()))
    }
}

impl ReadTurns {
    /// Creates turns for `requests` requests at once.
    #[must_use]
    pub fn new(requests: usize) -> Self {
        Self(Turns::new(requests))
    }

    /// Runs work of a caller whose large reads take turns. Work that other tasks do for it takes
    /// none, unless it runs in a [`CurrentReader::scope`].
    pub fn scope<F: Future>(
        &self,
        caller: CallerId,
        span: TurnSpan,
        work: F,
    ) -> impl Future<Output = F::Output> {
        let (turns, held, waits) = (self.clone(), Arc::default(), Arc::default());
        READER.scope(Reader { turns, caller, span, held, waits }, work)
    }
}

impl CurrentReader {
    /// Returns the reader of the current task. Outside of [`ReadTurns::scope`], there is none.
    #[must_use]
    pub fn get() -> Self {
        Self(READER.try_with(Reader::clone).ok())
    }

    /// Runs work whose large reads take turns like those of the task of this reader. Without a
    /// reader, they take none.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        match self.0 {
            Some(reader) => READER.scope(reader, work).await,
            None => work.await,
        }
    }
}

/// Runs work of the current task that responds with what it reads, and waits for nothing else. The
/// work holds the turn of its first large read until its end.
pub async fn until_end<F: Future>(work: F) -> F::Output {
    let CurrentReader(reader) = CurrentReader::get();
    let reader = reader.map(|reader| match reader.span {
        TurnSpan::UntilEnd => reader,
        TurnSpan::EachRead => Reader { span: TurnSpan::UntilEnd, held: Arc::default(), ..reader },
    });
    CurrentReader(reader).scope(work).await
}

impl Reader {
    /// Locks the turn and ignores poisoning: no code that can panic runs under the lock.
    fn held(&self) -> MutexGuard<'_, Option<Arc<Turn>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waits {
    fn total(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl Waiting {
    fn begin(waits: Arc<Mutex<Waits>>) -> Self {
        let mut known = lock(&waits);
        known.waiting += 1;
        known.since.get_or_insert_with(Instant::now);
        drop(known);
        Self(waits)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut known = lock(&self.0);
        known.waiting -= 1;
        if known.waiting == 0 {
            known.before = known.total();
            known.since = None;
        }
    }
}

/// Locks the waits and ignores poisoning: no code that can panic runs under the lock.
fn lock(waits: &Mutex<Waits>) -> MutexGuard<'_, Waits> {
    waits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time for which the reads of the current scope have waited for turns.
fn waited() -> Duration {
    READER.try_with(|reader| lock(&reader.waits).total()).unwrap_or_default()
}

/// Requires work to complete within a time limit. The time for which the work waits for a turn does
/// not count, because it depends on the reads of others.
///
/// # Errors
///
/// [`Elapsed`] if the work takes longer.
pub(crate) async fn timeout<F: Future>(limit: Duration, work: F) -> Result<F::Output, Elapsed> {
    let mut work = pin!(work);
    let (began, waited_before) = (Instant::now(), waited());
    let mut left = limit;
    loop {
        let elapsed = match tokio::time::timeout(left, work.as_mut()).await {
            Ok(output) => return Ok(output),
            Err(elapsed) => elapsed,
        };
        let waits = waited().saturating_sub(waited_before);
        left = limit.saturating_sub(began.elapsed().saturating_sub(waits));
        if left.is_zero() {
            return Err(elapsed);
        }
    }
}

/// Returns true if a large read of the current task has to take a turn. Other reads need not find
/// out whether they are large.
#[must_use]
pub fn needs_turn() -> bool {
    READER.try_with(|reader| reader.held().is_none()).unwrap_or_default()
}

/// Waits for a turn of the caller for whom the current task reads. Returns immediately if the task
/// holds a turn already, and outside of [`ReadTurns::scope`].
pub async fn begin_large_read() -> LargeRead {
    let reader = |reader: &Reader| {
        let (turns, waits) = (reader.turns.clone(), reader.waits.clone());
        (reader.held().clone(), turns, reader.caller, waits)
    };
    let Ok((held, ReadTurns(turns), caller, waits)) = READER.try_with(reader) else {
        return LargeRead { _turn: None };
    };
    if held.is_some() {
        return LargeRead { _turn: held };
    }
    let waiting = Waiting::begin(waits);
    let turn = turns.take(caller.into()).await.map(Arc::new);
    drop(waiting);
    // The scope ends after this future.
    let _ = READER.try_with(|reader| {
        if reader.span == TurnSpan::UntilEnd {
            let before = std::mem::replace(&mut *reader.held(), turn.clone());
            // The lock is released before a turn is freed.
            drop(before);
        }
    });
    LargeRead { _turn: turn }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::{FutureExt as _, poll};
    use tokio::sync::oneshot;

    use super::*;

    /// Returns the only turn, and two callers.
    fn one_turn() -> (ReadTurns, [CallerId; 2]) {
        (ReadTurns::new(1), ["one", "other"].map(CallerId::of_key))
    }

    async fn read() {
        let _read = begin_large_read().await;
    }

    #[tokio::test]
    async fn work_holds_its_turn_until_its_end() {
        let (turns, [one, other]) = one_turn();
        let (end, ended) = oneshot::channel::<()>();
        let work = async {
            read().await;
            read().await;
            ended.await
        };
        let mut first = Box::pin(turns.scope(one, TurnSpan::UntilEnd, work));
        assert!(poll!(first.as_mut()).is_pending());
        let mut second = pin!(turns.scope(other, TurnSpan::UntilEnd, read()));
        assert!(poll!(second.as_mut()).is_pending());
        let small = turns.scope(other, TurnSpan::UntilEnd, async { 7 });
        assert_eq!(small.now_or_never(), Some(7), "only large reads take a turn");
        assert!(read().now_or_never().is_some(), "a read of the engine takes no turn");
        end.send(()).unwrap();
        first.as_mut().await.unwrap();
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    #[tokio::test]
    async fn work_that_may_wait_holds_its_turn_during_each_read() {
        let (turns, [one, other]) = one_turn();
        let work = async {
            read().await;
            pending::<()>().await;
        };
        let mut waiting = pin!(turns.scope(one, TurnSpan::EachRead, work));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert!(turns.scope(other, TurnSpan::EachRead, read()).now_or_never().is_some());
    }

    #[tokio::test]
    async fn large_read_needs_a_turn_unless_its_work_holds_one() {
        let (turns, [one, _]) = one_turn();
        assert!(!needs_turn(), "a read of the engine");
        for (span, again) in [(TurnSpan::UntilEnd, false), (TurnSpan::EachRead, true)] {
            let work = async {
                let before = needs_turn();
                read().await;
                (before, needs_turn())
            };
            assert_eq!(turns.scope(one, span, work).await, (true, again), "{span:?}");
        }
    }

    /// The limit is ten seconds, of which the work takes some after its wait of 25 seconds.
    #[tokio::test(start_paused = true)]
    async fn wait_for_a_turn_does_not_count_towards_a_timeout() {
        const LIMIT: Duration = Duration::from_secs(10);
        for (seconds, is_in_time) in [(9, true), (11, false)] {
            let (turns, [one, other]) = one_turn();
            let held = turns.scope(one, TurnSpan::EachRead, begin_large_read()).await;
            let work = async {
                read().await;
                tokio::time::sleep(Duration::from_secs(seconds)).await;
            };
            let limited = timeout(LIMIT, work);
            let mut limited = pin!(turns.scope(other, TurnSpan::EachRead, limited));
            assert!(poll!(limited.as_mut()).is_pending());
            tokio::time::advance(Duration::from_secs(25)).await;
            assert!(poll!(limited.as_mut()).is_pending());
            drop(held);
            assert_eq!(limited.await.is_ok(), is_in_time, "{seconds}");
        }
        let began = Instant::now();
        assert!(timeout(LIMIT, pending::<()>()).await.is_err());
        assert!(began.elapsed() < 2 * LIMIT, "work without a wait has the limit");
    }

    #[tokio::test]
    async fn work_on_another_task_takes_turns_of_its_caller() {
        let (turns, [one, other]) = one_turn();
        let get = || turns.scope(one, TurnSpan::EachRead, async { CurrentReader::get() });
        let (reader, again) = (get().await, get().await);
        let held = turns.scope(other, TurnSpan::EachRead, begin_large_read()).await;
        let mut reading = pin!(reader.scope(read()));
        assert!(poll!(reading.as_mut()).is_pending());
        drop(held);
        assert!(reading.now_or_never().is_some());
        assert!(again.scope(read()).now_or_never().is_some(), "the turn is free again");
        assert!(CurrentReader::get().scope(read()).now_or_never().is_some());
    }

    #[tokio::test]
    async fn work_on_another_task_shares_the_turn_that_is_held_until_the_end() {
        let (turns, [one, other]) = one_turn();
        let work = async {
            read().await;
            CurrentReader::get()
        };
        let reader = turns.scope(one, TurnSpan::UntilEnd, work).await;
        let mut waiting = pin!(turns.scope(other, TurnSpan::EachRead, read()));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert!(reader.scope(until_end(read())).now_or_never().is_some());
        assert!(waiting.now_or_never().is_some());
    }

    #[tokio::test]
    async fn work_that_responds_with_what_it_reads_holds_its_turn_until_its_end() {
        let (turns, [one, other]) = one_turn();
        let (end, ended) = oneshot::channel::<()>();
        let response = async {
            read().await;
            ended.await
        };
        let mut work = pin!(turns.scope(one, TurnSpan::EachRead, until_end(response)));
        assert!(poll!(work.as_mut()).is_pending());
        let mut waiting = pin!(turns.scope(other, TurnSpan::EachRead, read()));
        assert!(poll!(waiting.as_mut()).is_pending());
        end.send(()).unwrap();
        work.as_mut().await.unwrap();
        assert!(waiting.now_or_never().is_some());
    }

    #[tokio::test]
    async fn read_of_work_that_is_given_up_holds_the_turn_until_it_ends() {
        let (turns, [one, other]) = one_turn();
        for span in [TurnSpan::UntilEnd, TurnSpan::EachRead] {
            let read = turns.scope(one, span, begin_large_read()).now_or_never();
            assert!(turns.scope(other, span, begin_large_read()).now_or_never().is_none());
            drop(read);
            assert!(turns.scope(other, span, begin_large_read()).now_or_never().is_some());
        }
    }
}
