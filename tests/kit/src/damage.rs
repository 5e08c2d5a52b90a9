//! Files that are damaged as a disk damages them.

use std::fs;
use std::io;
use std::path::Path;

/// Bytes of a page of redb.
const PAGE: usize = 4096;

/// Makes zeros of each page of a file of redb that has a text.
///
/// # Errors
///
/// Those of reading and writing the file.
pub fn wipe(path: &Path, text: &str) -> io::Result<()> {
    let (mut bytes, text) = (fs::read(path)?, text.as_bytes());
    for page in bytes.chunks_mut(PAGE) {
        if page.windows(text.len()).any(|window| window == text) {
            page.fill(0);
        }
    }
    fs::write(path, bytes)
}
