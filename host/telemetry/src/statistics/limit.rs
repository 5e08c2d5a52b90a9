//! Limits of the statistics. `host/docs/security.md` lists these limits.

/// Maximum number of rows of runs in a bucket, and of rows of model calls. A plot of 256 pairs of
/// app and tenant in one interval is already too full to read. The smallest rows are merged into
/// one row for each app, and then into one row for all apps.
pub(crate) const BUCKET_ROWS: usize = 256;

/// Maximum size of a bucket as JSON, in bytes. With this size, the 2,900 buckets of all interval
/// lengths take less than 200 MB, and the largest report reads less than 100 MB. Rows are merged
/// until a bucket fits.
pub(crate) const BUCKET_BYTES: usize = 64 << 10;

/// Maximum number of names of limits in a row. Guests also choose such names. Further names are
/// counted as `other`.
pub(crate) const LIMIT_NAMES: usize = 16;

/// Maximum length of the name of a limit, in bytes. The names that the host chooses have at most
/// 30.
pub(crate) const LIMIT_NAME_BYTES: usize = 48;

/// Maximum number of buckets that wait to be written. While the memory cannot be written, each
/// minute adds one bucket, so the counts of 17 hours wait. Older minutes are lost, but the hours
/// and days that contain them are kept.
pub(crate) const PENDING_BUCKETS: usize = 1_024;

/// Maximum number of attempts to write a bucket while other hosts write the same bucket. An attempt
/// fails only if the write of another host succeeds.
pub(crate) const WRITE_ATTEMPTS: usize = 32;

/// Time for which the buckets of minutes are kept.
pub(crate) const MINUTES_KEPT_MS: u64 = 24 * 3_600_000;

/// Time for which the buckets of hours are kept.
pub(crate) const HOURS_KEPT_MS: u64 = 30 * 86_400_000;

/// Time for which the buckets of days are kept: two years, to compare a month with the same month a
/// year before.
pub(crate) const DAYS_KEPT_MS: u64 = 731 * 86_400_000;

/// Maximum number of intervals of one report. It suffices for all minutes, hours or days that are
/// kept.
pub(crate) const REPORT_INTERVALS: i64 = 1_500;

/// Maximum number of series of one report, without the series of the remaining names. A plot of
/// more series cannot be read.
pub(crate) const REPORT_SERIES: usize = 20;
