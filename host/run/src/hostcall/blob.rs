//! Blobs: large bytes outside of the state.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;

use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::limit;
use crate::ports::Caller;
use crate::ports::blob::{BlobInfo, BlobRef};

/// Stores bytes. The journal holds only their digest.
#[derive(Clone, Debug)]
pub struct PutBlob {
    /// The bytes.
    pub bytes: Bytes,
    /// Media type, such as `image/png`.
    pub media_type: String,
}

impl Serialize for PutBlob {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (BlobRef(Digest::of(&self.bytes)), self.bytes.len(), &self.media_type).serialize(serializer)
    }
}

impl HostCall for PutBlob {
    type Output = BlobRef;
    const FUNCTION: &'static str = "blob.put";

    fn summary(&self) -> String {
        format!("{}, {} bytes", self.media_type, self.bytes.len())
    }

    fn blob_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn check_allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        if self.bytes.len() as u64 <= limit::BLOB_BYTES {
            return Ok(());
        }
        Err(Failure::new(
            code::LIMIT,
            format!(
                "a blob of {} bytes is larger than the limit of {} bytes",
                self.bytes.len(),
                limit::BLOB_BYTES
            ),
        ))
    }
}

/// Returns the number of bytes that a read of `length` bytes from `offset` returns; without
/// `length`, of a read of all bytes from `offset` on. Does not check the range, which the blob
/// store does.
///
/// # Errors
///
/// `limit` if one read cannot return this number of bytes.
pub(crate) fn bytes_of_read(
    info: &BlobInfo,
    offset: u64,
    length: Option<u64>,
) -> Result<u64, Failure> {
    let rest = info.size.saturating_sub(offset);
    let bytes = length.map_or(rest, |length| length.min(rest));
    let allowed = limit::BLOB_READ_BYTES;
    if bytes <= allowed {
        return Ok(bytes);
    }
    let text = format!(
        "a read of {bytes} bytes of `{}` is larger than the limit of {allowed} bytes; read it in \
         ranges, with `offset` and `length`",
        info.blob
    );
    let details = json!({ "limit": "blob_read_bytes", "allowed": allowed });
    Err(Failure::new(code::LIMIT, text).with_details(details))
}

/// Returns size and media type of a blob.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatBlob {
    /// The blob.
    pub blob: BlobRef,
}

impl HostCall for StatBlob {
    type Output = BlobInfo;
    const FUNCTION: &'static str = "blob.stat";

    fn summary(&self) -> String {
        self.blob.to_string()
    }

    fn check_allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }
}
