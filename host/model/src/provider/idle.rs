//! Limits on the part of a stream that has no output.
//!
//! The timeout does not end such a stream, because each chunk restarts it.

/// Maximum consecutive events without output. Services send such events while a model reasons: one
/// per second over the ten minutes that a call may take.
const IDLE_EVENTS: u64 = 2_000;

/// Maximum consecutive bytes without output, comments and empty lines included. A chunk with output
/// may be large.
const IDLE_BYTES: u64 = 4 << 20;

/// Counts events and bytes since the last output.
#[derive(Debug, Default)]
pub(super) struct Idle {
    events: u64,
    bytes: u64,
}

impl Idle {
    /// Counts received bytes.
    pub(super) fn bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Counts an event. An event with output (`carried`) resets the counters.
    pub(super) fn event(&mut self, carried: bool) {
        if carried {
            *self = Self::default();
        } else {
            self.events += 1;
        }
    }

    /// Returns which limit the stream exceeds, if any.
    pub(super) fn excess(&self) -> Option<String> {
        if self.events > IDLE_EVENTS {
            return Some(format!("more than {IDLE_EVENTS} events in a row have no output"));
        }
        if self.bytes > IDLE_BYTES {
            return Some(format!("more than {IDLE_BYTES} bytes in a row have no output"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{IDLE_BYTES, IDLE_EVENTS, Idle};

    #[test]
    fn output_resets_the_counters() {
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
