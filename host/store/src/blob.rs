//! Content-addressed bytes: in files and in memory.

pub(crate) mod check;
pub mod file;
pub mod in_memory;

use std::ops::Range;

use wattle_graph::failure::{Failure, code};
use wattle_run::ports::blob::BlobRef;

/// Builds the failure for a blob that does not exist.
pub(crate) fn not_found(blob: BlobRef) -> Failure {
    Failure::new(code::NOT_FOUND, format!("there is no `{blob}`"))
}

/// Returns the byte range of a read of `length` bytes from `offset`, or of all bytes from `offset`
/// without a length, in a blob of `size` bytes.
pub(crate) fn resolve_range(
    blob: BlobRef,
    size: u64,
    offset: u64,
    length: Option<u64>,
) -> Result<Range<u64>, Failure> {
    let end = match length {
        Some(length) => offset.checked_add(length),
        None => Some(size.max(offset)),
    };
    match end {
        Some(end) if end <= size => Ok(offset..end),
        _ => {
            let requested = length.map_or("all".to_owned(), |length| format!("{length} bytes"));
            let message = format!(
                "`{blob}` has {size} bytes; a read of {requested} from {offset} is out of range"
            );
            Err(Failure::new(code::INVALID, message))
        }
    }
}
