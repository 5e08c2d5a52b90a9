//! Holds requests, or the events of streamed responses, until a test releases them.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::{sync::watch, time::timeout};

use super::{call::Call, faults::Pattern};
use crate::error::Error;

/// Timeout of a test that waits for a request.
pub(super) const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// A gate that holds matching requests until it is opened or dropped.
#[derive(Debug)]
pub struct Gate {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    on: Pattern,
    arrived: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Gate {
    /// Waits until `count` matching requests have arrived since the gate was created. Released
    /// requests count, too.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] after half a minute, so that a broken test ends.
    pub async fn arrived(&self, count: usize) -> Result<(), Error> {
        let mut arrived = self.state.arrived.subscribe();
        let seen = timeout(WAIT_LIMIT, arrived.wait_for(|seen| *seen >= count)).await;
        match seen {
            // The sender exists as long as `self`, so the inner result is never an error.
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Timeout {
                what: format!("{count} requests at the gate"),
                limit: WAIT_LIMIT,
                hint: format!("{} arrived for {:?}", *self.state.arrived.borrow(), self.state.on),
            }),
        }
    }

    /// Releases all held requests and lets later ones pass.
    pub fn open(&self) {
        self.state.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

/// A gate that holds matching streamed responses after their head, and releases their events one by
/// one.
#[derive(Debug)]
pub struct StreamGate {
    state: Arc<StreamState>,
}

#[derive(Debug)]
pub(super) struct StreamState {
    on: Pattern,
    /// The highest event number that any stream has reached.
    arrived: watch::Sender<usize>,
    /// Number of events that every stream may send.
    released: watch::Sender<usize>,
}

impl StreamGate {
    /// Waits until a stream reaches the event with this number, counted from 1.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] after half a minute, so that a broken test ends.
    pub async fn arrived(&self, event: usize) -> Result<(), Error> {
        let mut arrived = self.state.arrived.subscribe();
        let seen = timeout(WAIT_LIMIT, arrived.wait_for(|seen| *seen >= event)).await;
        // The sender exists as long as `self`, so the inner result is never an error.
        seen.map(drop).map_err(|_| Error::Timeout {
            what: format!("event {event} of a stream at the gate"),
            limit: WAIT_LIMIT,
            hint: format!("{} arrived for {:?}", *self.state.arrived.borrow(), self.state.on),
        })
    }

    /// Releases this number of further events of every stream.
    pub fn release(&self, events: usize) {
        self.state.released.send_modify(|released| *released = released.saturating_add(events));
    }

    /// Releases all events.
    pub fn open(&self) {
        self.release(usize::MAX);
    }
}

impl Drop for StreamGate {
    fn drop(&mut self) {
        self.open();
    }
}

impl StreamState {
    /// Waits until the stream may send the event with this number, counted from 1.
    pub(super) async fn pass(&self, event: usize) {
        self.arrived.send_modify(|seen| *seen = event.max(*seen));
        let mut released = self.released.subscribe();
        // An error means that the test has dropped the gate, which releases everything.
        let _ = released.wait_for(|released| *released >= event).await;
    }
}

/// The gates of a server. Creating a gate removes the dropped ones.
#[derive(Debug, Default)]
pub(super) struct Gates {
    gates: Mutex<Vec<Weak<State>>>,
    streams: Mutex<Vec<Weak<StreamState>>>,
}

impl Gates {
    pub(super) fn build(&self, on: Pattern) -> Gate {
        let state = State { on, arrived: watch::Sender::new(0), open: watch::Sender::new(false) };
        let gate = Gate { state: Arc::new(state) };
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.retain(|gate| gate.strong_count() > 0);
        gates.push(Arc::downgrade(&gate.state));
        gate
    }

    pub(super) fn build_for_streams(&self, on: Pattern) -> StreamGate {
        let (arrived, released) = (watch::Sender::new(0), watch::Sender::new(0));
        let gate = StreamGate { state: Arc::new(StreamState { on, arrived, released }) };
        let mut gates = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        gates.retain(|gate| gate.strong_count() > 0);
        gates.push(Arc::downgrade(&gate.state));
        gate
    }

    /// Returns the gates that apply to a streamed response.
    pub(super) fn for_stream(&self, call: &Call) -> Vec<Arc<StreamState>> {
        let gates = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        gates.iter().filter_map(Weak::upgrade).filter(|state| state.on.fits(call)).collect()
    }

    /// Waits at every matching gate, in the order of their creation.
    pub(super) async fn pass(&self, call: &Call) {
        for state in self.fitting(call) {
            state.arrived.send_modify(|count| *count += 1);
            let mut open = state.open.subscribe();
            // An error means that the test has dropped the gate, which releases everything.
            let _ = open.wait_for(|open| *open).await;
        }
    }

    fn fitting(&self, call: &Call) -> Vec<Arc<State>> {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.iter().filter_map(Weak::upgrade).filter(|state| state.on.fits(call)).collect()
    }
}
