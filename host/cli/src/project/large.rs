//! Values that were too large for an event: the guest stored them and left `{"$blob": reference}`
//! in their place; a file gets them back.

use serde_json::Value;
use wattle_run::ports::BlobStore;
use wattle_run::ports::blob::BlobRef;

/// The only key of what stands for a large value.
const KEY: &str = "$blob";

/// Largest value that is put into a file; a larger one stays a reference.
const VALUE_BYTES: u64 = 16 << 20;

/// Puts the JSON of blobs in the place of fields that refer to them. One that cannot be read stays
/// as it is: the file then says at least what it would hold.
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
