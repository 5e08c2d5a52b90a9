//! The limits on files of a run and of an app.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use cap_primitives::fs::read_dir;
use wattle_graph::id::AppName;
use wattle_graph::mapping::ProjectionBudget;
use wattle_run::limit::RUN_FILES;
use wattle_run::ports::Clock;
use wattle_run::quota::{RequestTime, UsageMeter, charged_bytes};

use crate::file_projection::write::WrittenFile;
use crate::files_folder::FilesFolder;

/// The remaining number and bytes of the files of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunBudget {
    /// What the expressions of the next file may take.
    pub(super) expressions: ProjectionBudget,
    files: usize,
    run_bytes: u64,
    app_bytes: u64,
    /// Bytes by which the files of the app have grown.
    pub(super) added: u64,
}

impl RunBudget {
    pub(super) fn new(run_bytes: u64, app_bytes: u64) -> Self {
        let expressions = ProjectionBudget::default();
        Self { expressions, files: RUN_FILES, run_bytes, app_bytes, added: 0 }
    }

    /// Counts a file that is about to be written, and returns its maximum size.
    ///
    /// # Errors
    ///
    /// The name of the limit, if the run has the maximum number of files.
    pub(super) fn begin_file(&mut self) -> Result<u64, &'static str> {
        self.files = self.files.checked_sub(1).ok_or("run_files")?;
        self.expressions = self.expressions.of_next_file();
        Ok(self.run_bytes.min(self.app_bytes))
    }

    /// Counts the bytes of a file. The bytes always count against the limit of the run. They count
    /// against the limit of the app only if the file did not already exist with the same content,
    /// so that the files of a run that is projected again do not count twice.
    pub(super) fn finish_file(&mut self, written: WrittenFile) {
        self.run_bytes = self.run_bytes.saturating_sub(written.bytes);
        if written.is_new {
            let bytes = charged_bytes(written.bytes);
            self.app_bytes = self.app_bytes.saturating_sub(bytes);
            self.added = self.added.saturating_add(bytes);
        }
    }

    /// Returns the name of the limit that a file exceeded.
    pub(super) fn exceeded(&self) -> &'static str {
        if self.app_bytes < self.run_bytes { "app_file_bytes" } else { "run_file_bytes" }
    }
}

/// The total size of the files of each app, in bytes.
pub(super) struct AppUsage {
    clock: Arc<dyn Clock>,
    meters: HashMap<AppName, UsageMeter>,
}

impl AppUsage {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, meters: HashMap::new() }
    }

    /// Returns the number of bytes, out of `allowed`, that the files of an app in its `folders` may
    /// still take. Measures the folders on first use, and again if less than `wanted` is left.
    /// Between two measurements, only the files that this host writes are counted.
    pub(super) async fn remaining(
        &mut self,
        app: &AppName,
        folders: BTreeSet<FilesFolder>,
        allowed: u64,
        wanted: u64,
    ) -> u64 {
        let measure = move || async move {
            let measured = tokio::task::spawn_blocking(move || bytes_in(&folders, allowed)).await;
            // If the measurement panics, no further files are allowed.
            Ok::<_, Infallible>(measured.unwrap_or(allowed))
        };
        let times = RequestTime::of_unshared(self.clock.as_ref());
        let meter = self.meters.entry(app.clone()).or_default();
        let Ok(remaining) = meter.left(wanted, allowed, times, measure).await;
        remaining
    }

    /// Adds bytes to the files of an app.
    pub(super) fn add(&self, app: &AppName, bytes: u64) {
        if let Some(meter) = self.meters.get(app) {
            meter.add_unchecked(bytes);
        }
    }
}

