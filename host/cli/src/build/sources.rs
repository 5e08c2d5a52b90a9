//! The source files of a build.

use std::fs::Metadata;
use std::path::Path;

use crate::load::watcher::is_ignored;

/// Folder for compiled modules, which Python creates beside sources.
const PYTHON_CACHE: &str = "__pycache__";

/// File in folders of generated files, such as the target folder of cargo.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Calls a function for a file, or for all files below a folder except hidden and generated ones.
/// Symbolic links are passed to the function and not followed, because they can form a cycle.
pub(crate) fn visit(path: &Path, seen: &mut impl FnMut(&Path, &Metadata)) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    if !metadata.is_dir() {
        seen(path, &metadata);
        return;
    }
    // A folder that cannot be read has no sources.
    for entry in path.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let path = entry.path();
        if !is_ignored(&name) && name != PYTHON_CACHE && !path.join(CACHE_TAG).is_file() {
            visit(&path, seen);
        }
    }
}
