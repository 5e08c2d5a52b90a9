//! redb files that are not trusted: a damaged page is an error and never a panic, and a file that
//! failed is opened again.

pub(crate) mod handle;
pub(crate) mod look;
pub(crate) mod mark;
pub(crate) mod open;
pub(crate) mod replace;
pub(crate) mod walk;

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use wattle_run::ports::store::StoreError;

use crate::error::corrupt;

/// Does something with a file of redb, which panics at some damages of a page. What it has in
/// memory is dropped with the error, or is not changed by reads.
pub(crate) fn guarded<T>(
    operation: &str,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let before = quiet();
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    done.unwrap_or_else(|panic| {
        let message = format!(
            "a page of its file is damaged, which shows when wattle tries to {operation} ({}); \
             `wattle store verify` finds what it touches",
            said(&*panic)
        );
        Err(corrupt("checkpoint store", message))
    })
}

thread_local! {
    /// Whether a panic of this thread becomes an error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Has the next panic of this thread say nothing by itself, since an error will tell it; answers with
/// whether that was so before.
fn quiet() -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = take_hook();
        set_hook(Box::new(move |panic| {
            if IS_GUARDED.get() {
                tracing::debug!(%panic, "a damaged page");
            } else {
                tell(panic);
            }
        }));
    });
    IS_GUARDED.replace(true)
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
