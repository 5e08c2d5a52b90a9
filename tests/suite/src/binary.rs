//! The real `wattle` binary as a child process, which a test can kill, and the demo.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use wattle::config;
use wattle_kit::error::Error;
use wattle_kit::process::Program;

use crate::described::{Apps, Registration};
use crate::workspace::{ENVIRONMENT, Workspace};

/// Returns the path of the binary that cargo built, in the parent of the test executable's folder.
///
/// # Panics
///
/// If it is not built: run `cargo build --bin wattle`, or `cargo xtask test`, which builds it
/// first.
pub fn path() -> PathBuf {
    built("wattle")
}

/// Returns the path of a program that cargo built.
fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a path of this test");
    let folder = own.ancestors().nth(2).expect("a target folder");
    let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        program.is_file(),
        "{} is missing; run `cargo build --bin {name}` first",
        program.display()
    );
    program
}

/// Runs the demo to its end. Its configuration and data are in the folder of a workspace.
///
/// # Panics
///
/// If it is not built, or cannot be started.
pub async fn demo(workspace: &Workspace) -> CommandOutput {
    let mut command = Command::new(built("wattle-demo"));
    command.args(["--once", "--folder"]).arg(workspace.root());
    command.kill_on_drop(true).output().await.expect("the demo starts").into()
}

/// Returns a command that runs the binary in a folder, without the environment of the test.
fn command(workspace: &Workspace, args: &[&str]) -> Command {
    let mut command = Command::new(path());
    command.args(args).current_dir(workspace.root()).env_clear().envs(ENVIRONMENT).env("TZ", "UTC");
    command
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct CommandOutput {
    /// The exit code; -1 after a signal.
    pub code: i32,
    /// The standard output, for programs.
    pub stdout: String,
    /// The standard error, for people.
    pub stderr: String,
}

impl CommandOutput {
    /// Parses the standard output as JSON.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        assert!(parsed.is_ok(), "no JSON: {self:?}");
        parsed.unwrap_or_default()
    }

    /// Returns exit code, standard output and standard error, for snapshots.
    pub fn text(&self) -> String {
        format!("exit: {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a command to its end.
///
/// # Panics
///
/// If it cannot be started.
pub async fn run(workspace: &Workspace, args: &[&str]) -> CommandOutput {
    command(workspace, args).kill_on_drop(true).output().await.expect("the binary starts").into()
}

/// Runs a command to its end with a text on standard input.
///
/// # Panics
///
/// If it cannot be started.
pub async fn run_with_stdin(workspace: &Workspace, args: &[&str], stdin: &str) -> CommandOutput {
    let mut command = command(workspace, args);
    command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(stdin.as_bytes()).await.expect("the binary reads");
    drop(pipe);
    child.wait_with_output().await.expect("the binary ends").into()
}

/// Starts a command that runs until it is stopped.
///
/// # Panics
///
/// If it cannot be started.
pub fn start(workspace: &Workspace, args: &[&str]) -> Program {
    Program::start(command(workspace, args)).expect("the binary starts")
}

/// A server in a separate process.
pub struct Served {
    /// The process.
    pub program: Program,
    /// The base URL of the server.
    pub url: String,
    /// The applications whose responses are checked.
    pub described: Registration,
}

/// Starts `wattle serve` and waits until it is ready.
///
/// # Panics
///
/// If it does not become ready.
pub async fn serve(workspace: &Workspace) -> Served {
    try_serve(workspace).await.unwrap_or_else(|error| panic!("the server comes up: {error}"))
}

/// Starts `wattle serve`, which may fail, for example because its port is taken.
///
/// # Errors
///
/// The output of the server.
///
/// # Panics
///
/// If it becomes ready and does not print its address.
pub async fn try_serve(workspace: &Workspace) -> Result<Served, Error> {
    let mut program = Program::start(command(workspace, &["serve", "--json"]))?;
    let line = program.ready(|line| line.starts_with('{')).await?;
    let ready: Value = serde_json::from_str(&line).expect("JSON");
    let url = ready["address"].as_str().expect("an address").to_owned();
    let config = config::read(Some(&workspace.config())).expect("the server has read it");
    let described = Apps::of(&config).at(&url);
    Ok(Served { program, url, described })
}
