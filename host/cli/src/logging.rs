//! Logs to stderr. Stdout contains only data.

mod fields;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::load::RELOAD_TARGET;
use crate::logging::fields::EscapedFields;

/// Environment variable with a filter such as `wattle_run=debug`. It takes precedence over the
/// command line.
const FILTER_VARIABLE: &str = "WATTLE_LOG";

/// Directive that disables the log of `rmcp`, which repeats messages of the host with less detail.
const SILENCED_TARGETS: &str = "rmcp=off";

/// Level of reload messages without `--verbose`. The messages are shown by default, because the
/// person who changed a file expects them.
const RELOAD_LEVEL: &str = "info";

/// Starts logging. `verbosity` is 0 for warnings, 1 for `info`, 2 for `debug`, and 3 or more for
/// `trace`. Events of `omitted_target` are not logged, because the command prints them itself.
pub fn start(verbosity: u8, omitted_target: Option<&str>) {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter(verbosity, omitted_target, &env_filter()))
        .fmt_fields(EscapedFields::default())
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // Fails only if a test has already installed a subscriber.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Returns the log filter. The level is passed as a directive, because a default level would apply
/// only if there are no directives.
fn filter(verbosity: u8, omitted_target: Option<&str>, env_filter: &str) -> EnvFilter {
    let level = match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let omitted = omitted_target.map(|target| format!("{target}=off,")).unwrap_or_default();
    let reloads = format!("{RELOAD_TARGET}={RELOAD_LEVEL}");
    let directives = format!("{level},{SILENCED_TARGETS},{reloads},{omitted}{env_filter}");
    EnvFilter::builder().parse_lossy(directives)
}

/// Returns the value of [`FILTER_VARIABLE`].
#[expect(clippy::disallowed_methods, reason = "WATTLE_LOG is read before wattle.toml")]
fn env_filter() -> String {
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
        let requested = filter(0, None, "wattle_run=debug,error");
        assert!(has(&requested, "error") && !has(&requested, "warn"), "{requested}");
        assert!(has(&requested, "wattle_run=debug"), "{requested}");
    }

    #[test]
    fn events_that_a_command_prints_are_logged_on_request() {
        let omitted = filter(2, Some("notes"), "");
        assert!(has(&omitted, "notes=off") && has(&omitted, "debug"), "{omitted}");
        let requested = filter(0, Some("notes"), "notes=info");
        assert!(has(&requested, "notes=info") && !has(&requested, "notes=off"), "{requested}");
    }
}
