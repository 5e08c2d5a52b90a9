//! A graph that computes forever, for clients that cancel a running run.

use wattle_plugin::prelude::{Context, Empty, Failure, node};

use crate::progress;

/// Emits a progress event, and then computes until the run is cancelled.
#[node]
pub(crate) fn spin(_context: &Context, _input: Empty) -> Result<(), Failure> {
    progress::begins("spin")?;
    let mut number = 0_u64;
    loop {
        // `black_box` keeps the compiler from removing the unused number.
        number = std::hint::black_box(number.wrapping_add(1));
    }
}
