//! Responses with a blob: in chunks, with support for one byte range, and with headers that prevent
//! a browser from executing the blob.

use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use wattle_run::ports::BlobStore;
use wattle_run::ports::blob::BlobRef;

use crate::problem::{Problem, api_code};

/// Size of one read from the store, in bytes. It bounds the memory of a response to a slow client.
const CHUNK_BYTES: u64 = 256 << 10;

/// The content of a digest never changes, so a client can cache it for a year. Shared caches must
/// not store it, because only authorized clients may read it.
const CACHE_CONTROL: &str = "private, max-age=31536000, immutable";

/// Responds with a blob or a range of it.
///
/// # Errors
///
/// `not-found` for an unknown blob, `range` for a range outside of the blob, and errors of the
/// store.
pub async fn respond(
    blobs: Arc<dyn BlobStore>,
    blob: BlobRef,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let info = blobs.stat(blob).await?;
    let etag = format!("\"{}\"", blob.0);
    let if_none_match = request.get(header::IF_NONE_MATCH).and_then(|it| it.to_str().ok());
    if if_none_match.is_some_and(|tags| tags == "*" || tags.contains(&etag)) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        insert(response.headers_mut(), header::ETAG, &etag);
        insert(response.headers_mut(), header::CACHE_CONTROL, CACHE_CONTROL);
        return Ok(response);
    }
    let range = request.get(header::RANGE).and_then(|range| range.to_str().ok());
    let part = match range.map(|range| parse_range(range, info.size)) {
        Some(ByteRange::Part(part)) => Some(part),
        Some(ByteRange::Unsatisfiable) => return Err(range_not_satisfiable(info.size)),
        Some(ByteRange::Full) | None => None,
    };
    let full = 0..info.size;
    let sent = part.clone().unwrap_or(full);
    let mut response = body(blobs, blob, sent.clone()).into_response();
    if let Some(part) = part {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let content_range = format!("bytes {}-{}/{}", part.start, part.end - 1, info.size);
        insert(response.headers_mut(), header::CONTENT_RANGE, &content_range);
    }
    let headers = response.headers_mut();
    insert(headers, header::CONTENT_TYPE, &info.media_type);
    insert(headers, header::CONTENT_LENGTH, &(sent.end - sent.start).to_string());
    insert(headers, header::ETAG, &etag);
    insert(headers, header::ACCEPT_RANGES, "bytes");
    insert(headers, header::CACHE_CONTROL, CACHE_CONTROL);
    set_untrusted_content_headers(headers);
    Ok(response)
}

/// Sets headers for untrusted content: a browser must neither guess the content type nor execute
/// the content as a page of this origin.
fn set_untrusted_content_headers(headers: &mut HeaderMap) {
    insert(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    insert(headers, header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'");
}

fn insert(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn body(blobs: Arc<dyn BlobStore>, blob: BlobRef, range: Range<u64>) -> Body {
    let chunks = stream::try_unfold(range.start, move |at| {
        let (blobs, end) = (blobs.clone(), range.end);
        async move {
            if at >= end {
                return Ok::<_, wattle_graph::failure::Failure>(None);
            }
            let length = CHUNK_BYTES.min(end - at);
            let chunk = blobs.get(blob, at, Some(length)).await?;
            Ok(Some((chunk, at + length)))
        }
    });
    Body::from_stream(chunks)
}

#[derive(Debug, PartialEq)]
enum ByteRange {
    Part(Range<u64>),
    /// A valid range that lies outside of the blob.
    Unsatisfiable,
    /// The full blob. An invalid range header is ignored, as RFC 9110 requires.
    Full,
}

fn parse_range(header: &str, size: u64) -> ByteRange {
    let Some((first, last)) =
        header.trim().strip_prefix("bytes=").and_then(|it| it.split_once('-'))
    else {
        return ByteRange::Full;
    };
    let (first, last) = (first.trim(), last.trim());
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Ok(first), Err(_)) if last.is_empty() => first..size,
        (Err(_), Ok(suffix)) if first.is_empty() => size.saturating_sub(suffix)..size,
        _ => return ByteRange::Full,
    };
    if range.is_empty() { ByteRange::Unsatisfiable } else { ByteRange::Part(range) }
}

fn range_not_satisfiable(size: u64) -> Problem {
    Problem::new(api_code::RANGE, format!("the range lies outside of the {size} bytes of the blob"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_ranges_follow_rfc_9110() {
        assert_eq!(parse_range("bytes=0-9", 100), ByteRange::Part(0..10));
        assert_eq!(parse_range("bytes=90-", 100), ByteRange::Part(90..100));
        assert_eq!(parse_range("bytes=-5", 100), ByteRange::Part(95..100));
        assert_eq!(parse_range("bytes=-500", 100), ByteRange::Part(0..100));
        assert_eq!(parse_range("bytes=50-500", 100), ByteRange::Part(50..100));
        assert_eq!(parse_range("bytes=100-", 100), ByteRange::Unsatisfiable);
        assert_eq!(parse_range("bytes=-0", 100), ByteRange::Unsatisfiable);
        for invalid in ["bytes=9-1", "bytes=a-b", "items=0-1", "bytes=0-1,3-4", "bytes=-"] {
            assert_eq!(parse_range(invalid, 100), ByteRange::Full, "{invalid}");
        }
        assert_eq!(parse_range("bytes=0-18446744073709551615", 5), ByteRange::Part(0..5));
    }
}
