//! Replacement of a damaged file, which is kept under another name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::file::marker::{sync_folder, with_suffix};

/// Returns an unused name for a damaged file.
pub(crate) fn unused_name(path: &Path) -> PathBuf {
    let mut names = (1_u32..).map(|number| with_suffix(path, &format!("damaged-{number}")));
    names.find(|name| !name.exists()).unwrap_or_else(|| with_suffix(path, "damaged"))
}

/// Moves a file to `aside` and a new file to its path.
pub(crate) fn replace(path: &Path, new: &Path, aside: &Path) -> io::Result<()> {
    // A hard link leaves the damaged file at `path` until the rename replaces it, so `path` always
    // exists.
    fs::hard_link(path, aside).or_else(|_| fs::rename(path, aside))?;
    fs::rename(new, path)?;
    sync_folder(path)
}
