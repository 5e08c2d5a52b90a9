//! Logs on stderr, so that stdout holds data only.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::server::RELOAD;

/// Variable with a filter such as `wattle_run=debug`; it goes before the command line.
const FILTER_VARIABLE: &str = "WATTLE_LOG";

/// What would say again, and with less sense, what the host says itself.
const QUIET: &str = "rmcp=off";

/// Level of messages about changed files without `--verbose`: somebody has changed a file, and waits.
const NEWS: &str = "info";

/// Starts logging. `verbosity` is 0 for warnings, 1 for news, 2 and more for everything. Events of the target `told`
/// are left out: the command reports them itself.
pub fn start(verbosity: u8, told: Option<&str>) {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter(verbosity, told, &wanted()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // Only fails if a test has set one already, which then is the one that is wanted.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// What is logged. The level is a directive as well: a default directive holds only where there is no
/// other.
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
    fn the_level_holds_for_everything_that_has_none_of_its_own() {
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
    fn what_a_command_says_itself_is_logged_where_somebody_asks_for_it() {
        let told = filter(2, Some("notes"), "");
        assert!(has(&told, "notes=off") && has(&told, "debug"), "{told}");
        let wanted = filter(0, Some("notes"), "notes=info");
        assert!(has(&wanted, "notes=info") && !has(&wanted, "notes=off"), "{wanted}");
    }
}
