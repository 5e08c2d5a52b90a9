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

/// Changes the first byte of each occurrence of `text` in a file.
///
/// # Errors
///
/// If the file cannot be read or written, or does not contain `text`.
pub fn change(path: &Path, text: &str) -> io::Result<()> {
    let (mut bytes, text) = (fs::read(path)?, text.as_bytes());
    let found = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
    let offsets: Vec<usize> = found.map(|(offset, _)| offset).collect();
    if offsets.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the file does not contain the text"));
    }
    for offset in offsets {
        bytes[offset] ^= 1;
    }
    fs::write(path, bytes)
}
