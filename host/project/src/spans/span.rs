//! Spans as data, of which an exporter makes the form of its protocol.

use crate::spans::attribute::Attributes;

/// Bytes of a trace id.
pub const TRACE_BYTES: usize = 16;

/// Bytes of a span id.
pub const SPAN_BYTES: usize = 8;

/// The id of a trace.
pub type TraceId = [u8; TRACE_BYTES];

/// The id of a span.
pub type SpanId = [u8; SPAN_BYTES];

/// Which side of a request a span is, as OpenTelemetry names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Answers a request: a run.
    Server,
    /// Makes a request: a host call.
    Client,
    /// Neither: a task.
    Internal,
}

/// A span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The span around it; `None` for the root.
    pub parent: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: SpanKind,
    /// When it began, nanoseconds since 1970.
    pub start_ns: u64,
    /// When it ended, nanoseconds since 1970.
    pub end_ns: u64,
    /// Its attributes.
    pub attributes: Attributes,
    /// What happened during it.
    pub events: Vec<SpanEvent>,
    /// How many events are left out.
    pub dropped_events: u32,
    /// Why it ended badly, if it did.
    pub error: Option<String>,
}

/// Something that happened during a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// When, nanoseconds since 1970.
    pub at_ns: u64,
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: Attributes,
}

impl SpanEvent {
    /// Something that happened at a time, milliseconds since 1970.
    pub(super) fn new(at_ms: i64, name: impl Into<String>, attributes: Attributes) -> Self {
        Self { at_ns: nanos(at_ms), name: name.into(), attributes }
    }
}

/// Milliseconds since 1970 as nanoseconds.
pub(super) fn nanos(at_ms: i64) -> u64 {
    u64::try_from(at_ms).unwrap_or(0).saturating_mul(1_000_000)
}
