//! Implements `blob` in memory.

use crate::blob::{BlobRef, Info};
use crate::failure::Failure;
use crate::testing::state::with;

pub(crate) fn put(bytes: &[u8], media_type: &str) -> Result<BlobRef, Failure> {
    let reference = reference(bytes);
    with(|state| {
        state.blobs.insert(reference.clone(), (media_type.to_owned(), bytes.to_vec()));
    })?;
    Ok(BlobRef(reference))
}

pub(crate) fn get(blob: &BlobRef, offset: u64, length: Option<u64>) -> Result<Vec<u8>, Failure> {
    let (_, bytes) = find(blob)?;
    let length = length.unwrap_or(u64::MAX);
    Ok(bytes.into_iter().skip(offset as usize).take(length as usize).collect())
}

pub(crate) fn stat(blob: &BlobRef) -> Result<Info, Failure> {
    let (media_type, bytes) = find(blob)?;
    Ok(Info { blob: blob.clone(), size: bytes.len() as u64, media_type })
}

/// Returns a path whose signature is not valid.
pub(crate) fn link(blob: &BlobRef) -> Result<String, Failure> {
    find(blob)?;
    Ok(format!("/blobs/~/{}", blob.0.trim_start_matches("blob:")))
}

fn find(blob: &BlobRef) -> Result<(String, Vec<u8>), Failure> {
    with(|state| state.blobs.get(&blob.0).cloned())?
        .ok_or_else(|| Failure::not_found(format!("there is no blob `{}`", blob.0)))
}

/// Returns a string in the format of a blob reference. Its digest is not cryptographic.
fn reference(bytes: &[u8]) -> String {
    let word = |seed: u64| {
        bytes.iter().fold(seed, |word, &byte| {
            (word ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(5)
        })
    };
    let words = [1, 2, 3, 4].map(|seed| format!("{:016x}", word(seed))).concat();
    format!("blob:{words}")
}
