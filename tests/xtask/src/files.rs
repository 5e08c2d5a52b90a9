//! Files: compared, made, copied and read, with errors that name them.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Whether both files are there and equal.
pub(crate) fn same(left: &Path, right: &Path) -> bool {
    fs::read(left).is_ok_and(|left| fs::read(right).is_ok_and(|right| left == right))
}

/// Makes a folder and those around it.
pub(crate) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Reads a text.
pub(crate) fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Copies a file.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display())).map(drop)
}
