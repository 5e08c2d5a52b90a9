//! Files that one operation fills.

use std::path::Path;

use redb::{Builder, Database, DatabaseError};

use crate::file::SHORT_USE_CACHE_BYTES;

/// Creates a file that one operation fills: a backup, or the copy of a damaged file.
pub(crate) fn create_filled_once(path: &Path) -> Result<Database, DatabaseError> {
    let mut builder = Builder::new();
    builder.set_cache_size(SHORT_USE_CACHE_BYTES);
    builder.create(path)
}
