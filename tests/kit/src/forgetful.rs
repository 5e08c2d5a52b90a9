//! A store whose event reads fail on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use wattle_graph::event::Event;
use wattle_graph::id::ThreadId;
use wattle_run::ports::Store;
use wattle_run::ports::store::StoreError;

use crate::layer::{Layer, Layered};

/// A store whose logs can become unreadable. Other calls pass to the inner store.
pub type ForgetfulStore = Layered<Forgetful>;

/// The layer of [`ForgetfulStore`].
pub struct Forgetful {
    below: Arc<dyn Store>,
    forgets: AtomicBool,
}

impl Forgetful {
    /// Makes all reads of logs fail, or succeed again.
    pub fn forget(&self, forgets: bool) {
        self.forgets.store(forgets, Ordering::SeqCst);
    }
}

#[async_trait]
impl Layer for Forgetful {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, forgets: AtomicBool::new(false) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        if self.forgets.load(Ordering::SeqCst) {
            let message = "the log is not readable".to_owned();
            return Err(StoreError::Backend { operation: "read", message });
        }
        self.below.events(thread, after, limit).await
    }
}
