//! Limits on the part of a stream that has no output.
//!
//! The timeout does not end such a stream, because each chunk restarts the timeout.

/// Maximum consecutive events without output. Services send such events while a model reasons: one
/// per second over the ten minutes that a call may take.
const MAX_IDLE_EVENTS: u64 = 2_000;

/// Maximum consecutive bytes without output, comments and empty lines included. A chunk with output
/// may be large.
const MAX_IDLE_BYTES: u64 = 4 << 20;

/// Counts events and bytes since the last output.
#[derive(Debug, Default)]
pub(super) struct IdleCounter {
    events: u64,
    bytes: u64,
}

impl IdleCounter {
    /// Counts received bytes.
    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Counts an event. An event with output (`carried`) resets the counters.
    pub(super) fn add_event(&mut self, carried: bool) {
        if carried {
            *self = Self::default();
        } else {
            self.events += 1;
        }
    }

    /// Returns which limit the stream exceeds, if any.
    pub(super) fn exceeded_limit(&self) -> Option<String> {
        if self.events > MAX_IDLE_EVENTS {
            return Some(format!("more than {MAX_IDLE_EVENTS} events in a row have no output"));
        }
        if self.bytes > MAX_IDLE_BYTES {
            return Some(format!("more than {MAX_IDLE_BYTES} bytes in a row have no output"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{IdleCounter, MAX_IDLE_BYTES, MAX_IDLE_EVENTS};

    #[test]
    fn output_resets_the_counters() {
        let mut idle = IdleCounter::default();
        for _ in 0..3 {
            (0..MAX_IDLE_EVENTS).for_each(|_| idle.add_event(false));
            idle.add_bytes(MAX_IDLE_BYTES as usize);
            assert_eq!(idle.exceeded_limit(), None);
            idle.add_event(true);
        }
        (0..=MAX_IDLE_EVENTS).for_each(|_| idle.add_event(false));
        assert!(idle.exceeded_limit().is_some_and(|why| why.contains("events")));
        let mut idle = IdleCounter::default();
        idle.add_bytes(MAX_IDLE_BYTES as usize + 1);
        assert!(idle.exceeded_limit().is_some_and(|why| why.contains("bytes")));
    }
}
