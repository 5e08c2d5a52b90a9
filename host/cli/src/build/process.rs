//! Runs the commands of a build.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::oneshot;

use crate::env::environment;
use crate::error::Error;
use crate::load::manifest::FILE;
use crate::load::manifest::build::BuildCommand;
use crate::output::Output;

/// Time to wait for the rest of the output after the end of a command. The output ends later if the
/// command has left a process running.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);

/// Bytes of the end of the output that are searched for messages.
const SEARCHED_BYTES: usize = 64 << 10;

/// Parts of messages about a package or program that is not installed, in lower case.
const MISSING_PACKAGE: &[&str] = &[
    "cannot find module",
    "cannot find package",
    "could not resolve",
    "failed to resolve import",
    "is not installed",
    "no module named",
    ": not found",
    "command not found",
];

/// Variables that let programs color an output that is a pipe.
const COLORED: [(&str, &str); 2] = [("CARGO_TERM_COLOR", "always"), ("FORCE_COLOR", "1")];

/// The reason why a command did not succeed.
#[derive(Debug)]
pub(super) struct CommandFailure {
    /// The command and the reason.
    pub(super) message: String,
    /// True if the command seems to lack a package.
    pub(super) lacks_package: bool,
}

impl From<CommandFailure> for Error {
    fn from(failure: CommandFailure) -> Self {
        Self::Failed(failure.message)
    }
}

/// Runs a command in a folder, with the environment of this process. The output of the command goes
/// to stderr, because stdout is for the data of this process.
pub(super) async fn run(
    folder: &Path,
    env: &BTreeMap<String, String>,
    command: &BuildCommand,
) -> Result<(), CommandFailure> {
    let not_started = |error: io::Error| CommandFailure {
        message: format!("cannot start `{command}`: {error}\n  hint: {}", hint(&command.program)),
        // A path names a program in the folder, which a package may have to install.
        lacks_package: is_path(&command.program),
    };
    let (reader, writer) = io::pipe().map_err(not_started)?;
    let mut process = Command::new(program(folder, &command.program));
    process.args(&command.arguments).current_dir(folder).envs(colors()).envs(env);
    process.stdin(Stdio::null()).stdout(writer.try_clone().map_err(not_started)?).stderr(writer);
    // The program gets its own process group, so that it can be killed together with its children.
    #[cfg(unix)]
    process.process_group(0);
    let output = copy_output(reader).map_err(not_started)?;
    let mut child = process.kill_on_drop(true).spawn().map_err(not_started)?;
    // The pipe ends when the command and its children have closed it.
    drop(process);
    let group = ProcessGroup::new(child.id());
    let ended = child.wait().await;
    group.disarm();
    let output = tokio::time::timeout(OUTPUT_WAIT, output).await;
    let output = output.ok().and_then(Result::ok).unwrap_or_default();
    let message = match ended {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("`{command}` failed: {status}"),
        Err(error) => format!("cannot wait for `{command}`: {error}"),
    };
    let output = String::from_utf8_lossy(&output).to_lowercase();
    let lacks_package = MISSING_PACKAGE.iter().any(|part| output.contains(part));
    Err(CommandFailure { message, lacks_package })
}

/// Returns the variables of [`COLORED`] to set: none unless stderr is a terminal, and none that
/// replaces a setting of the user.
fn colors() -> impl Iterator<Item = (&'static str, &'static str)> {
    let variable = environment();
    let is_colored = Output::is_interactive() && variable("NO_COLOR").is_none();
    COLORED.into_iter().filter(move |&(name, _)| is_colored && variable(name).is_none())
}

/// Copies the output of a command to stderr. Returns the end of the output after its last byte.
fn copy_output(mut reader: PipeReader) -> io::Result<oneshot::Receiver<Vec<u8>>> {
    let (sender, receiver) = oneshot::channel();
    // Nothing joins the thread, because a process that the command has left running keeps the pipe
    // open.
    thread::Builder::new().name("wattle-build".into()).spawn(move || {
        let mut end = OutputEnd(Vec::new());
        // An error ends the output. The receiver is dropped together with the command.
        let _ = io::copy(&mut reader, &mut end);
        let _ = sender.send(end.0);
    })?;
    Ok(receiver)
}

/// A writer to stderr that keeps the last [`SEARCHED_BYTES`].
struct OutputEnd(Vec<u8>);

impl Write for OutputEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A command is not stopped because stderr is closed.
        let _ = io::stderr().write_all(bytes);
        self.0.extend_from_slice(bytes);
        let excess = self.0.len().saturating_sub(SEARCHED_BYTES);
        self.0.drain(..excess);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns true if a program is a path, which is relative to the folder. A name without a path is
/// looked up in `PATH`.
fn is_path(program: &str) -> bool {
    program.contains('/')
}

