//! Servers as programs, over their standard input and output.
//!
//! A program gets nothing that is not configured, and ends with its session: first its input is
//! closed, then it is asked to end, then it is killed. A host that dies closes its input as well.

use std::process::Stdio;

use rmcp::transport::TokioChildProcess;
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, Command};
use wattle_graph::failure::{Failure, code};

use crate::config::CommandConfig;
use crate::fault::one_line;

/// Longest line of a program's complaints that is logged as one.
const LINE_BYTES: u64 = 4096;

/// Starts the program.
pub(super) fn start(server: &str, config: &CommandConfig) -> Result<TokioChildProcess, Failure> {
    let mut command = Command::new(&config.program);
    command
        .args(&config.arguments)
        .env_clear()
        .envs(config.env.iter().map(|(name, value)| (name, value.expose_secret())))
        .current_dir(&config.folder)
        .kill_on_drop(true);
    let started = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn();
    let (transport, complaints) = started.map_err(|error| {
        Failure::new(
            code::UNAVAILABLE,
            format!(
                "the MCP server `{server}` cannot be started: `{}`: {error}; check `command` under \
                 `[mcp.{server}]`",
                config.program
            ),
        )
    })?;
    if let Some(complaints) = complaints {
        tokio::spawn(log(server.to_owned(), complaints));
    }
    Ok(transport)
}

/// Passes on what a program says to its operator, until it ends.
async fn log(server: String, complaints: ChildStderr) {
    let mut complaints = BufReader::new(complaints);
    loop {
        let mut line = Vec::new();
        match (&mut complaints).take(LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(read) if read > 0 => {
                let text = one_line(&String::from_utf8_lossy(&line));
                tracing::info!(%server, "{text}");
            }
            _ => return,
        }
    }
}
