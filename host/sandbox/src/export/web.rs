//! Calls the web handler of a plugin and converts its response.

use bytes::Bytes;
use serde::Deserialize;
use wattle_graph::id::{NodeName, RunId, ThreadId};
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::sandbox::{
    GuestError, HandOff, StreamFormat, WebBody, WebRequest, WebResponse,
};

use crate::bindings::exports::wattle::plugin::web;
use crate::export::output_json::OutputJson;
use crate::export::{GuestCall, check_output_size, invalid_result, missing_export};
use crate::json::extra_bytes;

/// Calls the web handler with a request. Errors of wasmtime and invalid responses become errors of
/// the guest call. Long work on the response counts for `owner`.
pub(crate) async fn run(
    call: GuestCall<'_>,
    request: WebRequest,
    owner: CallerId,
) -> Result<WebResponse, GuestError> {
    let (callee, limits) = (call.callee, call.limits);
    let Some(export) = &call.code.exports.web else {
        return Err(missing_export(callee, "web"));
    };
    let mut live = call.instantiate().await?;
    if let Err(refused) = live.hold_texts(request.body.len()) {
        return Err(live.refuse(refused).await);
    }
    // The host makes no second copy of the request for a guest that waits for its place or for
    // memory.
    let request = web::Request {
        method: request.method,
        path: request.path,
        route: request.route,
        params: request.params,
        query: request.query,
        headers: request.headers,
        body: request.body.into(),
        tenant: request.tenant,
        extra: Vec::new(),
    };
    let done = live.call(&export.handle, (request,)).await;
    let response = live.finish_fallible(done).await?;
    check_output_size(response_size(&response), limits, callee)?;
    let is_long = is_long_parse(json_bytes(&response));
    let convert = || into_response(response, &OutputJson::new(limits, callee));
    block_in_place_in_turn(owner, is_long, convert).await
}

/// Returns the length of the JSON texts of a response, in bytes.
fn json_bytes(response: &web::Response) -> usize {
    if let web::Body::HandOff(hand_off) = &response.body { extra_bytes(&hand_off.extra) } else { 0 }
}

fn into_response(
    response: web::Response,
    json: &OutputJson<'_>,
) -> Result<WebResponse, GuestError> {
    let callee = json.callee();
    let body = match response.body {
        web::Body::Empty => WebBody::Empty,
        web::Body::Bytes(bytes) => WebBody::Bytes(Bytes::from(bytes)),
        web::Body::Blob(text) => {
            WebBody::Blob(BlobRef::parse(&text).ok_or_else(|| {
                invalid_result(callee, "a body that is not a blob reference", &text)
            })?)
        }
        web::Body::HandOff(hand_off) => WebBody::HandOff(into_hand_off(hand_off, json)?),
        web::Body::Other(case) => {
            return Err(invalid_result(callee, "a body that this host does not support", &case));
        }
    };
    Ok(WebResponse { status: response.status, headers: response.headers, body })
}

fn response_size(response: &web::Response) -> usize {
    let headers: usize =
        response.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let body = match &response.body {
        web::Body::Bytes(bytes) => bytes.len(),
        web::Body::Blob(text) | web::Body::Other(text) => text.len(),
        web::Body::Empty | web::Body::HandOff(_) => 0,
    };
    headers + body
}

fn into_hand_off(hand_off: web::HandOff, json: &OutputJson<'_>) -> Result<HandOff, GuestError> {
    let what = "an invalid hand-off";
    let bad = |error: &dyn std::fmt::Display| invalid_result(json.callee(), what, error);
    let format = match hand_off.format {
        web::StreamFormat::Sse => StreamFormat::Sse,
        web::StreamFormat::AiSdk => StreamFormat::AiSdk,
        web::StreamFormat::AgUi => StreamFormat::AgUi,
        web::StreamFormat::Custom(name) => StreamFormat::Custom(name),
        web::StreamFormat::Other(name) => {
            return Err(bad(&format_args!(
                "this host does not support the stream format `{name}`"
            )));
        }
    };
    let run = hand_off.run_id.map(RunId::new).transpose().map_err(|error| bad(&error))?;
    let thread = ThreadId::new(hand_off.thread_id).map_err(|error| bad(&error))?;
    let wishes = json.as_call("hand-off").parse_extra::<HandOffExtra>(&hand_off.extra);
    let wishes = wishes.map_err(|failure| json.refused(what, failure))?;
    let cancel_after_ms = match wishes.on_disconnect {
        OnDisconnect::Cancel => Some(wishes.grace_ms),
        OnDisconnect::Continue => None,
    };
    let (after, nodes) = (hand_off.after, wishes.nodes);
    Ok(HandOff { thread, run, format, after, cancel_after_ms, nodes })
}

/// Extension fields of a hand-off (`extra`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct HandOffExtra {
    on_disconnect: OnDisconnect,
    grace_ms: u64,
    nodes: Vec<NodeName>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnDisconnect {
    #[default]
    Continue,
    Cancel,
}
