//! Limits of the statistics. The page about security lists them.

/// Rows of runs in a bucket, and rows of model calls. With 256 pairs of app and tenant in one
/// interval, a plot by either is already too full to read. The smallest rows are added up in one
/// row for each app, and then in one for all.
pub(crate) const BUCKET_ROWS: usize = 256;

/// Bytes of JSON of a bucket. The 2,900 buckets of all steps then take less than 200 MB, and a
/// report of the most intervals reads less than 100 MB. Rows are added up until a bucket fits.
pub(crate) const BUCKET_BYTES: usize = 64 << 10;

/// Names of limits in a row. Guests choose names, too; further ones are counted as `other`.
pub(crate) const LIMIT_NAMES: usize = 16;

/// Bytes of the name of a limit. Those of the host have at most 30.
pub(crate) const LIMIT_NAME_BYTES: usize = 48;

/// Buckets that wait to be written. While the memory cannot be written, each minute adds one, so
/// the minutes of 17 hours wait; older ones are lost, and hours and days remain.
pub(crate) const PENDING_BUCKETS: usize = 1_024;

/// Attempts to write a bucket while other hosts write the same one. Each attempt that fails is one
/// that another host won.
pub(crate) const WRITE_ATTEMPTS: usize = 32;

/// Time for which minutes are kept.
pub(crate) const MINUTES_KEPT_MS: u64 = 24 * 3_600_000;

/// Time for which hours are kept.
pub(crate) const HOURS_KEPT_MS: u64 = 30 * 86_400_000;

/// Time for which days are kept: two years, to compare a month with the one a year before.
pub(crate) const DAYS_KEPT_MS: u64 = 731 * 86_400_000;

/// Intervals of one report: all minutes, hours or days that are kept, and no more.
pub(crate) const REPORT_INTERVALS: i64 = 1_500;

/// Series of one report besides the one of the remaining names. A plot of more cannot be read.
pub(crate) const REPORT_SERIES: usize = 20;
