//! The table of the studio's files in the binary.
//!
//! A release build embeds the built files. A debug build embeds the path of the folder of the built
//! files, and reads the files at run time. Otherwise each change of the studio would recompile the
//! binary and each test that links it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

/// The folder of the built files, below the folder of the studio.
pub(crate) const BUILT: &str = "dist";

/// Returns the code of the table. `studio` is the folder of the studio.
pub(crate) fn code(studio: &Path, embeds: bool) -> Result<String> {
    let mut files = BTreeMap::new();
    let folder = if embeds {
        add("", &studio.join(BUILT), &mut files)?;
        None
    } else {
        Some(studio.to_string_lossy())
    };
    let mut code = format!("const FOLDER: Option<&str> = {folder:?};\n");
    code.push_str("static FILES: &[(&str, &[u8])] = &[\n");
    for (name, file) in files {
        let file = file.to_string_lossy();
        writeln!(code, "    ({name:?}, include_bytes!({file:?})),").map_err(Error::other)?;
    }
    code.push_str("];\n");
    Ok(code)
}

/// Adds the files of a folder by their names, which begin with `prefix`. A missing folder has no
/// files, since the studio may not be built.
fn add(prefix: &str, folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path().canonicalize()?, entry.file_name());
        let invalid = || Error::other(format!("the name of {} is no UTF-8", path.display()));
        let name = format!("{prefix}{}", name.to_str().ok_or_else(invalid)?);
        if path.is_dir() {
            add(&format!("{name}/"), &path, files)?;
        } else {
            files.insert(name, path);
        }
    }
    Ok(())
}
