//! Responses with the result of a run, which complete when the run has ended.

use std::io;
use std::pin::Pin;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::Value;
use wattle_run::hostcall::runs::RunRef;

use crate::agents::Agents;
use crate::follow::HEARTBEAT;
use crate::presence::Presence;
use crate::run::ended;

/// Whitespace that keeps the connection alive. Before a JSON value it has no meaning.
const SIGN_OF_LIFE: Bytes = Bytes::from_static(b"\n");

type Ending = Pin<Box<dyn Future<Output = Option<Value>> + Send>>;

/// Returns a response with the values of a run, which completes when the run has ended. If the host
/// shuts down earlier, the body is aborted. Clients then repeat the request at the path in the
/// `Location` header.
pub(crate) fn wait(agents: &Agents, run: RunRef, presence: Option<Presence>) -> Response {
    let agents = agents.clone();
    let ending: Ending = Box::pin(async move { ended(&agents, run).await });
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (headers, Body::from_stream(body(ending, presence))).into_response()
}

fn body(ending: Ending, presence: Option<Presence>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold(Some((ending, presence)), |state| async move {
        let (mut ending, mut presence) = state?;
        tokio::select! {
            biased;
            value = &mut ending => {
                if let Some(presence) = &mut presence {
                    presence.end();
                }
                let document = value.map(|value| value.to_string().into());
                let stopped = || io::Error::other("the host is shutting down");
                Some((document.ok_or_else(stopped), None))
            }
            () = tokio::time::sleep(HEARTBEAT) => {
                Some((Ok(SIGN_OF_LIFE), Some((ending, presence))))
            }
        }
    })
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
