//! Attributes of spans.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Kind;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::{Status, span, status};

/// A list of attributes that grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(Vec<KeyValue>);

impl Attributes {
    pub(crate) fn text(&mut self, key: &str, value: impl Into<String>) {
        self.put(key, Kind::StringValue(value.into()));
    }

    pub(crate) fn some_text(&mut self, key: &str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.put(key, Kind::IntValue(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    pub(crate) fn float(&mut self, key: &str, value: f64) {
        self.put(key, Kind::DoubleValue(value));
    }

    pub(crate) fn flag(&mut self, key: &str, value: bool) {
        self.put(key, Kind::BoolValue(value));
    }

    pub(crate) fn texts<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a str>) {
        let values = values
            .into_iter()
            .map(|text| AnyValue { value: Some(Kind::StringValue(text.to_owned())) })
            .collect();
        self.put(key, Kind::ArrayValue(ArrayValue { values }));
    }

    pub(crate) fn done(self) -> Vec<KeyValue> {
        self.0
    }

    fn put(&mut self, key: &str, kind: Kind) {
        let value = Some(AnyValue { value: Some(kind) });
        self.0.push(KeyValue { key: key.to_owned(), value, ..KeyValue::default() });
    }
}

/// Something that happened during a span.
pub(super) fn event(at_ms: i64, name: String, attributes: Attributes) -> span::Event {
    let attributes = attributes.done();
    span::Event { time_unix_nano: nanos(at_ms), name, attributes, dropped_attributes_count: 0 }
}

/// The status of a span that ended badly.
pub(super) fn error(message: String) -> Status {
    Status { message, code: status::StatusCode::Error.into() }
}

/// Milliseconds since 1970 as OTLP counts.
pub(super) fn nanos(at_ms: i64) -> u64 {
    u64::try_from(at_ms).unwrap_or(0).saturating_mul(1_000_000)
}
