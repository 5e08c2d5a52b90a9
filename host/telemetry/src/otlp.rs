//! Converts spans to OTLP.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Kind;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{self, SpanKind as OtlpKind};
use opentelemetry_proto::tonic::trace::v1::{Span as OtlpSpan, Status, status};
use wattle_project::spans::{Attribute, Attributes, Span, SpanEvent, SpanKind};

/// Converts a span.
pub(crate) fn span(span: Span) -> OtlpSpan {
    OtlpSpan {
        trace_id: span.trace.to_vec(),
        span_id: span.id.to_vec(),
        // The root span has no parent. OTLP represents this by an empty id.
        parent_span_id: span.parent.map(|id| id.to_vec()).unwrap_or_default(),
        name: span.name,
        kind: kind(span.kind).into(),
        start_time_unix_nano: span.start_ns,
        end_time_unix_nano: span.end_ns,
        attributes: attributes(span.attributes),
        events: span.events.into_iter().map(event).collect(),
        dropped_events_count: span.dropped_events,
        status: span.error.map(error_status),
        ..OtlpSpan::default()
    }
}

/// Converts attributes to OTLP key-value pairs.
pub(crate) fn attributes(attributes: Attributes) -> Vec<KeyValue> {
    let attribute = |(key, value)| {
        let value = Some(AnyValue { value: Some(value_of(value)) });
        KeyValue { key, value, ..KeyValue::default() }
    };
    attributes.into_iter().map(attribute).collect()
}

fn value_of(attribute: Attribute) -> Kind {
    match attribute {
        Attribute::Text(text) => Kind::StringValue(text),
        Attribute::Number(number) => Kind::IntValue(number),
        Attribute::Float(number) => Kind::DoubleValue(number),
        Attribute::Flag(flag) => Kind::BoolValue(flag),
        Attribute::Texts(texts) => {
            let text = |text| AnyValue { value: Some(Kind::StringValue(text)) };
            Kind::ArrayValue(ArrayValue { values: texts.into_iter().map(text).collect() })
        }
    }
}

fn kind(kind: SpanKind) -> OtlpKind {
    match kind {
        SpanKind::Server => OtlpKind::Server,
        SpanKind::Client => OtlpKind::Client,
        SpanKind::Internal => OtlpKind::Internal,
    }
}

fn event(event: SpanEvent) -> span::Event {
    let SpanEvent { at_ns, name, attributes: pairs } = event;
    let attributes = attributes(pairs);
    span::Event { time_unix_nano: at_ns, name, attributes, dropped_attributes_count: 0 }
}

fn error_status(message: String) -> Status {
    Status { message, code: status::StatusCode::Error.into() }
}
