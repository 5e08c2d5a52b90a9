//! The real `wattle` binary as a child process, which a test can kill.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use wattle_kit::error::Error;
use wattle_kit::process::Program;

use crate::place::{ENVIRONMENT, Place};

/// Where cargo puts the binary: next to the folder of this test's own binary.
///
/// # Panics
///
/// If it was not built: run `cargo build --bin wattle`, or `cargo xtask test`, which does it
/// first.
pub fn path() -> PathBuf {
    let own = std::env::current_exe().expect("a path of this test");
    let folder = own.ancestors().nth(2).expect("a target folder");
    let binary = folder.join(format!("wattle{}", std::env::consts::EXE_SUFFIX));
    assert!(
        binary.is_file(),
        "{} is missing; run `cargo build --bin wattle` first",
        binary.display()
    );
    binary
}

/// The binary in a folder, with nothing of the test's own environment.
fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new(path());
    command.args(args).current_dir(place.root()).env_clear().envs(ENVIRONMENT).env("TZ", "UTC");
    command
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code.
    pub code: i32,
    /// What it printed for programs.
    pub stdout: String,
    /// What it printed for people.
    pub stderr: String,
}

impl Ended {
    /// What it printed, as JSON.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        assert!(parsed.is_ok(), "no JSON: {self:?}");
        parsed.unwrap_or_default()
    }

    /// Everything, for snapshots.
    pub fn text(&self) -> String {
        format!("exit: {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

impl From<Output> for Ended {
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
pub async fn run(place: &Place, args: &[&str]) -> Ended {
    command(place, args).kill_on_drop(true).output().await.expect("the binary starts").into()
}

/// The same with something to read.
///
/// # Panics
///
/// If it cannot be started.
pub async fn run_with_stdin(place: &Place, args: &[&str], stdin: &str) -> Ended {
    let mut command = command(place, args);
    command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(stdin.as_bytes()).await.expect("the binary reads");
    drop(pipe);
    child.wait_with_output().await.expect("the binary ends").into()
}

/// A server of its own process.
pub struct Served {
    /// The process.
    pub program: Program,
    /// Where it answers.
    pub url: String,
}

/// Starts `wattle serve` and waits until it answers.
///
/// # Panics
///
/// If it does not come up.
pub async fn serve(place: &Place) -> Served {
    try_serve(place).await.unwrap_or_else(|error| panic!("the server comes up: {error}"))
}

/// The same where the server may fail to come up, since its port is taken for example.
///
/// # Errors
///
/// What the server wrote.
///
/// # Panics
///
/// If it comes up and does not print its address.
pub async fn try_serve(place: &Place) -> Result<Served, Error> {
    let mut program = Program::start(command(place, &["serve", "--json"]))?;
    let line = program.ready(|line| line.starts_with('{')).await?;
    let ready: Value = serde_json::from_str(&line).expect("JSON");
    let url = ready["address"].as_str().expect("an address").to_owned();
    Ok(Served { program, url })
}
