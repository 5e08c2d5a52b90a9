//! The memory of the pages of all tails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limit::PAGE_EVENT_BYTES;

/// The memory of pages. Clones share the memory.
#[derive(Clone, Debug)]
pub(super) struct PageMemory {
    most: u64,
    /// Bytes of the pages in memory, and of the pages that are being read.
    used: Arc<AtomicU64>,
}

/// The memory of one page. It is free again when the value is dropped.
#[derive(Debug)]
pub(super) struct PageRoom {
    memory: PageMemory,
    bytes: u64,
}

impl PageMemory {
    /// Creates a memory of `most` bytes.
    pub(super) fn new(most: u64) -> Self {
        Self { most, used: Arc::default() }
    }

    /// Reserves the room of a page before it is read. The room is empty if the memory has no place
    /// for a page of the maximum size.
    pub(super) fn reserve(&self) -> PageRoom {
        let more = |used: u64| {
            let used = used.saturating_add(PAGE_EVENT_BYTES);
            (used <= self.most).then_some(used)
        };
        let is_reserved =
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        let bytes = if is_reserved { PAGE_EVENT_BYTES } else { 0 };
        PageRoom { memory: self.clone(), bytes }
    }
}

impl PageRoom {
    /// Returns true if a page of the maximum size may be read. Otherwise one event may be read.
    pub(super) fn has_page(&self) -> bool {
        self.bytes > 0
    }

    /// Counts the memory that the page has taken. A single event counts whatever its size, and so
    /// leaves less for further pages.
    pub(super) fn resize(&mut self, bytes: u64) {
        self.memory.used.fetch_add(bytes, Ordering::Relaxed);
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for PageRoom {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_room_until_the_memory_is_full() {
        let memory = PageMemory::new(2 * PAGE_EVENT_BYTES);
        let (mut first, second) = (memory.reserve(), memory.reserve());
        assert!(first.has_page() && second.has_page());
        let mut single = memory.reserve();
        assert!(!single.has_page());
        first.resize(0);
        single.resize(1);
        assert!(!memory.reserve().has_page(), "a single event counts as well");
        drop(single);
        assert!(memory.reserve().has_page());
        drop((first, second));
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }
}
