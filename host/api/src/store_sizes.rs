//! Measures the store: threads by app and tenant, and the files of the data folder.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use wattle_graph::failure::Failure;
use wattle_run::ports::Ports;

use crate::document::store_sizes::{FileSizeDocument, StoreSizesDocument};

/// Time in milliseconds for which a measurement is repeated in responses. A measurement reads the
/// records of all threads, and sizes change slowly.
const SIZES_AGE_MS: i64 = 60_000;

/// Maximum number of files and folders that a measurement visits, so that it ends soon even if the
/// data folder has millions of blobs.
const MEASURED_FILES: usize = 200_000;

/// Measures the store of a host, at most once a minute.
#[derive(Debug, Default)]
pub(crate) struct StoreSizes {
    data_folder: Option<PathBuf>,
    /// The newest measurement. The lock is held during a measurement, so that concurrent requests
    /// share one.
    newest: Mutex<Option<StoreSizesDocument>>,
}

impl StoreSizes {
    /// Measures the files of a data folder, too.
    pub(crate) fn with_folder(data_folder: PathBuf) -> Self {
        Self { data_folder: Some(data_folder), ..Self::default() }
    }

    /// Returns a measurement that is at most a minute old.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn read(&self, ports: &Ports) -> Result<StoreSizesDocument, Failure> {
        let mut newest = self.newest.lock().await;
        let now_ms = ports.clock.now_ms();
        let is_recent = |known: &&StoreSizesDocument| {
            (0..SIZES_AGE_MS).contains(&now_ms.saturating_sub(known.measured_ms))
        };
        if let Some(known) = newest.as_ref().filter(is_recent) {
            return Ok(known.clone());
        }
        let usage = ports.store.total_usage().await?;
        let Folder { files, is_complete } = self.measure_folder().await;
        let sizes = StoreSizesDocument::new(now_ms, &usage, files, is_complete);
        *newest = Some(sizes.clone());
        Ok(sizes)
    }

    /// Measures the data folder. A folder that cannot be read is logged and left out.
    async fn measure_folder(&self) -> Folder {
        let Some(folder) = self.data_folder.clone() else {
            return Folder { files: Vec::new(), is_complete: true };
        };
        let measured = spawn_blocking(move || measure(&folder, MEASURED_FILES)).await;
        let measured = measured.map_err(io::Error::other).flatten();
        measured.unwrap_or_else(|error| {
            tracing::warn!(%error, "the data folder cannot be measured");
            Folder { files: Vec::new(), is_complete: false }
        })
    }
}

/// The files and folders directly in a folder.
#[derive(Debug)]
struct Folder {
    files: Vec<FileSizeDocument>,
    /// False if some files are not measured.
    is_complete: bool,
}

/// Measures the files and folders directly in a folder, with at most `limit` files and folders
/// below it. Does not follow links.
fn measure(folder: &Path, limit: usize) -> io::Result<Folder> {
    let mut left = limit;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut file = FileSizeDocument { name, ..FileSizeDocument::default() };
        add_all(&entry, &mut file, &mut left);
        files.push(file);
        if left == 0 {
            break;
        }
    }
    Ok(Folder { files, is_complete: left > 0 })
}

/// Adds a file, or all files of a folder.
fn add_all(entry: &DirEntry, file: &mut FileSizeDocument, left: &mut usize) {
    let mut folders = Vec::new();
    add_entry(entry, file, &mut folders, left);
    file.is_folder = !folders.is_empty();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if *left == 0 {
                return;
            }
            add_entry(&entry, file, &mut folders, left);
        }
    }
}

/// Adds a file, or puts a folder on the list of folders to read. A file that is deleted meanwhile
/// is left out.
fn add_entry(
    entry: &DirEntry,
    file: &mut FileSizeDocument,
    folders: &mut Vec<PathBuf>,
    left: &mut usize,
) {
    *left = left.saturating_sub(1);
    match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
        Ok(metadata) => {
            file.files += 1;
            file.bytes = file.bytes.saturating_add(metadata.len());
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a folder with a file of 3 bytes, and a folder with files of 4 and 5 bytes.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("wattle-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("blobs/ab")).unwrap();
        for (file, bytes) in [("store", 3), ("blobs/one", 4), ("blobs/ab/two", 5)] {
            fs::write(folder.join(file), vec![0; bytes]).unwrap();
        }
        folder
    }

    #[test]
    fn folders_count_all_files_below() {
        let folder = folder("sizes");
        let Folder { mut files, is_complete } = measure(&folder, 100).unwrap();
        files.sort_by_key(|file| file.bytes);
        let file = |name: &str, is_folder, files, bytes| FileSizeDocument {
            name: name.to_owned(),
            is_folder,
            files,
            bytes,
        };
        assert_eq!(files, [file("store", false, 1, 3), file("blobs", true, 2, 9)]);
        assert!(is_complete);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn number_of_files_is_bounded() {
        let folder = folder("sizes-bounded");
        let measured = measure(&folder, 2).unwrap();
        let counted: u64 = measured.files.iter().map(|file| file.files).sum();
        assert!(!measured.is_complete && counted <= 2, "{measured:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
