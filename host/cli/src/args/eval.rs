//! Arguments of `eval`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use wattle_graph::definition::{HumanDuration, ParseDurationError};

/// Default of `--timeout`. The longest case of the example apps calls six models in sequence, each
/// with a timeout of up to 90 seconds.
pub(super) const DEFAULT_TIMEOUT: &str = "10m";

/// Maximum value of `--timeout`: one day.
const MAX_TIMEOUT: HumanDuration = HumanDuration::from_ms(24 * 60 * 60 * 1_000);

/// Arguments of `eval`.
#[derive(Clone, Debug, Args)]
pub struct EvalArgs {
    /// App whose data set is run
    #[arg(value_name = "APP")]
    pub app: String,
    /// Data set [default: `eval/cases.jsonl` in the app folder]
    #[arg(long, value_name = "FILE")]
    pub cases: Option<PathBuf>,
    /// Run only the case with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Number of runs of each case
    #[arg(long, value_name = "TIMES", default_value = "1")]
    pub repeat: NonZeroU32,
    /// Maximum number of concurrent cases
    #[arg(long, value_name = "CASES", default_value = "1")]
    pub concurrency: NonZeroU32,
    /// Time limit of a case, such as `90s`; a case that exceeds it is cancelled and counts as
    /// failed
    #[arg(long, value_name = "TIME", default_value = DEFAULT_TIMEOUT, value_parser = timeout)]
    pub timeout: HumanDuration,
    /// Minimum pass rate, from 0 to 1: fail if a smaller fraction of the runs ends as expected
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub require: Option<f64>,
    /// Keep the threads of the cases
    #[arg(long)]
    pub keep: bool,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "the pass rate must be a number from 0 to 1, such as 0.9".to_owned())
}

pub(super) fn timeout(text: &str) -> Result<HumanDuration, String> {
    let span: HumanDuration =
        text.parse().map_err(|error: ParseDurationError| error.to_string())?;
    if span.as_ms() == 0 || span > MAX_TIMEOUT {
        return Err(format!("the timeout must be greater than `0s` and at most `{MAX_TIMEOUT}`"));
    }
    Ok(span)
}
