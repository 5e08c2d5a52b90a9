//! Responses with the result of a run, which complete when the run has ended.

use std::io;
use std::pin::Pin;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::Value;
use wattle_api::guard::ResponseReservation;
use wattle_api::response::{next_chunk, write_json};
use wattle_run::hostcall::runs::RunRef;

use crate::follow::HEARTBEAT;
use crate::presence::Presence;
use crate::run::wait_for_result;
use crate::state::AgentServer;

/// Whitespace that keeps the connection alive. Before a JSON value it has no meaning.
const SIGN_OF_LIFE: Bytes = Bytes::from_static(b"\n");

type Ending = Pin<Box<dyn Future<Output = Option<Value>> + Send>>;

/// What a response has not sent yet.
enum Rest {
    /// The run has not ended.
    Ending(Ending, Option<Presence>),
    /// The rest of the values.
    Values(Bytes),
}

/// Returns a response with the values of a run, which completes when the run has ended. If the host
/// shuts down earlier, or the responses that the caller has not read leave no room for the values,
/// the body is aborted. Clients then repeat the request at the path in the `Location` header.
pub(crate) fn wait(
    server: &AgentServer,
    run: RunRef,
    presence: Option<Presence>,
    lease: Option<ResponseReservation>,
) -> Response {
    let server = server.clone();
    let ending: Ending = Box::pin(async move { wait_for_result(&server, run).await });
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (headers, Body::from_stream(body(ending, presence, lease))).into_response()
}

fn body(
    ending: Ending,
    presence: Option<Presence>,
    lease: Option<ResponseReservation>,
) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold((Rest::Ending(ending, presence), lease), |(rest, lease)| async move {
        let mut values = match rest {
            Rest::Values(values) => values,
            Rest::Ending(mut ending, mut presence) => tokio::select! {
                biased;
                value = &mut ending => {
                    if let Some(presence) = &mut presence {
                        presence.end();
                    }
                    match written(value, lease.as_ref()) {
                        Ok(values) => values,
                        Err(error) => return Some((Err(error), (Rest::Values(Bytes::new()), lease))),
                    }
                }
                () = tokio::time::sleep(HEARTBEAT) => {
                    return Some((Ok(SIGN_OF_LIFE), (Rest::Ending(ending, presence), lease)));
                }
            },
        };
        let piece = next_chunk(&mut values)?;
        Some((Ok(piece), (Rest::Values(values), lease)))
    })
}

/// Returns the values of a run as JSON, and makes room for them.
fn written(values: Option<Value>, lease: Option<&ResponseReservation>) -> io::Result<Bytes> {
    let values = values.ok_or_else(|| io::Error::other("the host is shutting down"))?;
    let mut text = Vec::new();
    write_json(&mut text, &values)?;
    if lease.is_some_and(|lease| !lease.try_grow_to(text.len())) {
        return Err(io::Error::other("the caller has too many bytes of responses to read"));
    }
    Ok(text.into())
}

/// Adds the headers `Content-Location`, the path of the run, and `Location`, the path at which a
/// client resumes the response after a lost connection.
pub(crate) fn placed(mut response: Response, run: &str, goes_on: Option<&str>) -> Response {
    let headers = response.headers_mut();
    if let Ok(place) = HeaderValue::from_str(run) {
        headers.insert(header::CONTENT_LOCATION, place);
    }
    let goes_on = goes_on.and_then(|way| HeaderValue::from_str(&format!("{run}/{way}")).ok());
    if let Some(goes_on) = goes_on {
        headers.insert(header::LOCATION, goes_on);
    }
    response
}
