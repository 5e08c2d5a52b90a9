//! Replaces blob references in projected files. A guest stores a value that is too large for an
//! event as a blob, and emits `{"$blob": reference}` instead.

use serde_json::Value;
use wattle_run::ports::BlobStore;
use wattle_run::ports::blob::BlobRef;

/// The only key of a blob reference.
const KEY: &str = "$blob";

/// Maximum size of an inlined blob in bytes. A larger blob remains a reference.
const VALUE_BYTES: u64 = 16 << 20;

/// Replaces blob references with the JSON of the blob. A reference whose blob cannot be read is
/// kept.
pub(super) async fn fill(blobs: &dyn BlobStore, content: &mut Value) {
    for (_, field) in content.as_object_mut().into_iter().flatten() {
        let Some(blob) = reference(field) else { continue };
        if let Some(value) = read(blobs, blob).await {
            *field = value;
        }
    }
}

fn reference(field: &Value) -> Option<BlobRef> {
    let fields = field.as_object().filter(|fields| fields.len() == 1)?;
    BlobRef::parse(fields.get(KEY)?.as_str()?)
}

async fn read(blobs: &dyn BlobStore, blob: BlobRef) -> Option<Value> {
    let info = blobs.stat(blob).await.ok()?;
    if info.size > VALUE_BYTES {
        return None;
    }
    let bytes = blobs.get(blob, 0, None).await.ok()?;
    serde_json::from_slice(&bytes).ok()
}
