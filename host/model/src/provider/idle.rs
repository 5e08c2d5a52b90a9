//! How much of a stream may carry nothing.
//!
//! Time does not end such a stream: each piece, however empty, begins the wait for the next one.

/// Events in a row that carry no piece of an answer. Services send some while a model thinks: one
/// each second over the ten minutes that a call may take.
const IDLE_EVENTS: u64 = 2_000;

/// Bytes in a row that carry no piece of an answer, comments and empty lines included: a piece may
/// be large.
const IDLE_BYTES: u64 = 4 << 20;

/// Counts what carries nothing since the last piece.
#[derive(Debug, Default)]
pub(super) struct Idle {
    events: u64,
    bytes: u64,
}

impl Idle {
    /// Bytes have come.
    pub(super) fn bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// An event has come; `carried` says whether it had a piece of the answer.
    pub(super) fn event(&mut self, carried: bool) {
        if carried {
            *self = Self::default();
        } else {
            self.events += 1;
        }
    }

    /// Why the stream is to be given up, if it is.
    pub(super) fn excess(&self) -> Option<String> {
        if self.events > IDLE_EVENTS {
            return Some(format!("more than {IDLE_EVENTS} events in a row carry nothing"));
        }
        if self.bytes > IDLE_BYTES {
            return Some(format!("more than {IDLE_BYTES} bytes in a row carry nothing"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{IDLE_BYTES, IDLE_EVENTS, Idle};

    #[test]
    fn pieces_begin_the_count_again() {
        let mut idle = Idle::default();
        for _ in 0..3 {
            (0..IDLE_EVENTS).for_each(|_| idle.event(false));
            idle.bytes(IDLE_BYTES as usize);
            assert_eq!(idle.excess(), None);
            idle.event(true);
        }
        (0..=IDLE_EVENTS).for_each(|_| idle.event(false));
        assert!(idle.excess().is_some_and(|why| why.contains("events")));
        let mut idle = Idle::default();
        idle.bytes(IDLE_BYTES as usize + 1);
        assert!(idle.excess().is_some_and(|why| why.contains("bytes")));
    }
}
