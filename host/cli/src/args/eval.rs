//! Arguments of `eval`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use wattle_graph::definition::{Span, SpanError};

/// Longest time of a case by default. The longest case of the example apps calls six models in turn,
/// each with a time limit of its own of up to 90 seconds.
const DEFAULT_TIMEOUT: &str = "10m";

/// Largest value of `--timeout`. No case runs for a day.
const MAX_TIMEOUT: Span = Span::from_ms(24 * 60 * 60 * 1_000);

/// Arguments of `eval`.
#[derive(Clone, Debug, Args)]
pub struct EvalArgs {
    /// App whose data set is run
    #[arg(value_name = "APP")]
    pub app: String,
    /// Data set [default: `eval/cases.jsonl` in the folder of the app]
    #[arg(long, value_name = "FILE")]
    pub cases: Option<PathBuf>,
    /// Only the case of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Run every case this often
    #[arg(long, value_name = "TIMES", default_value = "1")]
    pub repeat: NonZeroU32,
    /// Cases that run at once
    #[arg(long, value_name = "CASES", default_value = "1")]
    pub concurrency: NonZeroU32,
    /// Cancel a case that takes longer, such as `90s`, and count it as failed
    #[arg(long, value_name = "TIME", default_value = DEFAULT_TIMEOUT, value_parser = timeout)]
    pub timeout: Span,
    /// Fail if a smaller share of the runs than this ends as expected, from 0 to 1
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
    share.ok_or_else(|| "a share is a number from 0 to 1, such as 0.9".to_owned())
}

fn timeout(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: SpanError| error.to_string())?;
    if span.as_ms() == 0 || span > MAX_TIMEOUT {
        return Err(format!("the time of a case is more than `0s` and at most `{MAX_TIMEOUT}`"));
    }
    Ok(span)
}
