//! Server-sent events, with the faults of their transmission.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::{StreamExt as _, stream};

use super::{
    call::Call,
    faults::{StreamQuirks, StreamVariant},
    shared::Shared,
};

/// Size of the frames that split characters and escapes, in bytes.
const SPLIT_BYTES: usize = 3;

/// Delay before the connection breaks, in which the sent data arrives.
const BREAK_PAUSE: Duration = Duration::from_millis(50);

/// An event with its data and, optionally, a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: Option<&'static str>,
    pub(super) data: String,
}

impl Event {
    /// Creates an event without a name.
    pub(super) fn data(data: impl ToString) -> Self {
        Self { name: None, data: data.to_string() }
    }
}

/// Returns a response with these events, each of which waits at the matching gates.
pub(super) fn response(
    shared: &Shared,
    call: &Call,
    mut events: Vec<Event>,
    quirks: &StreamQuirks,
) -> Response {
    let gates = Arc::new(shared.gates.for_stream(call));
    let pause = Duration::from_millis(quirks.pause_ms);
    let is_cut = quirks.is(StreamVariant::Cut);
    if is_cut {
        events.truncate(events.len().div_ceil(2));
    }
    let frame = if quirks.is(StreamVariant::SplitUtf8) { SPLIT_BYTES } else { usize::MAX };
    let texts: Vec<String> = events.iter().map(|event| written(event, quirks)).collect();
    let pieces = stream::iter(texts.into_iter().enumerate()).then(move |(index, text)| {
        let gates = Arc::clone(&gates);
        async move {
            for gate in gates.iter() {
                gate.pass(index + 1).await;
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            text
        }
    });
    let frames = pieces.flat_map(move |text| {
        let bytes = Bytes::from(text);
        let frames: Vec<_> = (0..bytes.len())
            .step_by(frame)
            .map(|from| Ok(bytes.slice(from..bytes.len().min(from.saturating_add(frame)))))
            .collect();
        stream::iter(frames)
    });
    let broken = stream::iter(is_cut.then_some(())).then(|()| async {
        tokio::time::sleep(BREAK_PAUSE).await;
        Err(std::io::Error::other("cut by the test"))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    let body = Body::from_stream(frames.chain(broken));
    (headers, body).into_response()
}

/// Formats an event for the wire.
fn written(event: &Event, quirks: &StreamQuirks) -> String {
    let end = if quirks.crlf { "\r\n" } else { "\n" };
    // DeepSeek sends empty lines and comments while a request waits for capacity.
    let comment =
        if quirks.comments { format!("{end}{end}: keep-alive{end}{end}") } else { String::new() };
    let name = event.name.map(|name| format!("event: {name}{end}")).unwrap_or_default();
    format!("{comment}{name}data: {}{end}{end}", event.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_change_line_ends_and_comments() {
        let event = Event { name: Some("ping"), data: "{}".to_owned() };
        assert_eq!(written(&event, &StreamQuirks::default()), "event: ping\ndata: {}\n\n");
        let odd = StreamQuirks { crlf: true, comments: true, ..StreamQuirks::default() };
        let text = "\r\n\r\n: keep-alive\r\n\r\ndata: x\r\n\r\n";
        assert_eq!(written(&Event::data("x"), &odd), text);
    }
}
