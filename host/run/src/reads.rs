//! Bounds the reads of large states for clients, and divides them between callers.
//!
//! A decoded state takes many times its size in the store, and a request keeps the state until its
//! response is complete. So few requests with a large state proceed at once, in turns of their
//! callers like other long work; see [`crate::meter`]. Other requests, such as lists, and the reads
//! of the engine for its runs take no turn.
//!
//! A store calls [`begin_large_read`] before it decodes anything that may be large.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// A large read. It holds a turn until it is dropped, if it needs one.
#[must_use]
pub struct LargeRead {
    _turn: Option<Arc<Turn>>,
}

struct Reader {
    turns: ReadTurns,
    caller: CallerId,
    span: TurnSpan,
    /// The turn that the work holds until its end.
    held: Mutex<Option<Arc<Turn>>>,
}

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
    /// none.
    pub fn scope<F: Future>(
        &self,
        caller: CallerId,
        span: TurnSpan,
        work: F,
    ) -> impl Future<Output = F::Output> {
        READER.scope(Reader { turns: self.clone(), caller, span, held: Mutex::default() }, work)
    }
}

impl Reader {
    /// Locks the turn and ignores poisoning: no code that can panic runs under the lock.
    fn held(&self) -> MutexGuard<'_, Option<Arc<Turn>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a turn of the caller for whom the current task reads. Returns immediately if the task
/// holds a turn already, and outside of [`ReadTurns::scope`].
pub async fn begin_large_read() -> LargeRead {
    let reader = |reader: &Reader| (reader.held().clone(), reader.turns.clone(), reader.caller);
    let Ok((held, ReadTurns(turns), caller)) = READER.try_with(reader) else {
        return LargeRead { _turn: None };
    };
    if held.is_some() {
        return LargeRead { _turn: held };
    }
    let turn = turns.take(caller.into()).await.map(Arc::new);
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
    use std::pin::pin;

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
