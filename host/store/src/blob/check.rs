//! Comparison of the bytes of a blob with its digest, which is its name.
//!
//! Even a ranged read hashes the whole blob, so the result is cached for [`MAX_AGE`]. A blob that
//! is sent in several reads is hashed once. A blob that was written after the comparison is hashed
//! again.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;
use wattle_run::ports::blob::BlobRef;

use crate::lock::lock;

/// How long the result of a comparison is valid: long enough to send a large blob in several reads,
/// and short enough that a failing disk is noticed soon.
const MAX_AGE: Duration = Duration::from_mins(1);

/// Maximum number of cached results, of about 100 bytes each. At the limit, the cache is cleared.
const MAX_ENTRIES: usize = 4096;

/// Blobs whose bytes matched their digests, each with a stamp that changes whenever a program
/// writes to the blob.
#[derive(Debug)]
pub(crate) struct VerifiedBlobs<S>(Mutex<HashMap<BlobRef, Verification<S>>>);

#[derive(Debug)]
struct Verification<S> {
    stamp: S,
    at: Instant,
}

impl<S> Default for VerifiedBlobs<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: PartialEq> VerifiedBlobs<S> {
    /// Returns whether the cache has a result for a blob with the given stamp that is younger than
    /// [`MAX_AGE`].
    pub(crate) fn contains(&self, blob: BlobRef, stamp: &S) -> bool {
        let is_valid =
            |entry: &Verification<S>| entry.stamp == *stamp && entry.at.elapsed() < MAX_AGE;
        lock(&self.0).get(&blob).is_some_and(is_valid)
    }

    /// Caches that the bytes of a blob match its digest.
    pub(crate) fn insert(&self, blob: BlobRef, stamp: S) {
        let mut entries = lock(&self.0);
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(blob, Verification { stamp, at: Instant::now() });
    }
}

/// Files of blobs whose bytes matched their digests.
#[derive(Debug, Default)]
pub(crate) struct VerifiedFiles(VerifiedBlobs<Stamp>);

/// Metadata of a file. At least one of the fields changes whenever a program writes to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Inode number and change time, which no program can set.
    #[cfg(unix)]
    inode: (u64, i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: (metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl VerifiedFiles {
    /// Returns whether a file has the bytes of a blob. Reads the file from its current position,
    /// unless the result is cached.
    ///
    /// # Errors
    ///
    /// Errors of reading the file.
    pub(crate) fn verify(&self, blob: BlobRef, file: &File) -> io::Result<bool> {
        let stamp = Stamp::of(&file.metadata()?);
        if self.0.contains(blob, &stamp) {
            return Ok(true);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        let matches = hasher.finalize().as_bytes() == blob.0.as_bytes();
        if matches {
            self.0.insert(blob, stamp);
        }
        Ok(matches)
    }

    /// Returns whether bytes match the digest of a blob.
    pub(crate) fn matches_digest(blob: BlobRef, bytes: &[u8]) -> bool {
        Digest::of(bytes) == blob.0
    }
}

/// Builds the failure for a damaged blob.
pub(crate) fn damaged_failure(blob: BlobRef, reason: &str) -> Failure {
    let message = format!(
        "`{blob}` is damaged: {reason}; it is not served. Store the same bytes again, or restore \
         it from a backup"
    );
    Failure::new(code::BROKEN, message)
}
