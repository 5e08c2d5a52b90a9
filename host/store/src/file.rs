//! redb files that are not trusted: a damaged page is an error and never a panic, and a file that
//! failed is reopened.

pub(crate) mod create;
pub(crate) mod handle;
pub(crate) mod kind;
pub(crate) mod marker;
pub(crate) mod open;
pub(crate) mod replace;
pub(crate) mod scan;
pub(crate) mod view;

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use wattle_run::ports::store::StoreError;

use crate::error::corrupt;

/// Size of the page cache, in bytes, of a file that is checked, can only be read, or is filled by
/// one operation. A check and a fill access most pages once. A file can only be read for a short
/// time: until it is rebuilt, or open again after a failure. So a larger cache saves few reads. The
/// memory budget has no part for these caches. The default of redb is 1 GiB.
pub(crate) const SHORT_USE_CACHE_BYTES: usize = 32 << 20;

/// Runs an operation on a redb file and converts a panic, which redb raises for some damaged pages,
/// into an error. No inconsistent state remains: the in-memory state that the operation changed is
/// dropped with the panic.
pub(crate) fn guarded<T>(
    operation: &str,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let before = silence_panics();
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    done.unwrap_or_else(|panic| {
        let message = format!(
            "a page of its file is damaged, as an attempt to {operation} shows ({}); \
             `wattle store verify` lists the damage",
            panic_message(&*panic)
        );
        Err(corrupt("checkpoint store", message))
    })
}

thread_local! {
    /// Whether a panic of this thread becomes an error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Suppresses the output of panics of this thread, since an error reports them. Returns whether the
/// output was suppressed before the call.
fn silence_panics() -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default_hook = take_hook();
        set_hook(Box::new(move |panic| {
            if IS_GUARDED.get() {
                tracing::debug!(%panic, "panic at a damaged page");
            } else {
                default_hook(panic);
            }
        }));
    });
    IS_GUARDED.replace(true)
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
