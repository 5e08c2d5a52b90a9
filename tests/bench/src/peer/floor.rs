//! The lower bound by the disk: the time to write 1 KB durably.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

/// Size of a write, in bytes. It is that of the state in the cases.
const WRITTEN_BYTES: usize = 1_000;

/// Number of writes: enough for a median, in a fraction of a second.
const WRITES: usize = 1_000;

/// Returns the median time to append to a file and wait for `fdatasync`, in microseconds.
pub(crate) fn fdatasync_us(folder: &Path) -> Result<f64> {
    let mut file = tempfile::tempfile_in(folder)
        .with_context(|| format!("cannot create a file in {}", folder.display()))?;
    let bytes = [b'x'; WRITTEN_BYTES];
    let mut taken = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let started = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        taken.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(crate::median(&mut taken))
}
