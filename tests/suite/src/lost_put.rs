//! A long-term memory that performs a put and never returns its result, as if the host died
//! directly after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::Notify;
use wattle_graph::failure::Failure;
use wattle_kit::memory::{Call, Hook, Hooked};
use wattle_store::VolatileMemory;

/// A hook that counts the calls of a memory and loses the result of one put.
#[derive(Default)]
pub struct LostPut {
    losing: AtomicUsize,
    made: Notify,
    puts: AtomicUsize,
    reads: AtomicUsize,
}

impl LostPut {
    /// Creates a memory with this hook.
    pub fn memory() -> Arc<Hooked<Self>> {
        Arc::new(Hooked::over(Arc::new(VolatileMemory::new()), Self::default()))
    }

    /// Makes the next put succeed in the memory and never return.
    pub fn lose_next(&self) {
        self.losing.store(1, Ordering::SeqCst);
    }

    /// Waits until such a put has been performed.
    pub async fn lost(&self) {
        self.made.notified().await;
    }

    /// Returns the number of puts.
    pub fn puts(&self) -> usize {
        self.puts.load(Ordering::SeqCst)
    }

    /// Returns the number of reads by key.
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
