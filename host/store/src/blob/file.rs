//! Blobs as files: `<dir>/<first two digits>/<64 digits>`, each with a `.json` sidecar file.
//!
//! A file is written under a temporary name, flushed and renamed, so a file with its final name is
//! complete. The sidecar file is written before the file of the bytes, so every blob has a sidecar
//! file. The modification time of a blob is the time of its last put, which a sweep compares with
//! the grace period.
//!
//! The name of a file is the digest of its bytes, and every read compares the bytes with the
//! digest. A read of a file with other bytes fails. A put of the original bytes writes the file
//! again.

use std::collections::HashMap;
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
use wattle_run::ports::store::{Damage, StoreError};

use crate::blob::check::{VerifiedFiles, damaged_failure};
use crate::blob::{not_found, resolve_range};
use crate::error::backend;
use crate::folders::BLOBS_FOLDER;
use crate::sweep::Sweepable;

/// Folder of files that are being written. [`FileBlobs::open`] deletes the files that a crash left
/// there.
const TMP_DIR: &str = "tmp";

/// Blobs as files. Clones share the folder, which must belong to one process alone.
#[derive(Clone, Debug)]
pub struct FileBlobs(Arc<BlobDir>);

#[derive(Debug)]
struct BlobDir {
    root: PathBuf,
    next_name: AtomicU64,
    /// A put takes this lock for reading, a sweep for writing. Without the lock, a put could find
    /// that its blob exists just before the sweep deletes it.
    sweep_lock: RwLock<()>,
    verified: VerifiedFiles,
}

/// The content of a sidecar file.
#[derive(Debug, Serialize, Deserialize)]
struct Sidecar {
    media_type: String,
}

impl FileBlobs {
    /// Opens a folder, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if the folder cannot be created or written.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let root = dir.as_ref().to_owned();
        let tmp = root.join(TMP_DIR);
        clear_tmp_dir(&tmp)
            .map_err(|error| backend("open its blobs", format!("`{}`: {error}", tmp.display())))?;
        Ok(Self(Arc::new(BlobDir::new(root))))
    }

    /// Opens the blobs of a folder for reading only. Another process may have the folder open.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Self {
        Self(Arc::new(BlobDir::new(dir.as_ref().to_owned())))
    }

    async fn run_blocking<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&BlobDir) -> Result<T, Failure> + Send + 'static,
    {
        let folder = self.0.clone();
        let done = spawn_blocking(move || work(&folder)).await;
        done.map_err(|error| Failure::internal(format!("blob store panicked: {error}")))?
    }
}

fn clear_tmp_dir(tmp: &Path) -> io::Result<()> {
    fs::create_dir_all(tmp)?;
    for left in fs::read_dir(tmp)? {
        fs::remove_file(left?.path())?;
    }
    Ok(())
}

impl BlobDir {
    fn new(root: PathBuf) -> Self {
        let (next_name, sweep_lock) = (AtomicU64::new(0), RwLock::new(()));
        Self { root, next_name, sweep_lock, verified: VerifiedFiles::default() }
    }

    fn path(&self, blob: BlobRef) -> PathBuf {
        let name = blob.0.to_hex();
        self.root.join(&name[..2]).join(name)
    }

    fn put(&self, bytes: &[u8], media_type: String) -> Result<BlobRef, Failure> {
        let blob = BlobRef(Digest::of(bytes));
        let path = self.path(blob);
        let _guard = self.sweep_lock.read().unwrap_or_else(PoisonError::into_inner);
        if self.has(blob, bytes.len() as u64) {
            let file = File::options().append(true).open(&path);
            file.and_then(|file| touch(&file))
                .map_err(|error| io_failure("update the modification time of", blob, &error))?;
            return Ok(blob);
        }
        let sidecar = serde_json::to_vec(&Sidecar { media_type });
        let sidecar = sidecar.map_err(|error| Failure::internal(error.to_string()))?;
        self.write(&path.with_extension("json"), &sidecar)
            .and_then(|()| self.write(&path, bytes))
            .map_err(|error| io_failure("write", blob, &error))?;
        Ok(blob)
    }

    /// Returns whether a blob is stored and intact: its file has `bytes` bytes that match the
    /// digest, and its sidecar file can be read. A put writes any other blob again.
    fn has(&self, blob: BlobRef, bytes: u64) -> bool {
        let Ok(file) = File::open(self.path(blob)) else {
            return false;
        };
        let is_intact = file.metadata().is_ok_and(|metadata| metadata.len() == bytes)
            && self.verified.verify(blob, &file).unwrap_or(false)
            && self.sidecar(blob).is_ok();
        if !is_intact {
            tracing::error!(%blob, "stored blob is damaged, writing it again");
        }
        is_intact
    }

