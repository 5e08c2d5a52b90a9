//! A node that tries to remember its calls without the host.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use wattle_plugin::prelude::{Context, Empty, Failure, JsonSchema, Serialize, node};

static VARIABLE: AtomicBool = AtomicBool::new(false);
static ONCE: OnceLock<()> = OnceLock::new();
static HEAP: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    static LOCAL: Cell<bool> = const { Cell::new(false) };
}

/// A place in which a mark could outlast a call.
struct Place {
    name: &'static str,
    is_marked: fn() -> bool,
    mark: fn(),
}

const PLACES: [Place; 4] = [
    Place {
        name: "a static",
        is_marked: || VARIABLE.load(Ordering::Relaxed),
        mark: || VARIABLE.store(true, Ordering::Relaxed),
    },
    Place {
        name: "a cell that is set once",
        is_marked: || ONCE.get().is_some(),
        mark: || {
            ONCE.get_or_init(|| ());
        },
    },
    Place { name: "a thread-local", is_marked: || LOCAL.get(), mark: || LOCAL.set(true) },
    Place {
        name: "the heap",
        is_marked: || !HEAP.lock().unwrap_or_else(PoisonError::into_inner).is_empty(),
        mark: || HEAP.lock().unwrap_or_else(PoisonError::into_inner).push("a call".to_owned()),
    },
];

/// Returns the names of the places that have a mark, or of those that have none.
fn places(marked: bool) -> Vec<String> {
    let places = PLACES.iter().filter(|place| (place.is_marked)() == marked);
    places.map(|place| place.name.to_owned()).collect()
}

/// Output of `recollect`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recollection {
    /// Names of the places in which an earlier call left a mark. The list must be empty.
    pub(crate) recollected: Vec<String>,
    /// Names of the places in which this call could not leave a mark. The list must be empty.
    pub(crate) forgotten: Vec<String>,
}

/// Looks for marks of earlier calls, and leaves a mark in every place.
#[node]
pub(crate) fn recollect(_context: &Context, _input: Empty) -> Result<Recollection, Failure> {
    let recollected = places(true);
    for place in &PLACES {
        (place.mark)();
    }
    Ok(Recollection { recollected, forgotten: places(false) })
}
