//! The files of the folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde_json::Value;

use super::host::APP;
use crate::guests;
use crate::workspace::Workspace;

/// The part of a data folder that is packed. A host creates the rest again: locks, compiled code,
/// the secret of links, and databases of plugins.
const KEPT: [&str; 7] = [
    "wattle.redb",
    "wattle.redb.made",
    "memory.redb",
    "memory.redb.made",
    "blobs",
    "versions",
    "tenant-routes.json",
];

/// The file extension of compressed files.
const ENDING: &str = ".lz4";

/// Returns the path of the folder.
pub fn folder() -> PathBuf {
    guests::root().join("tests/suite/data/before-names")
}

/// Reads the expected contents.
///
/// # Panics
///
/// If the folder does not exist.
pub fn manifest() -> Value {
    let text = fs::read(folder().join("manifest.json")).expect("the manifest");
    serde_json::from_slice(&text).expect("JSON")
}

/// Reads and decompresses a file of the folder.
///
/// # Panics
///
/// If the file does not exist.
pub fn file(name: &str) -> Vec<u8> {
    unpacked(&folder().join(format!("{name}{ENDING}")))
}

/// Writes the folder from a data folder that no host has open, an exported thread and the manifest.
///
/// # Errors
///
/// I/O errors of the file system.
pub fn pack(data: &Path, exported: &str, manifest: &Value) -> io::Result<()> {
    let folder = folder();
    for name in KEPT {
        pack_below(&data.join(name), &folder.join("data").join(name))?;
    }
    write(&folder.join("exported.jsonl"), exported.as_bytes())?;
    fs::write(folder.join("manifest.json"), format!("{manifest:#}\n"))
}

/// Unpacks the data folder into a test folder.
///
/// # Panics
///
/// If the packed data folder does not exist.
pub fn unpack(workspace: &Workspace) {
    unpack_below(&folder().join("data"), "data", workspace);
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