    /// Writes a file atomically: after a crash, the file has either the old or the new content.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let name = self.next_name.fetch_add(1, Ordering::Relaxed).to_string();
        let tmp = self.root.join(TMP_DIR).join(name);
        let written = self.write_under(&tmp, path, bytes);
        if written.is_err() {
            // The incomplete file takes space on a disk that may be full. If the deletion fails,
            // the next start deletes the file.
            let _ = fs::remove_file(&tmp);
        }
        written
    }

    fn write_under(&self, tmp: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(tmp)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        if let Some(shard) = path.parent() {
            if !shard.exists() {
                fs::create_dir_all(shard)?;
                File::open(&self.root)?.sync_all()?;
            }
            fs::rename(tmp, path)?;
            File::open(shard)?.sync_all()?;
        }
        Ok(())
    }

    /// Opens the file of a blob and returns it with its size in bytes.
    fn open(&self, blob: BlobRef) -> io::Result<(File, u64)> {
        let file = File::open(self.path(blob))?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    }

    fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure> {
        let failed = |error| io_failure("read", blob, &error);
        let (mut file, size) = self.open(blob).map_err(failed)?;
        let range = match resolve_range(blob, size, offset, length) {
            Ok(range) => range,
            // The range may be invalid because the file is truncated.
            Err(outside) => {
                self.refuse_damaged(blob, &file).map_err(failed)??;
                return Err(outside);
            }
        };
        if range != (0..size) {
            self.refuse_damaged(blob, &file).map_err(failed)??;
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        file.seek(SeekFrom::Start(range.start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(failed)?;
        if range == (0..size) && !VerifiedFiles::matches_digest(blob, &bytes) {
            return Err(mismatch_failure(blob));
        }
        Ok(bytes.into())
    }

    fn refuse_damaged(&self, blob: BlobRef, file: &File) -> io::Result<Result<(), Failure>> {
        Ok(if self.verified.verify(blob, file)? { Ok(()) } else { Err(mismatch_failure(blob)) })
    }

    fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        let failed = |error| io_failure("read", blob, &error);
        let (file, size) = self.open(blob).map_err(failed)?;
        self.refuse_damaged(blob, &file).map_err(failed)??;
        Ok(BlobInfo { blob, size, media_type: self.sidecar(blob)?.media_type })
    }

    /// Reads the sidecar file of a blob that exists.
    fn sidecar(&self, blob: BlobRef) -> Result<Sidecar, Failure> {
        let sidecar = open_if_exists(&self.path(blob).with_extension("json"));
        read_sidecar(blob, sidecar.map_err(|error| io_failure("read", blob, &error))?)
    }

    /// Lists all blobs.
    fn list(&self) -> io::Result<Vec<BlobRef>> {
        let mut all = Vec::new();
        for shard in fs::read_dir(&self.root)? {
            let shard = shard?.path();
            if !shard.is_dir() {
                continue;
            }
            for file in fs::read_dir(shard)? {
                let name = file?.file_name();
                let digest = name.to_str().and_then(|name| name.parse::<Digest>().ok());
                all.extend(digest.map(BlobRef));
            }
        }
        Ok(all)
    }

    fn older_than(&self, age: Duration) -> io::Result<Vec<BlobRef>> {
        let mut old = self.list()?;
        old.retain(|blob| is_older(&self.path(*blob), age));
        Ok(old)
    }

    /// Compares every blob with its digest and returns the damage.
    fn find_damage(&self) -> io::Result<Vec<Damage>> {
        let mut damaged = Vec::new();
        for blob in self.list()? {
            if let Some(reason) = self.damage(blob)? {
                damaged.push(Damage { subject: format!("blob `{blob}`"), reason });
            }
        }
        Ok(damaged)
    }

    /// Returns the damage of a blob that exists.
    ///
    /// # Errors
    ///
    /// Errors of opening the files of the blob. Such an error is no evidence of damage: perhaps too
    /// many files are open.
    fn damage(&self, blob: BlobRef) -> io::Result<Option<String>> {
        let path = self.path(blob);
        let Some(file) = open_if_exists(&path)? else { return Ok(None) };
        let sidecar = open_if_exists(&path.with_extension("json"))?;
        let whole = self.refuse_damaged(blob, &file);
        let whole = whole.unwrap_or_else(|error| Err(io_failure("read", blob, &error)));
        let found = whole.and_then(|()| read_sidecar(blob, sidecar));
        // Ignores the damage if a sweep has deleted the blob in the meantime.
        Ok(found.err().filter(|_| path.exists()).map(|failure| failure.message))
    }

    /// Hard-links every intact blob into another folder, or copies the blob if the hard link fails.
    /// Returns the damage of the damaged blobs.
    fn copy_to(&self, folder: &Path) -> io::Result<Vec<Damage>> {
        let damaged = self.find_damage()?;
        let is_damaged = |blob: &BlobRef| {
            let subject = format!("blob `{blob}`");
            damaged.iter().any(|damage| damage.subject == subject)
        };
        for blob in self.list()?.into_iter().filter(|blob| !is_damaged(blob)) {
            let from = self.path(blob);
            let name = blob.0.to_hex();
            let shard = folder.join(&name[..2]);
            fs::create_dir_all(&shard)?;
            let to = shard.join(&name);
            for (from, to) in [(from.with_extension("json"), to.with_extension("json")), (from, to)]
            {
                match link_or_copy(&from, &to) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    done => done?,
                }
            }
        }
        Ok(damaged)
    }

    fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure> {
        let _guard = self.sweep_lock.write().unwrap_or_else(PoisonError::into_inner);
        let mut removed = 0;
        for blob in blobs {
            let path = self.path(*blob);
            if is_older(&path, age) {
                remove(&path)
                    .and_then(|()| remove(&path.with_extension("json")))
                    .map_err(|error| io_failure("delete", *blob, &error))?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

#[expect(clippy::disallowed_methods, reason = "a sweep compares the time with the system clock")]
fn touch(file: &File) -> io::Result<()> {
    file.set_modified(SystemTime::now())
}

/// Opens a file, or returns `None` if it does not exist.
fn open_if_exists(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn read_sidecar(blob: BlobRef, sidecar: Option<File>) -> Result<Sidecar, Failure> {
    let sidecar = sidecar.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    let sidecar = sidecar
        .and_then(io::read_to_string)
        .and_then(|sidecar| Ok(serde_json::from_str(&sidecar)?));
    sidecar
        .map_err(|error| damaged_failure(blob, &format!("its media type cannot be read: {error}")))
}

/// Deletes a file, and succeeds if it does not exist.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns whether a file was modified at least `age` ago. A file whose modification time cannot be
/// read, or is in the future, counts as newer.
fn is_older(path: &Path, age: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|elapsed| elapsed >= age))
}

/// Hard-links a file, or copies the file if the hard link fails. Files of blobs are replaced and
/// never modified, so a hard link keeps its content as a copy does.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        return Ok(());
    }
    match fs::hard_link(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            fs::copy(from, to)?;
            File::open(to)?.sync_all()
        }
        done => done,
    }
}

