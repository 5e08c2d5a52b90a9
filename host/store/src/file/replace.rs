//! A new file in the place of a damaged one, which stays beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::file::mark::{beside, sync_folder};

/// A name beside a file that no file has.
pub(crate) fn free_name(path: &Path) -> PathBuf {
    let mut names = (1_u32..).map(|number| beside(path, &format!("damaged-{number}")));
    names.find(|name| !name.exists()).unwrap_or_else(|| beside(path, "damaged"))
}

/// Gives a file another name, and a new file its own.
pub(crate) fn replace(path: &Path, new: &Path, aside: &Path) -> io::Result<()> {
    // With a second name for the damaged file there is no moment without a file.
    fs::hard_link(path, aside).or_else(|_| fs::rename(path, aside))?;
    fs::rename(new, path)?;
    sync_folder(path)
}
