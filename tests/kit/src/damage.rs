//! Damage to files, as by a faulty disk.

use std::fs;
use std::io;
use std::path::Path;

/// Size of a redb page, in bytes.
const PAGE: usize = 4096;

/// Finds the pages of a redb file that contain `text`, and fills these pages with zeros.
///
/// # Errors
///
/// If the file cannot be read or written.
pub fn wipe(path: &Path, text: &str) -> io::Result<()> {
    let (mut bytes, text) = (fs::read(path)?, text.as_bytes());
    for page in bytes.chunks_mut(PAGE) {
        if page.windows(text.len()).any(|window| window == text) {
            page.fill(0);
        }
    }
    fs::write(path, bytes)
}
