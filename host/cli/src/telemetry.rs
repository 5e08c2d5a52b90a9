//! Logs to stderr. Stdout contains only data.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::server::RELOAD;

/// Environment variable with a filter such as `wattle_run=debug`. It takes precedence over the
/// command line.
const FILTER_VARIABLE: &str = "WATTLE_LOG";

/// Disables the log of `rmcp`, which repeats messages of the host with less detail.
const QUIET: &str = "rmcp=off";

/// Level of reload messages without `--verbose`, because the person who changed a file expects
/// them.
const NEWS: &str = "info";

/// Starts logging. `verbosity` is 0 for warnings, 1 for `info`, 2 for `debug`, and 3 or more for
/// `trace`. Events with the target `told` are omitted, because the command prints them itself.
pub fn start(verbosity: u8, told: Option<&str>) {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter(verbosity, told, &wanted()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // Fails only if a test has already installed a subscriber.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Returns the log filter. The level is written as a directive, because a default level applies
/// only if there is no directive.
fn filter(verbosity: u8, told: Option<&str>, wanted: &str) -> EnvFilter {
    let level = match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let told = told.map(|target| format!("{target}=off,")).unwrap_or_default();
    EnvFilter::builder().parse_lossy(format!("{level},{QUIET},{RELOAD}={NEWS},{told}{wanted}"))
}

#[expect(clippy::disallowed_methods, reason = "read before there is a configuration")]
fn wanted() -> String {
    std::env::var(FILTER_VARIABLE).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(filter: &EnvFilter, directive: &str) -> bool {
        filter.to_string().split(',').any(|it| it == directive)
    }

    #[test]
    fn the_level_applies_to_targets_without_a_level() {
        for (verbosity, level) in [(0, "warn"), (1, "info"), (2, "debug"), (3, "trace")] {
            let filter = filter(verbosity, None, "");
            assert!(has(&filter, level), "{verbosity}: {filter}");
            assert!(has(&filter, "rmcp=off"), "{filter}");
        }
        let wanted = filter(0, None, "wattle_run=debug,error");
        assert!(has(&wanted, "error") && !has(&wanted, "warn"), "{wanted}");
        assert!(has(&wanted, "wattle_run=debug"), "{wanted}");
    }

    #[test]
    fn events_that_a_command_prints_are_logged_on_request() {
        let told = filter(2, Some("notes"), "");
        assert!(has(&told, "notes=off") && has(&told, "debug"), "{told}");
        let wanted = filter(0, Some("notes"), "notes=info");
        assert!(has(&wanted, "notes=info") && !has(&wanted, "notes=off"), "{wanted}");
    }
}
