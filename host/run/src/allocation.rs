//! An allocator for unit tests that counts what a closure allocates.

#![expect(unsafe_code, reason = "the interface of an allocator is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

thread_local! {
    /// Bytes that this thread has allocated.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

/// Counts the bytes of each thread, and passes all calls on to the allocator of the system.
struct CountingAllocator;

impl CountingAllocator {
    fn count(bytes: usize) {
        ALLOCATED.set(ALLOCATED.get().wrapping_add(bytes));
    }
}

// SAFETY: the allocator of the system keeps the contract, and it receives all calls unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: the caller keeps the contract of this function, which is that of the system
        // allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as for `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size);
        // SAFETY: as for `alloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the result of a closure, and the number of bytes that it allocates on this thread.
/// Bytes that are freed again count, too.
pub(crate) fn allocated_bytes<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.get();
    let result = work();
    (result, ALLOCATED.get().wrapping_sub(before))
}
