//! Logs on stderr, so that stdout holds data only.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Variable with a filter such as `wattle_run=debug`; it goes before the command line.
const FILTER_VARIABLE: &str = "WATTLE_LOG";

/// Starts logging. `verbosity` is 0 for warnings, 1 for news, 2 and more for everything.
pub fn start(verbosity: u8) {
    let level = match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let filter = EnvFilter::builder()
        .with_default_directive(level.into())
        .with_env_var(FILTER_VARIABLE)
        .from_env_lossy();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // Only fails if a test has set one already, which then is the one that is wanted.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
