//! A host under attack: the real binary in a separate process, as attackers see it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use reqwest::{Body, Client};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::Mutex;
use wattle_kit::process::{self, Program};
use wattle_kit::standin::{self, Handle};

use super::app::{self, APP};
use super::honest::{Honest, answer};
use super::hostile::Hostile;
use crate::workspace::{ENVIRONMENT, Workspace};

/// The address from which attackers connect. The host identifies callers without keys by their
/// addresses. On Linux, all addresses of 127.0.0.0/8 are local.
const ATTACKER: Option<Ipv4Addr> =
    if cfg!(target_os = "linux") { Some(Ipv4Addr::new(127, 0, 0, 2)) } else { None };

/// Maximum memory of a host during an attack, in bytes. The limits of the host bound each piece of
/// untrusted data; this number bounds what they add up to.
pub const MOST_RSS_BYTES: u64 = 1_000_000_000;

/// A running host.
pub struct Host {
    /// The folder of the host.
    pub workspace: Workspace,
    /// The address on which the host listens.
    pub address: SocketAddr,
    /// The stand-ins of services that are not hostile.
    pub standin: Handle,
    /// The honest caller.
    pub honest: Honest,
    hostile: Hostile,
    attacker: Client,
    program: Mutex<Program>,
    id: u32,
}

/// A folder with the attackers' app, and the services that its configuration names.
pub struct Prepared {
    /// The folder.
    pub workspace: Workspace,
    /// The stand-ins of services that are not hostile.
    pub standin: Handle,
    hostile: Hostile,
}

impl Prepared {
    /// Creates the folder and starts the services.
    ///
    /// # Errors
    ///
    /// If no port is free for the services.
    pub async fn new() -> Result<Self> {
        let standin = standin::Server::start(standin::Config::default()).await?;
        let hostile = Hostile::start().await;
        let workspace = Workspace::new();
        workspace.share_compiled_code();
        app::put_app(&workspace);
        app::put_callers(&workspace);
        app::put_crowd(&workspace);
        workspace.write("wattle.toml", app::toml(&standin, &hostile));
        Ok(Self { workspace, standin, hostile })
    }

    /// Gives the host a cache of compiled code of its own, instead of the one that tests share. The
    /// host compiles its components at its first start.
    ///
    /// # Errors
    ///
    /// If the link to the shared cache cannot be removed.
    pub fn unshare_compiled_code(&self) -> Result<()> {
        // The host creates a folder in place of the link.
        fs::remove_file(self.workspace.code_cache()).context("the link to the shared cache")
    }

    /// Starts the host.
    ///
    /// # Errors
    ///
    /// If it does not listen.
    pub async fn start(self, binary: &Path) -> Result<Host> {
        raise_file_limit();
        let Self { workspace, standin, hostile } = self;
        let mut command = Command::new(binary);
        command.args(["serve", "--json"]).current_dir(workspace.root());
        command.env_clear().envs(ENVIRONMENT).env("TZ", "UTC");
        let mut program = Program::start(command)?;
        let line = program.ready(|line| line.starts_with('{')).await?;
        let ready: Value = serde_json::from_str(&line)?;
        let address = ready["address"].as_str().and_then(|it| it.strip_prefix("http://"));
        let address = address.with_context(|| format!("no address: {line}"))?.parse()?;
        Ok(Host {
            workspace,
            address,
            standin,
            hostile,
            honest: Honest::new(format!("http://{address}"))?,
            attacker: Client::builder()
                .no_proxy()
                .local_address(ATTACKER.map(Into::into))
                .build()?,
            id: program.id().context("the host has ended")?,
            program: Mutex::new(program),
        })
    }
}

impl Host {
    /// Starts a host with the attackers' app.
    ///
    /// # Errors
    ///
    /// If it does not listen.
    pub async fn start(binary: &Path) -> Result<Self> {
        Prepared::new().await?.start(binary).await
    }

