//! The trace endpoint of Langfuse: OTLP over HTTP in Protobuf, with Basic authentication.
//!
//! The request log has the spans as JSON: ids in hexadecimal, attributes as an object.

use axum::{
    Json,
    http::{StatusCode, header},
    response::IntoResponse as _,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{AnyValue, KeyValue, any_value::Value as Kind},
    trace::v1::{Span, span},
};
use prost::Message as _;
use serde_json::{Map, Value, json};

use super::{
    call::{Call, is_key_accepted},
    reply::Reply,
};

const PROTOBUF: &str = "application/x-protobuf";

/// Decodes the Protobuf body of a request into JSON.
pub(super) fn readable(mut call: Call) -> Call {
    if call.path.ends_with("/v1/traces") && call.header("content-type") == Some(PROTOBUF) {
        let request = ExportTraceServiceRequest::decode(call.body.clone());
        call.json = request.ok().map(|request| shown(&request));
    }
    call
}

/// Responds to an export.
pub(super) fn answer(call: &Call) -> Reply {
    let rule = "otlp";
    if !is_key_accepted(secret_key(call).as_deref()) {
        let body = Json(json!({ "message": "Invalid credentials" }));
        return Reply { rule, response: (StatusCode::UNAUTHORIZED, body).into_response() };
    }
    if call.json.is_none() {
        return Reply { rule, response: StatusCode::BAD_REQUEST.into_response() };
    }
    let body = ExportTraceServiceResponse::default().encode_to_vec();
    Reply { rule, response: ([(header::CONTENT_TYPE, PROTOBUF)], body).into_response() }
}

/// Returns the password of `authorization: Basic ...`.
fn secret_key(call: &Call) -> Option<String> {
    let pair = call.header(header::AUTHORIZATION.as_str())?.strip_prefix("Basic ")?;
    let pair = String::from_utf8(STANDARD.decode(pair).ok()?).ok()?;
    pair.split_once(':').map(|(_, secret)| secret.to_owned())
}

fn shown(request: &ExportTraceServiceRequest) -> Value {
    let resources = request.resource_spans.iter();
    let resource = resources.clone().find_map(|it| it.resource.as_ref());
    let spans: Vec<Value> = resources
        .flat_map(|resource| &resource.scope_spans)
        .flat_map(|scope| &scope.spans)
        .map(span_shown)
        .collect();
    json!({
        "resource": resource.map(|it| attributes(&it.attributes)),
        "spans": spans,
    })
}

fn span_shown(span: &Span) -> Value {
    let status = span.status.as_ref();
    json!({
        "trace_id": hex(&span.trace_id),
        "span_id": hex(&span.span_id),
        "parent_span_id": hex(&span.parent_span_id),
        "name": span.name,
        "kind": span.kind,
        "start_ns": span.start_time_unix_nano,
        "end_ns": span.end_time_unix_nano,
        "attributes": attributes(&span.attributes),
        "events": span.events.iter().map(event_shown).collect::<Vec<_>>(),
        "status": status.map(|it| json!({ "code": it.code, "message": it.message })),
    })
}

fn event_shown(event: &span::Event) -> Value {
    json!({
        "name": event.name,
        "at_ns": event.time_unix_nano,
        "attributes": attributes(&event.attributes),
    })
}

fn attributes(list: &[KeyValue]) -> Value {
    let pairs = list.iter().map(|pair| (pair.key.clone(), value(pair.value.as_ref())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn value(any: Option<&AnyValue>) -> Value {
    match any.and_then(|any| any.value.as_ref()) {
        Some(Kind::StringValue(text)) => json!(text),
        Some(Kind::BoolValue(flag)) => json!(flag),
        Some(Kind::IntValue(number)) => json!(number),
        Some(Kind::DoubleValue(number)) => json!(number),
        Some(Kind::ArrayValue(array)) => array.values.iter().map(|it| value(Some(it))).collect(),
        Some(Kind::KvlistValue(list)) => attributes(&list.values),
        _ => Value::Null,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
