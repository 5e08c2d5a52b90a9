//! Content-addressed bytes: in files and in memory.

pub(crate) mod check;
pub mod file;
pub mod memory;

use std::ops::Range;

use wattle_graph::failure::{Failure, code};
use wattle_run::ports::blob::BlobRef;

/// The refusal of a blob that is not there.
pub(crate) fn not_found(blob: BlobRef) -> Failure {
    Failure::new(code::NOT_FOUND, format!("there is no `{blob}`"))
}

/// The bytes that a read of `length` from `offset` means, within a blob of `size`.
pub(crate) fn range(
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
            let wanted = length.map_or("all".to_owned(), |length| format!("{length} bytes"));
            let message = format!("`{blob}` has {size} bytes; {wanted} from {offset} lie outside");
            Err(Failure::new(code::INVALID, message))
        }
    }
}
