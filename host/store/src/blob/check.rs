//! Compares the bytes of a blob's file with its digest, which is its name.
//!
//! A read of a part reads the whole file, so the result is kept for a while: a blob that is sent
//! in pieces is hashed once. A file that was written since is compared again.

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

/// Files that were found to be what their names say.
#[derive(Debug, Default)]
pub(crate) struct Checks(Mutex<HashMap<BlobRef, Check>>);

#[derive(Debug)]
struct Check {
    file: Stamp,
    at: Instant,
}

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
        let is_known = |check: &Check| check.file == stamp && check.at.elapsed() < CHECK_AGE;
        if lock(&self.0).get(&blob).is_some_and(is_known) {
            return Ok(true);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        let fits = hasher.finalize().as_bytes() == blob.0.as_bytes();
        if fits {
            self.note(blob, stamp);
        }
        Ok(fits)
    }

    /// Whether bytes are those of a blob.
    pub(crate) fn are(blob: BlobRef, bytes: &[u8]) -> bool {
        Digest::of(bytes) == blob.0
    }

    fn note(&self, blob: BlobRef, file: Stamp) {
        let mut checks = lock(&self.0);
        if checks.len() >= CHECKS_LIMIT {
            checks.clear();
        }
        checks.insert(blob, Check { file, at: Instant::now() });
    }
}

/// The refusal of a blob whose bytes are not those that were put.
pub(crate) fn damaged(blob: BlobRef, reason: &str) -> Failure {
    let message = format!(
        "`{blob}` is damaged: {reason}; it is not served. Store the same bytes again, or restore \
         its file from a backup"
    );
    Failure::new(code::BROKEN, message)
}
