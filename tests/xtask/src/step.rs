//! Steps of a command, each of which runs one program. The error of a step contains the command
//! that repeats it, and a table of all steps is printed at the end.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::shell::{TIMINGS, root, say};
use crate::units::{Unit, units};

/// The finished steps, in order.
static ENDED: Mutex<Vec<Step>> = Mutex::new(Vec::new());

/// A finished step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Description of the step: a verb with its object.
    pub(crate) what: String,
    /// Wall time.
    pub(crate) time: Duration,
    /// Whether it succeeded.
    pub(crate) succeeded: bool,
    /// The compiled units, if cargo reported them.
    pub(crate) units: Option<Vec<Unit>>,
}

/// Runs one step and prints its time.
///
/// # Errors
///
/// If the program cannot be started or fails. The error contains the command that repeats the step.
pub(crate) fn run(what: &str, command: &mut Command) -> Result<()> {
    say(&format!("==> {what}"));
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot start: {}", line(command)))?;
    let (time, succeeded) = (started.elapsed(), status.success());
    let is_reported = succeeded && command.get_args().any(|argument| argument == TIMINGS);
    let units = is_reported.then(units).transpose()?;
    lock().push(Step { what: what.to_owned(), time, succeeded, units });
    if !succeeded {
        bail!("could not {what} ({status}); this command repeats the step:\n    {}", line(command));
    }
    say(&format!("    done in {:.0} s", time.as_secs_f64()));
    Ok(())
}

/// Returns the finished steps.
pub(crate) fn ended() -> Vec<Step> {
    lock().clone()
}

/// Prints a table of the steps and their times, if there are several.
pub(crate) fn summarize() {
    let steps = ended();
    if steps.len() < 2 {
        return;
    }
    say("==> steps");
    for Step { what, time, succeeded, .. } in &steps {
        let note = if *succeeded { "" } else { "  failed" };
        say(&format!("    {:>6.0} s  {what}{note}", time.as_secs_f64()));
    }
    let all: Duration = steps.iter().map(|step| step.time).sum();
    say(&format!("    {:>6.0} s  total", all.as_secs_f64()));
}

fn lock() -> std::sync::MutexGuard<'static, Vec<Step>> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Formats a command for a shell in the root of the repository.
fn line(command: &Command) -> String {
    let folder = command.get_current_dir().filter(|folder| *folder != root());
    let folder = folder.map(|folder| folder.strip_prefix(root()).unwrap_or(folder));
    let folder = folder.map(|folder| format!("cd {} &&", quoted(&folder.to_string_lossy())));
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.to_string_lossy(), quoted(&value?.to_string_lossy())))
    });
    // The path of cargo is absolute.
    let program = Path::new(command.get_program());
    let program = if program.ends_with("cargo") { Path::new("cargo") } else { program };
    let words = std::iter::once(program.as_os_str()).chain(command.get_args());
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    folder.into_iter().chain(variables).chain(words).collect::<Vec<_>>().join(" ")
}

/// Quotes an argument for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_formatted_for_a_shell() {
        let mut command = Command::new("/a/b/cargo");
        command.current_dir(root()).args(["nextest", "run", "-E", "test(/^a'b/)"]);
        command.env("RUSTDOCFLAGS", "--deny warnings").env_remove("CARGO_PKG_NAME");
        let expected = r"RUSTDOCFLAGS='--deny warnings' cargo nextest run -E 'test(/^a'\''b/)'";
        assert_eq!(line(&command), expected);
        let mut command = Command::new("npm");
        command.current_dir(root().join("plugins")).args(["run", "check"]);
        assert_eq!(line(&command), "cd plugins && npm run check");
    }
}
