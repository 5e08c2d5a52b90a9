//! Names in the journal of a model call whose answer the guest reads piece by piece. The request and
//! the answer are those of [`crate::hostcall::llm`].

use wattle_graph::call::CallKind;

/// The call.
pub(crate) const FUNCTION: &str = CallKind::Stream.name();

/// One look at the pieces that have arrived.
pub(crate) const LOOK: &str = CallKind::StreamNext.name();
