//! The servers, and how they are started.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::process::Command;
use wattle_kit::process::{Program, free_port};
use wattle_suite::load::Client;

use crate::served::Served;
use crate::usage::Usage;

/// The timeout for the start of the LangGraph server, and the interval of the polls.
const READY_LIMIT: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Number of concurrent jobs of the LangGraph server. It is higher than the default, so that
/// clients up to this number do not wait for each other.
const JOBS: &str = "16";

/// Files of the LangGraph server, below the sources of this crate.
const FILES: [&str; 2] = ["langgraph.json", "graphs.py"];

/// The measured servers.
pub(crate) const CONTESTANTS: [Contestant; 3] =
    [Contestant::Redb, Contestant::Theirs, Contestant::Memory];

/// A server with its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contestant {
    /// Wattle on redb.
    Redb,
    /// Wattle in memory.
    Memory,
    /// The LangGraph server, in memory.
    Theirs,
}

impl Contestant {
    /// Returns the name in tables and files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redb => "wattle redb",
            Self::Memory => "wattle memory",
            Self::Theirs => "langgraph-api",
        }
    }

    /// Returns true if the server is installed.
    pub(crate) fn is_there(self, folder: &Path) -> bool {
        self != Self::Theirs || program(folder).exists()
    }
}

/// Returns the command of the LangGraph server.
fn program(folder: &Path) -> PathBuf {
    folder.join("agent-server/bin/langgraph")
}

/// A running server.
pub(crate) struct Running {
    /// The URL of the server.
    pub(crate) url: String,
    server: Server,
}

enum Server {
    Ours(Served),
    Theirs { program: Program, _files: TempDir },
}

impl Running {
    /// Starts a server and waits until it responds.
    pub(crate) async fn start(folder: &Path, contestant: Contestant) -> Result<Self> {
        let store = match contestant {
            Contestant::Redb => "redb",
            Contestant::Memory => "memory",
            Contestant::Theirs => return start_theirs(folder).await,
        };
        let served = Served::start(store).await?;
        Ok(Self { url: served.url.clone(), server: Server::Ours(served) })
    }

    /// Returns the resource usage so far.
    pub(crate) fn usage(&self) -> Result<Usage> {
        match &self.server {
            Server::Ours(served) => served.usage(),
            Server::Theirs { program, .. } => {
                Usage::of(&program.id().context("the server has ended")?.to_string())
            }
        }
    }

    /// Returns the output of the server.
    pub(crate) fn last_words(&self) -> String {
        match &self.server {
            Server::Ours(served) => served.output(),
            Server::Theirs { program, .. } => program.output(),
        }
    }

    /// Stops the server.
    pub(crate) async fn stop(self) -> Result<()> {
        match self.server {
            Server::Ours(served) => served.stop().await,
            // A regular stop writes all data to a file, which takes long.
            Server::Theirs { mut program, .. } => Ok(program.kill().await?),
        }
    }
}

async fn start_theirs(folder: &Path) -> Result<Running> {
    let files = TempDir::new_in(folder)?;
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("peer/server");
    for file in FILES {
        std::fs::copy(from.join(file), files.path().join(file))?;
    }
    let port = free_port()?.to_string();
    let mut command = Command::new(program(folder));
    command.args(["dev", "--host", "127.0.0.1", "--port", &port, "--n-jobs-per-worker", JOBS]);
    command.args(["--no-browser", "--no-reload", "--server-log-level", "error"]);
    // Disables tracing and analytics, which the environment may enable.
    command.env("LANGSMITH_TRACING", "false").env("LANGCHAIN_TRACING_V2", "false");
    command.env("LANGGRAPH_CLI_NO_ANALYTICS", "1").env_remove("LANGSMITH_API_KEY");
    let program = Program::start({
        command.current_dir(files.path());
        command
    })?;
    let url = format!("http://127.0.0.1:{port}");
    let server = Server::Theirs { program, _files: files };
    wait_for(Running { url, server }).await
}

async fn wait_for(running: Running) -> Result<Running> {
    let client = Client::new(&running.url)?;
    let began = Instant::now();
    while client.get("/ok").await.is_err() {
        if began.elapsed() > READY_LIMIT {
            bail!("the server did not start:\n{}", running.last_words());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(running)
}
