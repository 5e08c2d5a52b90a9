//! Function names of streamed completions. [`crate::hostcall::llm`] defines request and output.

use wattle_graph::call::CallKind;

/// The model call.
pub(crate) const FUNCTION: &str = CallKind::Stream.name();

/// A read of the stream.
pub(crate) const STREAM_READ: &str = CallKind::StreamNext.name();