/// Returns the program to start.
fn program(folder: &Path, program: &str) -> PathBuf {
    if is_path(program) { folder.join(program) } else { program.into() }
}

/// Returns what to do about a program that cannot be started.
fn hint(program: &str) -> String {
    if is_path(program) {
        format!(
            "`{program}` is a path in the folder of the app; correct it in {FILE}, or make the \
             program with a command under `prepare`"
        )
    } else {
        format!("install `{program}`")
    }
}

/// The process group of a command. On drop, the command and all processes that it started are
/// killed.
struct ProcessGroup {
    leader: Option<u32>,
}

impl ProcessGroup {
    fn new(leader: Option<u32>) -> Self {
        Self { leader }
    }

    /// Prevents the kill on drop. Processes that the command has left running continue, because the
    /// command itself has ended.
    fn disarm(mut self) {
        self.leader = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            let leader = self.leader.and_then(|it| i32::try_from(it).ok()).and_then(Pid::from_raw);
            // An error means that all processes of the group have ended.
            let _ = leader.map(|leader| kill_process_group(leader, Signal::KILL));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run_script(folder: &Path, script: &str) -> Result<(), String> {
        let command = BuildCommand {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
        };
        let env = BTreeMap::from([("NAME".to_owned(), "made".to_owned())]);
        run(folder, &env, &command).await.map_err(|failure| failure.message)
    }

    #[tokio::test]
    async fn commands_run_in_the_folder_with_their_environment() {
        let folder = tempfile::tempdir().unwrap();
        run_script(folder.path(), "touch $NAME").await.unwrap();
        assert!(folder.path().join("made").is_file());
        let error = run_script(folder.path(), "exit 3").await.unwrap_err();
        assert_eq!(error, "`sh -c exit 3` failed: exit status: 3");
    }

    #[tokio::test]
    async fn a_program_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for (program, hint, lacks_package) in [
            ("bin/no", "correct it in app.toml", true),
            ("wattle-no-such-program", "install `wattle-no-such-program`", false),
        ] {
            let command = BuildCommand { program: program.to_owned(), arguments: Vec::new() };
            let failure = run(folder.path(), &BTreeMap::new(), &command).await.unwrap_err();
            let begin = format!("cannot start `{program}`");
            assert!(failure.message.starts_with(&begin), "{failure:?}");
            assert!(failure.message.contains(hint), "{failure:?}");
            assert_eq!(failure.lacks_package, lacks_package, "{program}");
        }
    }

    #[tokio::test]
    async fn a_package_is_missing_only_if_the_output_says_so() {
        for (output, is_missing) in [
            ("node: Error: Cannot find module './a.mjs'", true),
            ("X [ERROR] Could not resolve \"zod\"", true),
            ("ModuleNotFoundError: No module named 'wattle'", true),
            ("error: componentize-py is not installed; install the SDK", true),
            ("sh: 1: tsc: not found", true),
            ("X [ERROR] Expected \";\" but found \"x\"", false),
            ("", false),
        ] {
            let script = "printf '%s' \"$0\" >&2; exit 1";
            let words = ["sh", "-c", script, output].map(str::to_owned).to_vec();
            let command = BuildCommand::try_from(words).unwrap();
            let failure = run(Path::new("."), &BTreeMap::new(), &command).await.unwrap_err();
            assert_eq!(failure.lacks_package, is_missing, "{output}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_process_that_a_command_leaves_running_does_not_delay_its_end_for_long() {
        let folder = tempfile::tempdir().unwrap();
        // The process in the background holds the output open.
        let script = "sleep 60 & echo $! > pid";
        let ended = tokio::time::timeout(OUTPUT_WAIT * 20, run_script(folder.path(), script));
        ended.await.unwrap().unwrap();
        let left = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        let killed = std::process::Command::new("kill").arg(left.trim()).status().unwrap();
        assert!(killed.success());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn dropping_a_command_ends_all_processes_that_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("alive");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        // The shell in the background keeps the pipe open until it ends.
        let script = "(exec 3> alive; echo started >&3; while :; do sleep 1; done) & wait";
        let reader = tokio::task::spawn_blocking(move || {
            use std::io::BufRead as _;
            let mut lines = io::BufReader::new(std::fs::File::open(fifo).unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            (first, lines)
        });
        let mut running = Box::pin(run_script(folder.path(), script));
        let (first, mut lines) = tokio::select! {
            ended = &mut running => panic!("it ended: {ended:?}"),
            read = reader => read.unwrap(),
        };
        assert_eq!(first, "started");
        drop(running);
        let rest = tokio::task::spawn_blocking(move || lines.next().is_none());
        assert!(rest.await.unwrap(), "the pipe is closed");
    }
}
