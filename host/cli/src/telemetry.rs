//! Logs on stderr, so that stdout holds data only.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::server::RELOAD;

/// Variable with a filter such as `wattle_run=debug`; it goes before the command line.
const FILTER_VARIABLE: &str = "WATTLE_LOG";

/// What would say again, and with less sense, what the host says itself; `genai` would also repeat
/// what a service says about a key.
const QUIET: &str = "rmcp=off,genai=off";

/// What is told of changed files also without `--verbose`: somebody has put one there, and waits.
const NEWS: &str = "info";

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
        .parse_lossy(format!("{QUIET},{RELOAD}={NEWS},{}", wanted()));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // Only fails if a test has set one already, which then is the one that is wanted.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

#[expect(clippy::disallowed_methods, reason = "read before there is a configuration")]
fn wanted() -> String {
    std::env::var(FILTER_VARIABLE).unwrap_or_default()
}
