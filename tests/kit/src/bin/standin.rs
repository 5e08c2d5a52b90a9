//! `wattle-standin`: the stand-in servers as a program, for demos and for tests in other languages.
//!
//! It runs until its standard input closes, so that it does not outlive its parent process, or
//! until SIGTERM or Ctrl-C.

use std::io::{self, Read as _, Write as _};

use anyhow::Context as _;
use clap::Parser;
use serde_json::json;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};
use wattle_kit::standin::{Config, FaultRule, Server};

/// Stand-ins for model providers and other services over HTTP, on 127.0.0.1.
#[derive(Debug, Parser)]
#[command(name = "wattle-standin", version)]
struct Arguments {
    /// Port to listen on; 0 selects a free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Print one JSON line with all URLs on stdout when ready
    #[arg(long)]
    print_addr: bool,
    /// Keep running when standard input closes
    #[arg(long)]
    ignore_stdin: bool,
    /// Fault rule in effect from the start, as the JSON body of `POST /__faults`; may be repeated
    #[arg(long, value_name = "JSON", value_parser = read_fault)]
    fault: Vec<FaultRule>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let config = Config { port: arguments.port, faults: arguments.fault, ..Config::default() };
    let server = Server::start(config).await?;
    let base = &server.base_url;
    if arguments.print_addr {
        let addresses = json!({
            "base_url": base,
            "openai": format!("{base}/v1"),
            "gemini": format!("{base}/v1beta"),
            "anthropic": format!("{base}/v1"),
            "massive": base,
            "feishu": base,
            "apify": base,
            "nominatim": base,
            "unsplash": base,
            "mcp_graph": format!("{base}/mcp/graph"),
            "mcp_data": format!("{base}/mcp/data"),
        });
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{addresses}").and_then(|()| stdout.flush()).context("write to stdout")?;
    } else {
        writeln!(io::stderr(), "listening on {base}").context("write to stderr")?;
    }
    wait_for_end(arguments.ignore_stdin).await?;
    server.shutdown().await;
    Ok(())
}

async fn wait_for_end(ignore_stdin: bool) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let closed = stdin_closed();
    tokio::select! {
        _ = terminate.recv() => {}
        interrupt = tokio::signal::ctrl_c() => interrupt.context("listen for Ctrl-C")?,
        _ = closed, if !ignore_stdin => {}
    }
    Ok(())
}

/// Resolves when standard input ends. The thread ends with the process, because a blocking read
/// cannot be cancelled.
fn stdin_closed() -> oneshot::Receiver<()> {
    let (closed, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut dropped = [0; 512];
        while matches!(input.read(&mut dropped), Ok(read) if read > 0) {}
        // The receiver is dropped if a signal came first.
        let _ = closed.send(());
    });
    receiver
}

fn read_fault(text: &str) -> Result<FaultRule, String> {
    serde_json::from_str(text).map_err(|failure| failure.to_string())
}
