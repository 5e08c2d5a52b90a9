//! `wattle-standin-mcp`: an MCP server over standard input and output, one message a line.
//!
//! It ends with its input. A call of the tool `exit` ends it at once, as a crash would.

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
    /// The set of tools to offer
    #[arg(long, default_value = "probe")]
    tools: String,
    /// Know only the protocol with a handshake
    #[arg(long)]
    legacy: bool,
    /// Speak as a transcript says instead
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(file) = &arguments.replay {
        return replay(file);
    }
    let Some(server) = stdio_server(&arguments.tools, arguments.legacy) else {
        bail!("there is no set of tools `{}`", arguments.tools);
    };
    writeln!(io::stderr(), "offering `{}`", arguments.tools).context("write to stderr")?;
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.context("read from stdin")?)?;
        if request.pointer("/params/name").is_some_and(|name| name == "exit") {
            bail!("ordered to exit");
        }
        let mut stdout = io::stdout().lock();
        for document in server(&request) {
            writeln!(stdout, "{document}").context("write to stdout")?;
        }
        stdout.flush().context("write to stdout")?;
    }
    Ok(())
}

/// A message that the transcript does not know is answered with nothing.
fn replay(file: &Path) -> anyhow::Result<()> {
    let player = Player::new(&Case::read(file).map_err(anyhow::Error::msg)?);
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.context("read from stdin")?)?;
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