/// Returns the total size of all files in folders, in bytes. Stops at a size above `limit`.
fn bytes_in(folders: &BTreeSet<FilesFolder>, limit: u64) -> u64 {
    let paths: BTreeSet<PathBuf> = folders.iter().map(FilesFolder::path).collect();
    // A folder inside of another folder is counted with the outer folder.
    let is_outermost = |folder: &&FilesFolder| {
        !folder.path().ancestors().skip(1).any(|above| paths.contains(above))
    };
    let mut bytes = 0_u64;
    for folder in folders.iter().filter(is_outermost) {
        // A folder that does not exist, or that is behind a link, counts as empty.
        let Ok(opened) = folder.open() else { continue };
        let mut remaining = vec![PathBuf::from(".")];
        while let Some(inside) = remaining.pop() {
            // A folder that has been replaced with a link in the meantime is not followed out of
            // the root folder.
            for entry in read_dir(&opened, &inside).into_iter().flatten().flatten() {
                // Links are not followed.
                let Ok(found) = entry.metadata() else { continue };
                if found.is_dir() {
                    remaining.push(inside.join(entry.file_name()));
                } else {
                    bytes = bytes.saturating_add(charged_bytes(found.len()));
                }
                if bytes > limit {
                    return bytes;
                }
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use wattle_kit::clock::ManualClock;
    use wattle_run::limit::{BLOB_MIN_BYTES, MEASURE_INTERVAL_MS};

    use super::*;

    const NEW: WrittenFile = WrittenFile { bytes: 10_000, is_new: true };

    #[test]
    fn files_count_for_run_and_app() {
        let mut budget = RunBudget::new(25_000, 100_000);
        for remaining in [25_000, 15_000, 5_000] {
            assert_eq!(budget.begin_file(), Ok(remaining));
            budget.finish_file(NEW);
        }
        assert_eq!((budget.added, budget.exceeded()), (30_000, "run_file_bytes"));
        let mut budget = RunBudget::new(100_000, 15_000);
        budget.finish_file(WrittenFile { is_new: false, ..NEW });
        assert_eq!((budget.added, budget.begin_file()), (0, Ok(15_000)));
        budget.finish_file(NEW);
        assert_eq!((budget.begin_file(), budget.exceeded()), (Ok(5_000), "app_file_bytes"));
    }

    #[test]
    fn files_above_the_maximum_number_are_refused() {
        let mut budget = RunBudget::new(u64::MAX, u64::MAX);
        assert!((0..RUN_FILES).all(|_| budget.begin_file().is_ok()));
        assert_eq!(budget.begin_file(), Err("run_files"));
    }

    #[tokio::test]
    async fn app_folders_are_measured_again_only_if_little_space_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("large"), vec![0; 10_000]).unwrap();
        fs::write(folder.path().join("small"), "x").unwrap();
        let folders = || {
            let of = |inside: &str| FilesFolder::new(folder.path(), Path::new(inside));
            BTreeSet::from([of(""), of("a/b")])
        };
        let clock = ManualClock::at_ms(0);
        let mut usage = AppUsage::new(Arc::new(clock.clone()));
        let app: AppName = "app".parse().unwrap();
        let used = 10_000 + BLOB_MIN_BYTES;
        assert_eq!(usage.remaining(&app, folders(), 50_000, 20_000).await, 50_000 - used);
        fs::remove_file(inner.join("large")).unwrap();
        usage.add(&app, 10_000);
        assert_eq!(usage.remaining(&app, folders(), 50_000, 20_000).await, 40_000 - used);
        // Less than the wanted size is left, but the folders were measured recently.
        assert_eq!(usage.remaining(&app, folders(), 50_000, 40_000).await, 40_000 - used);
        clock.advance_ms(u32::try_from(MEASURE_INTERVAL_MS).unwrap());
        let remaining = usage.remaining(&app, folders(), 50_000, 40_000).await;
        assert_eq!(remaining, 50_000 - BLOB_MIN_BYTES);
    }

    #[cfg(unix)]
    #[test]
    fn files_behind_links_do_not_count() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        fs::create_dir_all(folder.path().join("other/a")).unwrap();
        fs::write(folder.path().join("other/a/x"), "x").unwrap();
        symlink("../other", folder.path().join("logs/link")).unwrap();
        let of = |inside: &str| FilesFolder::new(folder.path(), Path::new(inside));
        let bytes = |inside: &str| bytes_in(&BTreeSet::from([of(inside)]), u64::MAX);
        assert_eq!(bytes("logs/link"), 0);
        assert_eq!(bytes("logs/link/a"), 0);
        assert_eq!(bytes("other"), BLOB_MIN_BYTES);
        // The link itself counts as a file.
        assert_eq!(bytes("logs"), BLOB_MIN_BYTES);
    }
}
