//! Writes files of the cache of compiled code.

use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::warn;

use crate::load::prepare::Outline;

/// Length of the digest at the beginning of a file, in bytes.
pub(crate) const DIGEST_BYTES: usize = 32;

/// Number of the next temporary file, which makes its name unique in this process.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// The file of one component in the cache.
#[derive(Clone)]
pub(crate) struct CacheFile {
    path: PathBuf,
    /// The hasher of the file's digest. It has the key and the name of the file.
    hasher: Box<blake3::Hasher>,
}

impl CacheFile {
    /// Describes a file. `hasher` has the key and the name of the file.
    pub(crate) fn new(path: PathBuf, hasher: blake3::Hasher) -> Self {
        Self { path, hasher: Box::new(hasher) }
    }

    /// Stores the compiled code of the component. A failure is only logged: the next start compiles
    /// the component again.
    pub(crate) fn put(&self, outline: &Outline, code: &[u8]) {
        let write = || {
            let mut writer = self.create(outline)?;
            writer.write(code)?;
            writer.finish()
        };
        if let Err(error) = write() {
            self.warn(&error);
        }
    }

    /// Begins a new version of the file with the outline of the component. Readers see the old
    /// version until the writer has finished.
    pub(crate) fn create(&self, outline: &Outline) -> io::Result<CacheFileWriter> {
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}-{number}.tmp", std::process::id());
        let temporary = self.path.with_file_name(name);
        let file = File::create(&temporary)?;
        let Self { path, hasher } = self.clone();
        let mut writer = CacheFileWriter { file, temporary, path, hasher };
        writer.file.write_all(&[0; DIGEST_BYTES])?;
        let head = serde_json::to_vec(outline)?;
        let length = u32::try_from(head.len()).map_err(io::Error::other)?;
        writer.write(&length.to_le_bytes())?;
        writer.write(&head)?;
        Ok(writer)
    }

    /// Logs that the file cannot be written.
    pub(crate) fn warn(&self, error: &io::Error) {
        warn!(path = %self.path.display(), %error, "cannot write compiled code");
    }
}

/// A new version of a file. The version is removed on drop, unless it is finished.
pub(crate) struct CacheFileWriter {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    hasher: Box<blake3::Hasher>,
}

impl CacheFileWriter {
    /// Appends a part of the content.
    pub(crate) fn write(&mut self, part: &[u8]) -> io::Result<()> {
        self.hasher.update(part);
        self.file.write_all(part)
    }

    /// Writes the digest and renames the file, so that a reader never sees a partial file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.rewind()?;
        self.file.write_all(self.hasher.finalize().as_bytes())?;
        fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for CacheFileWriter {
    fn drop(&mut self) {
        // A finished file has no temporary name any more. A temporary file that remains does no
        // harm.
        let _ = fs::remove_file(&self.temporary);
    }
}
