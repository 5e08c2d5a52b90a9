//! Spans as plain data, which an exporter converts to its protocol.

use crate::spans::attribute::Attributes;

/// Length of a trace id, in bytes.
pub const TRACE_BYTES: usize = 16;

/// Length of a span id, in bytes.
pub const SPAN_BYTES: usize = 8;

/// The id of a trace.
pub type TraceId = [u8; TRACE_BYTES];

/// The id of a span.
pub type SpanId = [u8; SPAN_BYTES];

/// The span kind of OpenTelemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// The span of a request that the host handles, which is a run.
    Server,
    /// The span of a request that the host makes, which is a host call.
    Client,
    /// The span of work inside of the host, such as a task.
    Internal,
}

/// A span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Id of the trace.
    pub trace: TraceId,
    /// Id of the span.
    pub id: SpanId,
    /// Id of the parent span; `None` for the root.
    pub parent: Option<SpanId>,
    /// Name of the span.
    pub name: String,
    /// Kind of the span.
    pub kind: SpanKind,
    /// Start, in nanoseconds since 1970.
    pub start_ns: u64,
    /// End, in nanoseconds since 1970.
    pub end_ns: u64,
    /// Attributes of the span.
    pub attributes: Attributes,
    /// Events of the span, up to a maximum number.
    pub events: Vec<SpanEvent>,
    /// Number of events above the maximum, which `events` lacks.
    pub dropped_events: u32,
    /// Error message of a span that failed.
    pub error: Option<String>,
}

/// An event of a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// Time, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Name of the event.
    pub name: String,
    /// Attributes of the event.
    pub attributes: Attributes,
}

impl SpanEvent {
    /// Creates an event. `at_ms` is in milliseconds since 1970.
    pub(super) fn new(at_ms: i64, name: impl Into<String>, attributes: Attributes) -> Self {
        Self { at_ns: nanos(at_ms), name: name.into(), attributes }
    }
}

/// Converts milliseconds since 1970 to nanoseconds since 1970. Earlier times become 0.
pub(super) fn nanos(at_ms: i64) -> u64 {
    u64::try_from(at_ms).unwrap_or(0).saturating_mul(1_000_000)
}
