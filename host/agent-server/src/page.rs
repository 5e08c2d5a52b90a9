//! Limits on the items and bytes of a response, and on the states that a search reads. A list of
//! threads contains the whole state of each thread.
//!
//! Clients page by offset and ignore hints about further pages. A request whose response would
//! exceed the limit is therefore rejected; the response is not truncated.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use wattle_api::guard::ResponseReservation;
use wattle_api::guard::limits::limit_reached;
use wattle_api::response::write_json;
use wattle_graph::failure::{Failure, code};
use wattle_run::json::approx_bytes;

use crate::error::ApiError;

/// Maximum size in bytes of the items of one response, unless the response has a single item. A
/// response is in memory until it is sent, and many responses are sent at the same time. A page of
/// 100 threads may have about 300 KiB per thread.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Maximum number of states that a search by values reads. Reading them takes a few seconds.
const MAX_SEARCHED_STATES: usize = 10_000;

/// Approximate maximum size in bytes of the states that a search by values reads. A state can be
/// large, and a search reads whole states.
const MAX_SEARCHED_BYTES: u64 = 256 << 20;

/// Returns the number of items of a page: `wanted`, or `default` if the request has no `limit`, and
/// at most `max`.
///
/// # Errors
///
/// 422 for 0. A LangGraph server also rejects 0 in a request body, but returns an empty page for
/// `limit=0` in a query.
pub(crate) fn size(wanted: Option<usize>, default: usize, max: usize) -> Result<usize, ApiError> {
    match wanted {
        Some(0) => Err(ApiError::unprocessable("`limit` must be 1 or more")),
        wanted => Ok(wanted.unwrap_or(default).min(max)),
    }
}

/// A JSON array as the body of a response. The items are serialized one by one, so that only one
/// item at a time also exists in its unserialized form. From the first item on, `lease` counts the
/// bytes of the array.
#[derive(Debug)]
pub(crate) struct Page {
    /// The reservation of the bytes of the response; `None` for a router without guards.
    lease: Option<ResponseReservation>,
    text: Vec<u8>,
    items: usize,
    max_bytes: usize,
}

impl Page {
    /// Creates an empty array.
    pub(crate) fn new(lease: Option<ResponseReservation>) -> Self {
        Self::with_max_bytes(lease, MAX_RESPONSE_BYTES)
    }

    fn with_max_bytes(lease: Option<ResponseReservation>, max_bytes: usize) -> Self {
        Self { lease, text: vec![b'['], items: 0, max_bytes }
    }

    /// Returns the number of items.
    pub(crate) fn len(&self) -> usize {
        self.items
    }

    /// Appends an item to the array.
    ///
    /// # Errors
    ///
    /// 422 if the array would exceed its size limit; 503 if the unread responses of the caller
    /// would exceed the limit of their bytes.
    pub(crate) fn push(&mut self, item: &impl Serialize) -> Result<(), ApiError> {
        if self.items > 0 {
            self.text.push(b',');
        }
        write_json(&mut self.text, item).map_err(|error| {
            Failure::internal(format!("an item of the response cannot be serialized: {error}"))
        })?;
        if self.items > 0 && self.text.len() > self.max_bytes {
            return Err(self.too_large());
        }
        if self.lease.as_ref().is_some_and(|lease| !lease.try_grow_to(self.text.len())) {
            return Err(limit_reached("bytes of responses that were not read").into());
        }
        self.items += 1;
        Ok(())
    }

    fn too_large(&self) -> ApiError {
        let Self { items, max_bytes, .. } = self;
        let text = format!(
            "the response would be larger than {max_bytes} bytes; select the required fields with \
             `select`, or set `limit` to {items} or less"
        );
        ApiError::unprocessable(text)
    }
}

impl IntoResponse for Page {
    fn into_response(mut self) -> Response {
        self.text.push(b']');
        let json = HeaderValue::from_static("application/json");
        ([(header::CONTENT_TYPE, json)], self.text).into_response()
    }
}

/// The number and the approximate size of the states that a search by values has read.
#[derive(Debug, Default)]
pub(crate) struct ReadStates {
    states: usize,
    bytes: u64,
}

impl ReadStates {
    /// Adds 1 to the number of read states, and the size of `values` to their bytes.
    ///
    /// # Errors
    ///
    /// A failure with code `limit` if the search has read more than [`MAX_SEARCHED_STATES`] states
    /// or more than [`MAX_SEARCHED_BYTES`] bytes.
    pub(crate) fn charge(&mut self, values: &Value) -> Result<(), Failure> {
        self.states += 1;
        self.bytes = self.bytes.saturating_add(approx_bytes(values));
        if self.states <= MAX_SEARCHED_STATES && self.bytes <= MAX_SEARCHED_BYTES {
            return Ok(());
        }
        let text = format!(
            "too many threads have to be read to compare their `values`: more than \
             {MAX_SEARCHED_STATES}, or {MAX_SEARCHED_BYTES} bytes of them; narrow the search by \
             `metadata`, `status` or `ids`"
        );
        Err(Failure::new(code::LIMIT, text).with_details(json!({ "limit": "states" })))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn page_is_a_json_array() {
        for (items, expected) in [
            (vec![], json!([])),
            (vec![json!({ "a": 1 })], json!([{ "a": 1 }])),
            (vec![json!(1), json!(null)], json!([1, null])),
        ] {
            let mut page = Page::new(None);
            for item in &items {
                page.push(item).unwrap();
            }
            assert_eq!(page.len(), items.len());
            let body = to_bytes(page.into_response().into_body(), usize::MAX).await.unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
        }
    }

    #[test]
    fn page_has_one_document_of_any_size_or_several_up_to_a_limit() {
        let large = json!("x".repeat(90));
        let mut page = Page::with_max_bytes(None, 100);
        page.push(&large).unwrap();
        let refused = page.push(&large).unwrap_err();
        assert_eq!(refused.status().as_u16(), 422);
        assert!(refused.detail().contains("`limit` to 1 or less"), "{}", refused.detail());
        let mut alone = Page::with_max_bytes(None, 10);
        alone.push(&large).unwrap();
    }

    #[test]
    fn search_reads_a_limited_number_of_states() {
        let mut read = ReadStates::default();
        for _ in 0..MAX_SEARCHED_STATES {
            read.charge(&json!({})).unwrap();
        }
        assert_eq!(read.charge(&json!({})).unwrap_err().code, code::LIMIT);
        let mut read = ReadStates { bytes: MAX_SEARCHED_BYTES - 10, ..ReadStates::default() };
        assert!(read.charge(&json!("0123456789")).is_err());
    }
}
