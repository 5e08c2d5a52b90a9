//! Blobs as files: `<dir>/<first two digits>/<64 digits>`, with a `.json` beside each.
//!
//! A file is written under another name, flushed and renamed, so one that has its name is whole.
//! The side record comes first: a blob that is there has one. The time of last modification says
//! when a blob was last put; a sweep goes by it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;
use wattle_run::ports::blob::{BlobInfo, BlobRef, BlobStore};
use wattle_run::ports::store::StoreError;

use crate::blob::{not_found, range};
use crate::error::backend;
use crate::sweep::Sweepable;

/// Folder of files that are being written; what is left there after a crash is deleted.
const UNFINISHED: &str = "tmp";

/// Blobs as files. Clones share the folder; it must belong to one process alone.
#[derive(Clone, Debug)]
pub struct FileBlobs(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    root: PathBuf,
    next_name: AtomicU64,
    /// Held for reading by a put, for writing by a sweep: otherwise a put could find its blob
    /// there just before the sweep deletes it.
    sweeping: RwLock<()>,
}

/// What stands beside a blob.
#[derive(Debug, Serialize, Deserialize)]
struct Side {
    media_type: String,
}

impl FileBlobs {
    /// Opens a folder, or creates it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if the folder cannot be created or written.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let root = dir.as_ref().to_owned();
        let unfinished = root.join(UNFINISHED);
        prepare(&unfinished).map_err(|error| {
            backend("open its blobs", format!("`{}`: {error}", unfinished.display()))
        })?;
        let (next_name, sweeping) = (AtomicU64::new(0), RwLock::new(()));
        Ok(Self(Arc::new(Folder { root, next_name, sweeping })))
    }

    /// The blobs of a folder that another process may have open. Only for reading.
    pub fn reading(dir: impl AsRef<Path>) -> Self {
        let (next_name, sweeping) = (AtomicU64::new(0), RwLock::new(()));
        Self(Arc::new(Folder { root: dir.as_ref().to_owned(), next_name, sweeping }))
    }

    async fn block<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Folder) -> Result<T, Failure> + Send + 'static,
    {
        let folder = self.0.clone();
        let done = spawn_blocking(move || work(&folder)).await;
        done.map_err(|error| Failure::internal(format!("blob store panicked: {error}")))?
    }
}

fn prepare(unfinished: &Path) -> io::Result<()> {
    fs::create_dir_all(unfinished)?;
    for left in fs::read_dir(unfinished)? {
        fs::remove_file(left?.path())?;
    }
    Ok(())
}

impl Folder {
    fn path(&self, blob: BlobRef) -> PathBuf {
        let name = blob.0.to_hex();
        self.root.join(&name[..2]).join(name)
    }

    fn put(&self, bytes: &[u8], media_type: String) -> Result<BlobRef, Failure> {
        let blob = BlobRef(Digest::of(bytes));
        let path = self.path(blob);
        let _guard = self.sweeping.read().unwrap_or_else(PoisonError::into_inner);
        if let Ok(file) = File::options().append(true).open(&path) {
            renew(&file).map_err(|error| failure("keep", blob, &error))?;
            return Ok(blob);
        }
        let side = serde_json::to_vec(&Side { media_type });
        let side = side.map_err(|error| Failure::internal(error.to_string()))?;
        self.write(&path.with_extension("json"), &side)
            .and_then(|()| self.write(&path, bytes))
            .map_err(|error| failure("write", blob, &error))?;
        Ok(blob)
    }

    /// Writes a file so that it is there as a whole or not at all, crash or no crash.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let name = self.next_name.fetch_add(1, Ordering::Relaxed).to_string();
        let unfinished = self.root.join(UNFINISHED).join(name);
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        if let Some(shard) = path.parent() {
            if !shard.exists() {
                fs::create_dir_all(shard)?;
                File::open(&self.root)?.sync_all()?;
            }
            fs::rename(&unfinished, path)?;
            File::open(shard)?.sync_all()?;
        }
        Ok(())
    }

    fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure> {
        let read = || -> io::Result<(File, u64)> {
            let file = File::open(self.path(blob))?;
            let size = file.metadata()?.len();
            Ok((file, size))
        };
        let (mut file, size) = read().map_err(|error| failure("read", blob, &error))?;
        let range = range(blob, size, offset, length)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        file.seek(SeekFrom::Start(range.start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|error| failure("read", blob, &error))?;
        Ok(bytes.into())
    }

    fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        let path = self.path(blob);
        let size = fs::metadata(&path).map_err(|error| failure("read", blob, &error))?.len();
        let side = fs::read(path.with_extension("json"))
            .map_err(|error| failure("read the media type of", blob, &error))?;
        let side: Side = serde_json::from_slice(&side)
            .map_err(|error| failure("read the media type of", blob, &error.into()))?;
        Ok(BlobInfo { blob, size, media_type: side.media_type })
    }

    fn older_than(&self, age: Duration) -> io::Result<Vec<BlobRef>> {
        let mut old = Vec::new();
        for shard in fs::read_dir(&self.root)? {
            let shard = shard?.path();
            if !shard.is_dir() {
                continue;
            }
            for file in fs::read_dir(shard)? {
                let file = file?;
                let name = file.file_name();
                let digest = name.to_str().and_then(|name| name.parse::<Digest>().ok());
                if let Some(digest) = digest
                    && is_older(&file.path(), age)
                {
                    old.push(BlobRef(digest));
                }
            }
        }
        Ok(old)
    }

    fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure> {
        let _guard = self.sweeping.write().unwrap_or_else(PoisonError::into_inner);
        let mut removed = 0;
        for blob in blobs {
            let path = self.path(*blob);
            if is_older(&path, age) {
                fs::remove_file(&path)
                    .and_then(|()| fs::remove_file(path.with_extension("json")))
                    .map_err(|error| failure("delete", *blob, &error))?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

#[expect(clippy::disallowed_methods, reason = "compared with times of files, which no clock fixes")]
fn renew(file: &File) -> io::Result<()> {
    file.set_modified(SystemTime::now())
}

/// A file whose time cannot be told, or lies in the future, counts as young.
fn is_older(path: &Path, age: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|elapsed| elapsed >= age))
}

fn failure(operation: &str, blob: BlobRef, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound && operation == "read" {
        return not_found(blob);
    }
    Failure::internal(format!("cannot {operation} `{blob}`: {error}"))
}

#[async_trait]
impl BlobStore for FileBlobs {
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure> {
        let media_type = media_type.to_owned();
        self.block(move |folder| folder.put(&bytes, media_type)).await
    }

    async fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure> {
        self.block(move |folder| folder.get(blob, offset, length)).await
    }

    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        self.block(move |folder| folder.stat(blob)).await
    }
}

#[async_trait]
impl Sweepable for FileBlobs {
    async fn older_than(&self, age: Duration) -> Result<Vec<BlobRef>, Failure> {
        self.block(move |folder| {
            folder
                .older_than(age)
                .map_err(|error| Failure::internal(format!("cannot list blobs: {error}")))
        })
        .await
    }

    async fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure> {
        let blobs = blobs.to_owned();
        self.block(move |folder| folder.remove_older(&blobs, age)).await
    }
}
