//! What one answer may hold, and what may be read for it: lists come with whole states.
//!
//! Clients go through a list by its offset and do not look at where a shorter page says that it goes
//! on. So an answer that would be too large is refused and never cut.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::json::weight;

use crate::fault::Fault;

/// Bytes of the documents of one answer, unless it is one document. They lie in memory until they
/// are sent, and many answers are sent at once; a page of a hundred threads has some 300 KiB for
/// each.
const ANSWER_BYTES: usize = 32 << 20;

/// States that are read for one answer to find those with certain values: some seconds of work.
const STATES: usize = 10_000;

/// Bytes of these states, about: states may be large, and each is read whole.
const STATES_BYTES: u64 = 256 << 20;

/// A list of documents as it is sent. They are written down one by one, so that never more than one
/// lies in memory in its large form.
#[derive(Debug)]
pub(crate) struct Page {
    text: Vec<u8>,
    documents: usize,
    most_bytes: usize,
}

impl Page {
    /// Without any document.
    pub(crate) fn new() -> Self {
        Self::of(ANSWER_BYTES)
    }

    fn of(most_bytes: usize) -> Self {
        Self { text: vec![b'['], documents: 0, most_bytes }
    }

    /// How many documents it has.
    pub(crate) fn len(&self) -> usize {
        self.documents
    }

    /// Adds a document.
    ///
    /// # Errors
    ///
    /// 422 if it is too much with those before it.
    pub(crate) fn push(&mut self, document: &impl Serialize) -> Result<(), Fault> {
        if self.documents > 0 {
            self.text.push(b',');
        }
        serde_json::to_writer(&mut self.text, document).map_err(|error| {
            Failure::internal(format!("a document of the answer cannot be written: {error}"))
        })?;
        if self.documents > 0 && self.text.len() > self.most_bytes {
            return Err(self.too_large());
        }
        self.documents += 1;
        Ok(())
    }

    fn too_large(&self) -> Fault {
        let Self { documents, most_bytes, .. } = self;
        let text = format!(
            "the answer would be larger than {most_bytes} bytes; name the fields you need with \
             `select`, or set `limit` to {documents} or less"
        );
        Fault::unprocessable(text)
    }
}

impl IntoResponse for Page {
    fn into_response(mut self) -> Response {
        self.text.push(b']');
        let json = HeaderValue::from_static("application/json");
        ([(header::CONTENT_TYPE, json)], self.text).into_response()
    }
}

/// What is read to find threads by their values.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    states: usize,
    bytes: u64,
}

impl Looks {
    /// Counts the values of a state that was read.
    ///
    /// # Errors
    ///
    /// 422 if it is one too many.
    pub(crate) fn count(&mut self, values: &Value) -> Result<(), Failure> {
        self.states += 1;
        self.bytes = self.bytes.saturating_add(weight(values));
        if self.states <= STATES && self.bytes <= STATES_BYTES {
            return Ok(());
        }
        let text = format!(
            "too many threads have to be read to compare their `values`: more than {STATES}, or \
             {STATES_BYTES} bytes of them; say more of them with `metadata`, `status` or `ids`"
        );
        Err(Failure::new(code::LIMIT, text).with_details(json!({ "limit": "states" })))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn a_page_is_a_list() {
        for (documents, expected) in [
            (vec![], json!([])),
            (vec![json!({ "a": 1 })], json!([{ "a": 1 }])),
            (vec![json!(1), json!(null)], json!([1, null])),
        ] {
            let mut page = Page::new();
            for document in &documents {
                page.push(document).unwrap();
            }
            assert_eq!(page.len(), documents.len());
            let body = to_bytes(page.into_response().into_body(), usize::MAX).await.unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
        }
    }

    #[test]
    fn a_page_holds_one_document_of_any_size_and_several_up_to_a_limit() {
        let large = json!("x".repeat(90));
        let mut page = Page::of(100);
        page.push(&large).unwrap();
        let refused = page.push(&large).unwrap_err();
        assert_eq!(refused.status().as_u16(), 422);
        assert!(refused.detail().contains("`limit` to 1 or less"), "{}", refused.detail());
        let mut alone = Page::of(10);
        alone.push(&large).unwrap();
    }

    #[test]
    fn so_many_states_are_read() {
        let mut looks = Looks::default();
        for _ in 0..STATES {
            looks.count(&json!({})).unwrap();
        }
        assert_eq!(looks.count(&json!({})).unwrap_err().code, code::LIMIT);
        let mut looks = Looks { bytes: STATES_BYTES - 10, ..Looks::default() };
        assert!(looks.count(&json!("0123456789")).is_err());
    }
}