    /// Returns the process id of the host.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the peak memory of the host in bytes, or `None` on systems that do not report it.
    /// The processes that compile components do not count: each has a limit of its own.
    ///
    /// # Errors
    ///
    /// If the host has ended.
    pub fn peak_rss_bytes(&self) -> Result<Option<u64>> {
        Ok(process::peak_rss_bytes(&self.id.to_string())?)
    }

    /// Returns the output of the host.
    pub async fn output(&self) -> String {
        self.program.lock().await.output()
    }

    /// Returns the URL of a hostile service.
    pub(super) fn hostile_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.hostile.address)
    }

    /// Returns the number of pages that the host has read of an endless tool list.
    pub(super) fn listed_pages(&self) -> u64 {
        self.hostile.pages()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Opens a connection as an attacker.
    ///
    /// # Errors
    ///
    /// If the host does not accept it.
    pub async fn connect(&self) -> Result<tokio::net::TcpStream> {
        let socket = tokio::net::TcpSocket::new_v4()?;
        // A small buffer fills soon, so that the host notices early that the client does not read.
        socket.set_recv_buffer_size(4_096)?;
        if let Some(address) = ATTACKER {
            socket.bind(SocketAddr::from((address, 0)))?;
        }
        Ok(socket.connect(self.address).await?)
    }

    /// Sends a `POST` as an attacker and returns status and document.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub async fn post(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        answer(self.attacker.post(self.url(path)).json(body)).await
    }

    /// Sends a `POST` with a serialized document as an attacker, and returns status and document.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub async fn post_text(&self, path: &str, body: impl Into<Body>) -> Result<(u16, Value)> {
        let request = self.attacker.post(self.url(path)).body(body);
        answer(request.header("content-type", "application/json")).await
    }

    /// Sends a `GET` as an attacker and returns status and document.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub async fn get(&self, path: &str) -> Result<(u16, Value)> {
        answer(self.attacker.get(self.url(path))).await
    }

    /// Runs a graph to its end as an attacker.
    ///
    /// # Errors
    ///
    /// If the run cannot be started.
    pub async fn run(&self, app: &str, graph: &str, input: Value) -> Result<Value> {
        let start = json!({ "graph": graph, "input": input, "wait": true });
        let (status, run) = self.post(&format!("/api/v1/apps/{app}/runs"), &start).await?;
        ensure!(status == 200, "{status}: {run}");
        Ok(run)
    }

    /// Runs a graph as an attacker. The run must fail at a limit.
    ///
    /// # Errors
    ///
    /// If it does not fail at this limit.
    pub async fn fails_at(&self, graph: &str, input: Value, limit: &str) -> Result<()> {
        let run = self.run(APP, graph, input).await?;
        let failure = &run["failure"];
        let is_limit = failure["code"] == "limit" && failure["details"]["limit"] == limit;
        ensure!(is_limit, "graph `{graph}` did not end at `{limit}`: {failure}");
        Ok(())
    }

    /// Kills the host, like a power cut. Its folder and the services remain.
    ///
    /// # Errors
    ///
    /// If the process cannot be killed.
    pub async fn kill(self) -> Result<Prepared> {
        self.program.into_inner().kill().await?;
        Ok(Prepared { workspace: self.workspace, standin: self.standin, hostile: self.hostile })
    }

    /// Asks the host to stop, like a supervisor, and waits until it has exited. A stop that the
    /// host's own time limit cuts off is an error.
    ///
    /// # Errors
    ///
    /// If it does not end, ends with another status, or has panicked.
    pub async fn terminate(&self) -> Result<ExitStatus> {
        let mut program = self.program.lock().await;
        let status = program.terminate().await?;
        let output = program.output();
        ensure!(status.success(), "the host ended with {status}:\n{output}");
        ensure!(!output.contains("panicked"), "the host panicked:\n{output}");
        Ok(status)
    }
}

/// Raises the limit of open files, because attackers open many connections.
fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // If the limit cannot be raised, the attack fails with the reason.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
