//! Files that one operation fills.

use std::path::Path;

use redb::{Builder, Database, DatabaseError};

/// Size of the page cache of a file that one operation fills, in bytes. The operation reads and
/// writes most pages once. The default of redb is 1 GiB.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Creates a file that one operation fills: a backup, or the copy of a damaged file.
pub(crate) fn create_filled_once(path: &Path) -> Result<Database, DatabaseError> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder.create(path)
}
