//! The files of the folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde_json::Value;

use super::host::APP;
use crate::guests;
use crate::workspace::Workspace;

/// The files and folders that are packed from every data folder. A host creates most others again,
/// such as locks and compiled code.
const KEPT: [&str; 6] = [
    "wattle.redb",
    "wattle.redb.made",
    "memory.redb",
    "memory.redb.made",
    "blobs",
    "tenant-routes.json",
];

/// The file extension of compressed files.
const ENDING: &str = ".lz4";

/// The ending of the names of SQLite databases.
const DATABASE: &str = ".db";

/// A folder of the repository with a packed data folder and the expected contents.
#[derive(Clone, Copy, Debug)]
pub struct Folder {
    /// The path below `tests/suite/data`.
    path: &'static str,
    /// Further files and folders that are packed.
    more: &'static [&'static str],
}

/// The folder that a host wrote before types and fields were renamed.
pub const NAMES: Folder = Folder::new("before-names", &["versions"]);

impl Folder {
    /// Creates a folder. `path` is its path below `tests/suite/data`. `more` names further files and
    /// folders of the data folder that are packed.
    pub const fn new(path: &'static str, more: &'static [&'static str]) -> Self {
        Self { path, more }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> PathBuf {
        guests::root().join("tests/suite/data").join(self.path)
    }

    /// Packs a data folder that no host has open. Files that it does not have are left out.
    ///
    /// # Errors
    ///
    /// I/O errors of the file system.
    pub fn pack(&self, data: &Path) -> io::Result<()> {
        let target = self.path().join("data");
        for name in KEPT.iter().chain(self.more) {
            let from = data.join(name);
            if from.exists() {
                pack_below(&from, &target.join(name))?;
            }
        }
        Ok(())
    }

    /// Unpacks the data folder into a test folder.
    ///
    /// # Panics
    ///
    /// If the packed data folder does not exist.
    pub fn unpack(&self, workspace: &Workspace) {
        unpack_below(&self.path().join("data"), "data", workspace);
    }

    /// Returns the files of the data folder that are SQLite databases.
    pub fn databases(&self) -> impl Iterator<Item = &'static str> {
        self.more.iter().copied().filter(|name| name.ends_with(DATABASE))
    }

    /// Compresses a file and writes it beside the data folder.
    ///
    /// # Errors
    ///
    /// I/O errors of the file system.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        write(&self.path().join(name), bytes)
    }

    /// Reads and decompresses a file beside the data folder.
    ///
    /// # Panics
    ///
    /// If the file does not exist.
    pub fn read(&self, name: &str) -> Vec<u8> {
        unpacked(&self.path().join(format!("{name}{ENDING}")))
    }
}

/// Reads the expected contents of [`NAMES`].
///
/// # Panics
///
/// If the folder does not exist.
pub fn manifest() -> Value {
    let text = fs::read(NAMES.path().join("manifest.json")).expect("the manifest");
    serde_json::from_slice(&text).expect("JSON")
}

/// Writes the app into the plugins folder, in the version to which its threads are pinned.
///
/// # Panics
///
/// If the data folder has no version of the app.
pub fn put_kept_app(workspace: &Workspace) {
    let versions = workspace.data().join("versions").join(APP);
    for version in entries(&versions) {
        for file in entries(&version) {
            let name = name_of(&file);
            let bytes = fs::read(&file).expect("a file of the version");
            workspace.write(&format!("plugins/{APP}/{name}"), bytes);
        }
    }
}

fn pack_below(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return write(to, &fs::read(from)?);
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        pack_below(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn write(to: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    let mut path = to.as_os_str().to_owned();
    path.push(ENDING);
    fs::write(path, compress_prepend_size(bytes))
}

fn unpack_below(from: &Path, to: &str, workspace: &Workspace) {
    for path in entries(from) {
        let name = name_of(&path);
        if path.is_dir() {
            unpack_below(&path, &format!("{to}/{name}"), workspace);
        } else {
            let name = name.strip_suffix(ENDING).unwrap_or(&name);
            workspace.write(&format!("{to}/{name}"), unpacked(&path));
        }
    }
}

fn unpacked(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path);
    let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    decompress_size_prepended(&bytes).expect("a compressed file")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry of the folder").path()).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
