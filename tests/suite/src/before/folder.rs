//! The files of the folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde_json::Value;

use super::host::APP;
use crate::guests;
use crate::place::Place;

/// What is taken of a data folder. A host makes the rest again: locks, compiled code, the secret of
/// links, databases of plugins.
const KEPT: [&str; 7] = [
    "wattle.redb",
    "wattle.redb.made",
    "memory.redb",
    "memory.redb.made",
    "blobs",
    "versions",
    "tenant-routes.json",
];

/// The ending of a compressed file.
const ENDING: &str = ".lz4";

/// Where the folder is.
pub fn folder() -> PathBuf {
    guests::root().join("tests/suite/data/before-names")
}

/// What the test must find.
///
/// # Panics
///
/// If the folder is not there.
pub fn manifest() -> Value {
    let text = fs::read(folder().join("manifest.json")).expect("the manifest");
    serde_json::from_slice(&text).expect("JSON")
}

/// A file of the folder as it was before it was compressed.
///
/// # Panics
///
/// If it is not there.
pub fn file(name: &str) -> Vec<u8> {
    unpacked(&folder().join(format!("{name}{ENDING}")))
}

/// Writes the folder: a data folder that no host has open, an exported thread, and the manifest.
///
/// # Errors
///
/// Those of reading and writing files.
pub fn pack(data: &Path, exported: &str, manifest: &Value) -> io::Result<()> {
    let folder = folder();
    for name in KEPT {
        pack_below(&data.join(name), &folder.join("data").join(name))?;
    }
    write(&folder.join("exported.jsonl"), exported.as_bytes())?;
    fs::write(folder.join("manifest.json"), format!("{manifest:#}\n"))
}

/// Puts the data folder into a place.
///
/// # Panics
///
/// If it is not there.
pub fn unpack(place: &Place) {
    unpack_below(&folder().join("data"), "data", place);
}

/// Puts the app, in the version that its threads are pinned to, where a host looks for apps.
///
/// # Panics
///
/// If the data folder of the place has no version of it.
pub fn put_kept_app(place: &Place) {
    let versions = place.data().join("versions").join(APP);
    for version in entries(&versions) {
        for file in entries(&version) {
            let name = name_of(&file);
            let bytes = fs::read(&file).expect("a file of the version");
            place.write(&format!("plugins/{APP}/{name}"), bytes);
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

fn unpack_below(from: &Path, to: &str, place: &Place) {
    for path in entries(from) {
        let name = name_of(&path);
        if path.is_dir() {
            unpack_below(&path, &format!("{to}/{name}"), place);
        } else {
            let name = name.strip_suffix(ENDING).unwrap_or(&name);
            place.write(&format!("{to}/{name}"), unpacked(&path));
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
