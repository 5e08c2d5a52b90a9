//! Compares the bytes of a blob with its digest, which is its name.
//!
//! A read of a part reads the whole blob, so the result is kept for a while: a blob that is sent
//! in pieces is hashed once. One that was written since is compared again.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;
use wattle_run::ports::blob::BlobRef;

use crate::lock::lock;

/// How long the result of a comparison counts: long enough to send a large blob in pieces, and
/// short enough that a disk that begins to fail is noticed soon.
const CHECK_AGE: Duration = Duration::from_mins(1);

/// Results that are kept, about a hundred bytes each. With more, all are forgotten.
const CHECKS_LIMIT: usize = 4096;

/// Blobs that were found to be what their names say, each with a stamp that changes whenever a
/// program writes to it.
#[derive(Debug)]
pub(crate) struct Known<S>(Mutex<HashMap<BlobRef, Check<S>>>);

#[derive(Debug)]
struct Check<S> {
    stamp: S,
    at: Instant,
}

impl<S> Default for Known<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: PartialEq> Known<S> {
    /// Whether a blob was compared lately, and not written since.
    pub(crate) fn has(&self, blob: BlobRef, stamp: &S) -> bool {
        let holds = |check: &Check<S>| check.stamp == *stamp && check.at.elapsed() < CHECK_AGE;
        lock(&self.0).get(&blob).is_some_and(holds)
    }

    /// Remembers a blob that is what its name says.
    pub(crate) fn note(&self, blob: BlobRef, stamp: S) {
        let mut checks = lock(&self.0);
        if checks.len() >= CHECKS_LIMIT {
            checks.clear();
        }
        checks.insert(blob, Check { stamp, at: Instant::now() });
    }
}

/// Files that were found to be what their names say.
#[derive(Debug, Default)]
pub(crate) struct Checks(Known<Stamp>);

/// Changes whenever a program writes to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Number of the file and the time of its last change, which no program can set.
    #[cfg(unix)]
    inode: (u64, i64, i64),
}

impl Stamp {
    fn of(facts: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Self {
            bytes: facts.len(),
            modified: facts.modified().ok(),
            #[cfg(unix)]
            inode: (facts.ino(), facts.ctime(), facts.ctime_nsec()),
        }
    }
}

impl Checks {
    /// Whether a file has the bytes of a blob. The file is read from its beginning unless that is
    /// known.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub(crate) fn fits(&self, blob: BlobRef, file: &File) -> io::Result<bool> {
        let stamp = Stamp::of(&file.metadata()?);
        if self.0.has(blob, &stamp) {
            return Ok(true);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        let fits = hasher.finalize().as_bytes() == blob.0.as_bytes();
        if fits {
            self.0.note(blob, stamp);
        }
        Ok(fits)
    }

    /// Whether bytes are those of a blob.
    pub(crate) fn are(blob: BlobRef, bytes: &[u8]) -> bool {
        Digest::of(bytes) == blob.0
    }
}

/// The refusal of a blob whose bytes are not those that were put.
pub(crate) fn damaged(blob: BlobRef, reason: &str) -> Failure {
    let message = format!(
        "`{blob}` is damaged: {reason}; it is not served. Store the same bytes again, or restore \
         it from a backup"
    );
    Failure::new(code::BROKEN, message)
}
