//! Calls of `blob`.

use crate::bindings::imports::wattle::plugin::blob as raw;
use crate::blob::{BlobRef, Info};
use crate::failure::Failure;

pub(crate) fn put(bytes: &[u8], media_type: &str) -> Result<BlobRef, Failure> {
    Ok(BlobRef(raw::put(bytes, media_type)?))
}

pub(crate) fn get(blob: &BlobRef, offset: u64, length: Option<u64>) -> Result<Vec<u8>, Failure> {
    Ok(raw::get(&blob.0, offset, length)?)
}

pub(crate) fn link(blob: &BlobRef) -> Result<String, Failure> {
    Ok(raw::link(&blob.0)?)
}

pub(crate) fn stat(blob: &BlobRef) -> Result<Info, Failure> {
    let info = raw::stat(&blob.0)?;
    Ok(Info { blob: BlobRef(info.blob), size: info.size, media_type: info.media_type })
}
