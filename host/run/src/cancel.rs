//! A flag that ends a run: set once, waited for by everything the run does.

use std::sync::Arc;

use tokio::sync::watch;

/// Cheap to clone; all clones share the flag.
#[derive(Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    /// Sets the flag.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the flag is set.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail before the flag is set.
        let _ = receiver.wait_for(|cancelled| *cancelled).await;
    }
}
