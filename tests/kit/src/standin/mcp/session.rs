//! Sessions of the protocol with a handshake.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

/// The open sessions of a server.
#[derive(Debug, Default)]
pub(in crate::standin) struct Sessions {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    begun: u64,
    open: BTreeSet<String>,
}

impl Sessions {
    pub(super) fn begin(&self) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.begun += 1;
        let id = format!("session-{}", state.begun);
        state.open.insert(id.clone());
        id
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open.contains(id)
    }

    pub(super) fn end(&self, id: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open.remove(id);
    }

    /// Ends all sessions, as a restart of the server does.
    pub(in crate::standin) fn forget(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open.clear();
    }
}