fn mismatch_failure(blob: BlobRef) -> Failure {
    damaged_failure(blob, "its bytes do not match its digest")
}

fn io_failure(operation: &str, blob: BlobRef, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound && operation == "read" {
        return not_found(blob);
    }
    Failure::internal(format!("cannot {operation} `{blob}`: {error}"))
}

#[async_trait]
impl BlobStore for FileBlobs {
    async fn put(&self, bytes: Bytes, media_type: &str) -> Result<BlobRef, Failure> {
        let media_type = media_type.to_owned();
        self.run_blocking(move |folder| folder.put(&bytes, media_type)).await
    }

    async fn get(&self, blob: BlobRef, offset: u64, length: Option<u64>) -> Result<Bytes, Failure> {
        self.run_blocking(move |folder| folder.get(blob, offset, length)).await
    }

    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        self.run_blocking(move |folder| folder.stat(blob)).await
    }

    async fn sizes(&self, blobs: &[BlobRef]) -> Result<HashMap<BlobRef, u64>, Failure> {
        let blobs = blobs.to_owned();
        self.run_blocking(move |folder| {
            let size = |blob: BlobRef| Some((blob, fs::metadata(folder.path(blob)).ok()?.len()));
            Ok(blobs.into_iter().filter_map(size).collect())
        })
        .await
    }

    async fn find_damage(&self) -> Result<Vec<Damage>, Failure> {
        self.run_blocking(|folder| {
            let failed = |error| Failure::internal(format!("cannot verify blobs: {error}"));
            folder.find_damage().map_err(failed)
        })
        .await
    }

    async fn backup(&self, folder: &Path) -> Result<Vec<Damage>, Failure> {
        let to = folder.join(BLOBS_FOLDER);
        self.run_blocking(move |folder| {
            let failed = |error| Failure::internal(format!("cannot back up blobs: {error}"));
            folder.copy_to(&to).map_err(failed)
        })
        .await
    }
}

#[async_trait]
impl Sweepable for FileBlobs {
    async fn older_than(&self, age: Duration) -> Result<Vec<BlobRef>, Failure> {
        self.run_blocking(move |folder| {
            folder
                .older_than(age)
                .map_err(|error| Failure::internal(format!("cannot list blobs: {error}")))
        })
        .await
    }

    async fn remove_older(&self, blobs: &[BlobRef], age: Duration) -> Result<usize, Failure> {
        let blobs = blobs.to_owned();
        self.run_blocking(move |folder| folder.remove_older(&blobs, age)).await
    }
}
