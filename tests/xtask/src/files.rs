//! File operations whose errors name the file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Returns true if both files exist and are equal.
pub(crate) fn same(left: &Path, right: &Path) -> bool {
    fs::read(left).is_ok_and(|left| fs::read(right).is_ok_and(|right| left == right))
}

/// Creates a folder and its parents.
pub(crate) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Reads a text file.
pub(crate) fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Returns the files below a folder, sorted by name, or the path itself if it is a file. Leaves out
/// what tools write beside sources.
pub(crate) fn below(path: &Path) -> Result<Vec<PathBuf>> {
    const WRITTEN: [&str; 3] = ["__pycache__", "dist", "node_modules"];
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = || format!("cannot read {}", path.display());
    let entries = fs::read_dir(path).with_context(unreadable)?.map(|entry| Ok(entry?.path()));
    let mut entries: Vec<PathBuf> = entries.collect::<Result<_>>().with_context(unreadable)?;
    entries.retain(|entry| !WRITTEN.iter().any(|name| entry.ends_with(name)));
    entries.sort();
    let files = entries.iter().map(|entry| below(entry));
    Ok(files.collect::<Result<Vec<_>>>()?.concat())
}

/// Copies a file.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display())).map(drop)
}
