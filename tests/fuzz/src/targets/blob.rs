//! Requests for blobs. The first line is a reference to a blob or the part of a link after
//! `/blobs/`. The next lines are the headers `range` and `if-none-match`. The host reads only links
//! that it signed, and a response has exactly the bytes that its headers name.

use std::sync::{Arc, OnceLock};

use axum::body::to_bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use bytes::Bytes;
use wattle_api::blob_response;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::link::LINK_PREFIX;
use wattle_run::ports::{BlobLinks, BlobStore};
use wattle_store::InMemoryBlobs;

use super::lines;

/// Size of the blob, in bytes.
const BLOB_BYTES: usize = 1_000;

/// A store with one blob, and a link to it.
struct World {
    blobs: Arc<dyn BlobStore>,
    links: BlobLinks,
    blob: BlobRef,
    bytes: Bytes,
    /// The part of the link after [`LINK_PREFIX`].
    link: String,
}

/// Requests the blob.
pub fn run(bytes: &[u8]) {
    static WORLD: OnceLock<World> = OnceLock::new();
    let Some((path, headers)) = lines(bytes) else { return };
    let world = WORLD.get_or_init(|| crate::wait(World::new()));
    reference(path);
    assert!(!is_signed(world, path) || path == world.link, "`{path}` was not signed");
    // The input determines which character of the signed link changes, so that many executions
    // cover all of them.
    let mut changed = world.link.clone();
    let place = bytes.iter().fold(7_usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte)) % changed.len()
    });
    let other = if changed.as_bytes()[place] == b'x' { "y" } else { "x" };
    changed.replace_range(place..=place, other);
    assert!(!is_signed(world, &changed), "a change of character {place} is not detected");
    let mut asked = HeaderMap::new();
    for (name, value) in [header::RANGE, header::IF_NONE_MATCH].into_iter().zip(headers.lines()) {
        if let Ok(value) = HeaderValue::from_str(value) {
            asked.insert(name, value);
        }
    }
    crate::wait(respond(world, &asked));
}

fn reference(text: &str) {
    if let Some(blob) = BlobRef::parse(text) {
        assert_eq!(BlobRef::parse(&blob.to_string()), Some(blob));
    }
}

fn is_signed(world: &World, path: &str) -> bool {
    let read = path.split_once('/').and_then(|(tenant, name)| world.links.verify(tenant, name));
    read.is_some()
}

async fn respond(world: &World, asked: &HeaderMap) {
    let answer = blob_response::respond(world.blobs.clone(), world.blob, asked).await;
    let response = match answer {
        Ok(response) => response,
        Err(problem) => {
            assert_eq!(problem.status, StatusCode::RANGE_NOT_SATISFIABLE, "{}", problem.detail);
            return;
        }
    };
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, BLOB_BYTES).await.expect("no response is longer than the blob");
    let named = |name: HeaderName| {
        let value = parts.headers.get(name).expect("the header is set");
        value.to_str().expect("the header is text").to_owned()
    };
    match parts.status {
        StatusCode::NOT_MODIFIED => {
            assert!(body.is_empty());
            return;
        }
        StatusCode::OK => assert_eq!(body, world.bytes),
        StatusCode::PARTIAL_CONTENT => {
            let place = named(header::CONTENT_RANGE);
            let place = place.strip_prefix("bytes ").and_then(|place| place.split_once('/'));
            let (range, size) = place.expect("the range has the form of RFC 9110");
            let (first, last) = range.split_once('-').expect("the range has two ends");
            let number = |text: &str| text.parse::<usize>().expect("it is a number");
            assert_eq!(number(size), BLOB_BYTES);
            assert_eq!(body, world.bytes.slice(number(first)..=number(last)));
        }
        other => panic!("unexpected status {other}"),
    }
    assert_eq!(named(header::CONTENT_LENGTH), body.len().to_string());
}

impl World {
    async fn new() -> Self {
        let bytes: Bytes = (0..BLOB_BYTES).map(|number| (number % 251) as u8).collect();
        let (blobs, links) = (InMemoryBlobs::new(), BlobLinks::new(b"fuzz"));
        let blob = blobs.put(bytes.clone(), "text/plain").await.expect("there is room");
        let path = links.path(None, blob);
        let link = path.strip_prefix(LINK_PREFIX).expect("a link has the prefix").to_owned();
        Self { blobs: Arc::new(blobs), links, blob, bytes, link }
    }
}
