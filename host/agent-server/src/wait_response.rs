//! Responses with the result of a run, which complete when the run has ended.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::Value;
use tokio::sync::watch;
use wattle_api::guard::ResponseReservation;
use wattle_api::response::{next_chunk, write_json};
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunRef;

use crate::disconnect::DisconnectGuard;
use crate::run::wait_for_result;

/// Interval without an event after which a stream sends a heartbeat. Clients measure this interval,
/// and close a connection after several missing heartbeats.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Whitespace that keeps the connection alive. Before a JSON value it has no meaning.
const KEEP_ALIVE: Bytes = Bytes::from_static(b"\n");

type RunResultFuture = Pin<Box<dyn Future<Output = Option<Value>> + Send>>;

/// What a response has not sent yet.
enum Rest {
    /// The run has not ended.
    Pending(RunResultFuture, Option<DisconnectGuard>),
    /// The rest of the values.
    Values(Bytes),
}

/// Returns a response with the values of a run, which completes when the run has ended. The body is
/// aborted if the host shuts down before the end of the run, or if the values would exceed the
/// limit of unread bytes of responses to the caller. Clients then repeat the request at the path in
/// the `Location` header.
pub(crate) fn wait_response(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    run: RunRef,
    disconnect_guard: Option<DisconnectGuard>,
    lease: Option<ResponseReservation>,
) -> Response {
    let (engine, stopping) = (engine.clone(), stopping.clone());
    let result: RunResultFuture =
        Box::pin(async move { wait_for_result(&engine, &stopping, run).await });
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (headers, Body::from_stream(body(result, disconnect_guard, lease))).into_response()
}

fn body(
    result: RunResultFuture,
    disconnect_guard: Option<DisconnectGuard>,
    lease: Option<ResponseReservation>,
) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold((Rest::Pending(result, disconnect_guard), lease), |(rest, lease)| async move {
        let mut values = match rest {
            Rest::Values(values) => values,
            Rest::Pending(mut result, mut disconnect_guard) => tokio::select! {
                biased;
                value = &mut result => {
                    if let Some(disconnect_guard) = &mut disconnect_guard {
                        disconnect_guard.disarm();
                    }
                    match serialize(value, lease.as_ref()) {
                        Ok(values) => values,
                        Err(error) => return Some((Err(error), (Rest::Values(Bytes::new()), lease))),
                    }
                }
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {
                    let rest = Rest::Pending(result, disconnect_guard);
                    return Some((Ok(KEEP_ALIVE), (rest, lease)));
                }
            },
        };
        let piece = next_chunk(&mut values)?;
        Some((Ok(piece), (Rest::Values(values), lease)))
    })
}

/// Returns the values of a run as JSON, and adds their bytes to the reservation `lease`.
fn serialize(values: Option<Value>, lease: Option<&ResponseReservation>) -> io::Result<Bytes> {
    let values = values.ok_or_else(|| io::Error::other("the host is shutting down"))?;
    let mut text = Vec::new();
    write_json(&mut text, &values)?;
    if lease.is_some_and(|lease| !lease.try_grow_to(text.len())) {
        return Err(io::Error::other(
            "the unread responses of the caller exceed the limit of bytes",
        ));
    }
    Ok(text.into())
}

/// Adds the headers `Content-Location`, the path of the run, and `Location`, the path at which a
/// client resumes the response after a lost connection.
pub(crate) fn with_location_headers(
    mut response: Response,
    run: &str,
    resume_path: Option<&str>,
) -> Response {
    let headers = response.headers_mut();
    if let Ok(path) = HeaderValue::from_str(run) {
        headers.insert(header::CONTENT_LOCATION, path);
    }
    let resume_path =
        resume_path.and_then(|path| HeaderValue::from_str(&format!("{run}/{path}")).ok());
    if let Some(resume_path) = resume_path {
        headers.insert(header::LOCATION, resume_path);
    }
    response
}
