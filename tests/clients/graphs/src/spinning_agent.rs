//! A graph that computes without an end, for clients that cancel a run at work.

use wattle_plugin::prelude::{Context, Empty, Failure, node};

use crate::progress;

/// Says that it begins, and then computes until it is stopped.
#[node]
pub(crate) fn spin(_context: &Context, _input: Empty) -> Result<(), Failure> {
    progress::begins("spin")?;
    let mut number = 0_u64;
    loop {
        // The compiler must not see that nobody wants the number.
        number = std::hint::black_box(number.wrapping_add(1));
    }
}
