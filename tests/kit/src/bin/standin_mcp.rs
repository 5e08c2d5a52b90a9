//! `wattle-standin-mcp`: an MCP server over standard input and output, with one message per line.
//!
//! The program ends when its input ends. A call of the tool `exit` ends it immediately, like a
//! crash.

use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Parser;
use serde_json::Value;
use wattle_kit::replay::{Case, Piece, Player};
use wattle_kit::standin::stdio_server;

/// A stand-in MCP server over standard input and output.
#[derive(Debug, Parser)]
#[command(name = "wattle-standin-mcp", version)]
struct Arguments {
    /// Name of the tool set to offer
    #[arg(long, default_value = "probe")]
    tools: String,
    /// Support only protocol versions with a handshake
    #[arg(long)]
    legacy: bool,
    /// Transcript to replay instead of offering tools
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// File to which the replay appends each message before it responds
    #[arg(long, value_name = "FILE", requires = "replay")]
    log: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(file) = &arguments.replay {
        return replay(file, arguments.log.as_deref());
    }
    let Some(server) = stdio_server(&arguments.tools, arguments.legacy) else {
        bail!("unknown tool set `{}`", arguments.tools);
    };
    writeln!(io::stderr(), "offering `{}`", arguments.tools).context("write to stderr")?;
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.context("read from stdin")?)?;
        if request.pointer("/params/name").is_some_and(|name| name == "exit") {
            bail!("the tool `exit` was called");
        }
        let mut stdout = io::stdout().lock();
        for document in server(&request) {
            writeln!(stdout, "{document}").context("write to stdout")?;
        }
        stdout.flush().context("write to stdout")?;
    }
    Ok(())
}

/// Replays a transcript. A message without a matching exchange gets no response.
fn replay(file: &Path, log: Option<&Path>) -> anyhow::Result<()> {
    let player = Player::new(&Case::read(file).map_err(anyhow::Error::msg)?);
    let open = |path: &Path| File::options().create(true).append(true).open(path);
    let mut log = log.map(open).transpose().context("open the log")?;
    for line in io::stdin().lock().lines() {
        let line = line.context("read from stdin")?;
        if let Some(log) = &mut log {
            // Other processes append to the same file, so each message is one write.
            log.write_all(format!("{line}\n").as_bytes()).context("write to the log")?;
        }
        let message: Value = serde_json::from_str(&line)?;
        let mut stdout = io::stdout().lock();
        for piece in player.lines(&message) {
            match piece {
                Piece::Bytes(text) => {
                    stdout.write_all(text.as_bytes()).context("write to stdout")?;
                    stdout.flush().context("write to stdout")?;
                }
                Piece::End => return Ok(()),
            }
        }
    }
    Ok(())
}
