//! The trace of a thread, built from its log.

use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_project::projection::{EventState, Projection as _};
use wattle_project::trace::{Trace, Tracer};
use wattle_run::engine::Engine;
use wattle_run::reads::begin_large_read;
use wattle_run::tail::range::EventRange;

/// Reads the log of a thread page by page and builds its trace. Stops where the trace is too large.
///
/// # Errors
///
/// The errors of the engine.
pub(crate) async fn read(engine: &Engine, thread: &ThreadId) -> Result<Trace, Failure> {
    // A trace takes as much memory as a large state.
    let _large = begin_large_read().await;
    let mut tracer = Tracer::default();
    let mut events = EventRange::new(engine.ports().store.as_ref(), thread, 0, u64::MAX);
    'log: while let Some(page) = events.next().await? {
        for event in &page {
            tracer.apply(event, &EventState::default());
            if tracer.is_over() {
                break 'log;
            }
        }
    }
    Ok(tracer.finish(thread))
}
