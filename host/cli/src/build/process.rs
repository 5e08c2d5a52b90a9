//! Runs the commands of a build.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::error::Error;
use crate::load::manifest::build::BuildCommand;

/// Runs a command in a folder, with the environment of this process. The output of the command goes
/// to stderr, because stdout is for the data of this process.
pub(super) async fn run(
    folder: &Path,
    env: &BTreeMap<String, String>,
    command: &BuildCommand,
) -> Result<(), Error> {
    let mut process = Command::new(program(folder, &command.program));
    process.args(&command.arguments).current_dir(folder).envs(env);
    process.stdin(Stdio::null()).stdout(io::stderr()).stderr(Stdio::inherit());
    // The program gets its own process group, so that it can be killed together with its children.
    #[cfg(unix)]
    process.process_group(0);
    let mut child = process.kill_on_drop(true).spawn().map_err(|error| {
        Error::Failed(format!(
            "cannot start `{command}`: {error}\n  hint: install `{}`",
            command.program
        ))
    })?;
    let group = ProcessGroup::new(child.id());
    let ended = child.wait().await;
    group.disarm();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Failed(format!("`{command}` failed: {status}"))),
        Err(error) => Err(Error::Failed(format!("cannot wait for `{command}`: {error}"))),
    }
}

/// Returns the program. A path is relative to the folder. A name without a path is looked up in
/// `PATH`.
fn program(folder: &Path, program: &str) -> PathBuf {
    if program.contains('/') { folder.join(program) } else { program.into() }
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
        run(folder, &env, &command).await.map_err(|error| error.to_string())
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
        let command = BuildCommand { program: "bin/no".to_owned(), arguments: Vec::new() };
        let error = run(folder.path(), &BTreeMap::new(), &command).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot start `bin/no`"), "{error}");
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
