//! Content of projected files, with the JSON of blobs in place of references to them. A guest
//! stores a value that is too large for an event as a blob, and emits `{"$blob": reference}`
//! instead.

use std::collections::HashMap;
use std::io::{self, Write};

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use wattle_run::ports::BlobStore;
use wattle_run::ports::blob::BlobRef;

use crate::file_projection::pretty::PrettyWriter;

/// The only key of a blob reference.
const REFERENCE_KEY: &str = "$blob";

/// Maximum size of all inlined blobs of a file, in bytes. The blobs are in memory while the file is
/// written. A blob that does not fit remains a reference.
const MAX_INLINED_BYTES: u64 = 16 << 20;

/// The content of a file.
pub(super) struct FileContent {
    value: Value,
    /// JSON texts of blobs, by the field that refers to the blob.
    inlined: HashMap<String, Bytes>,
}

impl FileContent {
    /// Reads the blobs to which fields of `value` refer. A reference whose blob cannot be read, or
    /// is not JSON, is kept.
    pub(super) async fn read(blobs: &dyn BlobStore, value: Value) -> Self {
        let (mut inlined, mut remaining) = (HashMap::new(), MAX_INLINED_BYTES);
        for (name, field) in value.as_object().into_iter().flatten() {
            let Some(blob) = reference(field) else { continue };
            if let Some(text) = read(blobs, blob, remaining).await {
                remaining = remaining.saturating_sub(text.len() as u64);
                inlined.insert(name.clone(), text);
            }
        }
        Self { value, inlined }
    }

    /// Writes the content as indented JSON with a line break at its end.
    pub(super) fn write_to(&self, out: impl Write) -> io::Result<()> {
        let mut out = PrettyWriter::new(out);
        match &self.value {
            Value::Object(fields) => self.write_fields(fields, &mut out)?,
            other => serde_json::to_writer(&mut out, other)?,
        }
        out.finish()
    }

    fn write_fields(&self, fields: &Map<String, Value>, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{")?;
        for (place, (name, field)) in fields.iter().enumerate() {
            if place > 0 {
                out.write_all(b",")?;
            }
            serde_json::to_writer(&mut *out, name)?;
            out.write_all(b":")?;
            match self.inlined.get(name) {
                Some(text) => out.write_all(text)?,
                None => serde_json::to_writer(&mut *out, field)?,
            }
        }
        out.write_all(b"}")
    }
}

impl From<Value> for FileContent {
    fn from(value: Value) -> Self {
        Self { value, inlined: HashMap::new() }
    }
}

fn reference(field: &Value) -> Option<BlobRef> {
    let fields = field.as_object().filter(|fields| fields.len() == 1)?;
    BlobRef::parse(fields.get(REFERENCE_KEY)?.as_str()?)
}

/// Returns the text of a blob, if it is a JSON document of at most `limit` bytes.
async fn read(blobs: &dyn BlobStore, blob: BlobRef, limit: u64) -> Option<Bytes> {
    let info = blobs.stat(blob).await.ok()?;
    if info.size > limit {
        return None;
    }
    let bytes = blobs.get(blob, 0, None).await.ok()?;
    let check = move || is_json(&bytes).then_some(bytes);
    tokio::task::spawn_blocking(check).await.ok()?
}

fn is_json(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).ok();
    text.is_some_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_store::InMemoryBlobs;

    use super::*;

    async fn put(blobs: &InMemoryBlobs, bytes: impl Into<Bytes>) -> Value {
        let blob = blobs.put(bytes.into(), "application/json").await.unwrap();
        json!({ REFERENCE_KEY: blob.to_string() })
    }

    async fn text(blobs: &InMemoryBlobs, value: Value) -> String {
        let mut out = Vec::new();
        FileContent::read(blobs, value).await.write_to(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn pretty(value: &Value) -> String {
        format!("{}\n", serde_json::to_string_pretty(value).unwrap())
    }

    #[tokio::test]
    async fn a_reference_becomes_the_json_of_its_blob() {
        let blobs = InMemoryBlobs::new();
        let large = put(&blobs, r#"{"a":[1,{"b":null}]}"#).await;
        let content = json!({ "first": large, "second": 2, "third": { "inner": large } });
        let wanted =
            json!({ "first": { "a": [1, { "b": null }] }, "second": 2, "third": content["third"] });
        assert_eq!(text(&blobs, content).await, pretty(&wanted));
        assert_eq!(text(&blobs, json!([1])).await, pretty(&json!([1])));
    }

    #[tokio::test]
    async fn a_reference_to_a_blob_that_is_not_json_is_kept() {
        let blobs = InMemoryBlobs::new();
        for bytes in [&b"{\"a\":"[..], b"\"\xff\"", b"1 2"] {
            let content = json!({ "blob": put(&blobs, bytes).await });
            assert_eq!(text(&blobs, content.clone()).await, pretty(&content));
        }
    }

    #[tokio::test]
    async fn the_blobs_of_a_file_are_inlined_up_to_a_limit() {
        let blobs = InMemoryBlobs::new();
        let part = format!("\"{}\"", "x".repeat(6 << 20));
        let large = put(&blobs, part).await;
        let content = json!({ "a": large, "b": large, "c": large });
        let written: Value = serde_json::from_str(&text(&blobs, content).await).unwrap();
        assert!(written["a"].is_string() && written["b"].is_string());
        assert_eq!(written["c"], large);
    }
}
