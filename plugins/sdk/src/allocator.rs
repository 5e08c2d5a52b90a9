//! The allocator of guests: that of the standard library, but it begins with memory that a guest
//! has from its beginning.
//!
//! The allocator of the standard library takes all of its memory by growing that of the guest. A
//! guest makes one call, so it would grow in each, and the host would change the protection of its
//! memory for each growth, and once more for the next guest. Most steps fit into [`ARENA`].
#![expect(
    unsafe_code,
    reason = "the trait `GlobalAlloc` is unsafe: its callers trust the memory that it returns"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::arch::wasm32::memory_grow;
use std::cell::{Cell, UnsafeCell};
use std::ptr;

use dlmalloc::{Allocator, Dlmalloc};

/// Bytes of a page, by which memory grows.
const PAGE_BYTES: usize = 64 << 10;

/// Bytes of [`ARENA`]. A step takes about eight times as much as its state has JSON, so a state of
/// some 40 KiB fits. With the stack that `wattle new` sets, a small plugin begins with 1 MiB.
const ARENA_BYTES: usize = 7 * PAGE_BYTES;

/// Length of [`ARENA`].
const ARENA_WORDS: usize = ARENA_BYTES / size_of::<u64>();

/// Memory for the heap, aligned like the chunks of `Dlmalloc`. It is zero, so a component has no
/// bytes for it.
static mut ARENA: [u64; ARENA_WORDS] = [0; ARENA_WORDS];

#[global_allocator]
static HEAP: Heap =
    Heap(UnsafeCell::new(Dlmalloc::new_with_allocator(Pages { is_arena_free: Cell::new(true) })));

/// The heap of a guest.
struct Heap(UnsafeCell<Dlmalloc<Pages>>);

const _: () = assert!(!cfg!(target_feature = "atomics"), "the heap is for a single thread");

// SAFETY: a guest has one thread.
unsafe impl Sync for Heap {}

// SAFETY: `Dlmalloc` returns memory that fits the layout and that nothing else uses, or null. It
// does not panic.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: there is one thread, and `Dlmalloc` calls nothing that allocates.
        let heap = unsafe { &mut *self.0.get() };
        // SAFETY: any layout is valid.
        unsafe { heap.malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let heap = unsafe { &mut *self.0.get() };
        // SAFETY: any layout is valid.
        unsafe { heap.calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        let heap = unsafe { &mut *self.0.get() };
        // SAFETY: the caller got the memory from this heap with this layout.
        unsafe { heap.free(memory, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let heap = unsafe { &mut *self.0.get() };
        // SAFETY: the caller got the memory from this heap with this layout.
        unsafe { heap.realloc(memory, layout.size(), layout.align(), new_size) }
    }
}

/// Where the heap gets its memory: from the arena, and then by growing the memory of the guest.
struct Pages {
    /// False once the heap has the arena.
    is_arena_free: Cell<bool>,
}

// SAFETY: `alloc` returns memory that nothing else uses: the arena once, and pages that are new.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        // A larger piece leaves the arena for smaller ones.
        if size <= ARENA_BYTES && self.is_arena_free.replace(false) {
            return ((&raw mut ARENA).cast(), ARENA_BYTES, 0);
        }
        let pages = size.div_ceil(PAGE_BYTES);
        let end = memory_grow::<0>(pages);
        if end == usize::MAX {
            return (ptr::null_mut(), 0, 0);
        }
        let (begin, size) = (end * PAGE_BYTES, pages * PAGE_BYTES);
        // The address after a piece must not be 0, as it is at the end of the address space.
        let size = if begin.wrapping_add(size) == 0 { size - size_of::<u64>() } else { size };
        (ptr::with_exposed_provenance_mut(begin), size, 0)
    }

    fn remap(&self, _memory: *mut u8, _old: usize, _new: usize, _can_move: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, _memory: *mut u8, _old: usize, _new: usize) -> bool {
        false
    }

    fn free(&self, _memory: *mut u8, _size: usize) -> bool {
        false
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE_BYTES
    }
}
