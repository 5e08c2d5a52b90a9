//! What the disk allows at best: how long it takes to write 1 KB so that it survives a power cut.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

/// As large as the state of the cases.
const WRITTEN_BYTES: usize = 1_000;

/// Enough for a median, in a fraction of a second.
const WRITES: usize = 1_000;

/// Median of appending to a file and waiting for `fdatasync`.
pub(crate) fn fdatasync_us(folder: &Path) -> Result<f64> {
    let mut file = tempfile::tempfile_in(folder)
        .with_context(|| format!("cannot make a file in {}", folder.display()))?;
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
