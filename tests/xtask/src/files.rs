//! File operations whose errors name the file.

use std::fs;
use std::path::Path;

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

/// Copies a file.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display())).map(drop)
}
