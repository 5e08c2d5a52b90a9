//! A long-term memory whose next put is made and never answered, as if the host died right
//! behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::Notify;
use wattle_graph::failure::Failure;
use wattle_kit::memory::{Call, Hook, Hooked};
use wattle_store::VolatileMemory;

/// What happens to the calls of a memory that loses the answer of one put.
#[derive(Default)]
pub struct LostPut {
    losing: AtomicUsize,
    made: Notify,
    puts: AtomicUsize,
    reads: AtomicUsize,
}

impl LostPut {
    /// Such a memory.
    pub fn memory() -> Arc<Hooked<Self>> {
        Arc::new(Hooked::over(Arc::new(VolatileMemory::new()), Self::default()))
    }

    /// The next put is made and never answered.
    pub fn lose_next(&self) {
        self.losing.store(1, Ordering::SeqCst);
    }

    /// Waits until a put was made whose answer is lost.
    pub async fn lost(&self) {
        self.made.notified().await;
    }

    /// How many puts were made.
    pub fn puts(&self) -> usize {
        self.puts.load(Ordering::SeqCst)
    }

    /// How many documents were read by their key.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Hook for LostPut {
    async fn before(&self, call: Call<'_>) -> Result<(), Failure> {
        match call.method {
            "get" | "peek" => drop(self.reads.fetch_add(1, Ordering::SeqCst)),
            "put" => drop(self.puts.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
        Ok(())
    }

    async fn after(&self, call: Call<'_>) -> Result<(), Failure> {
        if call.method == "put" && self.losing.swap(0, Ordering::SeqCst) > 0 {
            self.made.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}
