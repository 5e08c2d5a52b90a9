//! A host under attack: the real binary in a process of its own, as attackers see it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::Mutex;
use wattle_kit::process::Program;
use wattle_kit::standin::{self, Handle};

use super::app::{self, APP};
use super::honest::{Honest, answer};
use super::hostile::Hostile;
use crate::place::{ENVIRONMENT, Place};

/// What an attacker is seen as. To the host, callers without keys are their addresses; on Linux all of
/// 127.0.0.0/8 leads to this machine.
const ATTACKER: Option<Ipv4Addr> =
    if cfg!(target_os = "linux") { Some(Ipv4Addr::new(127, 0, 0, 2)) } else { None };

/// A running host.
pub struct Host {
    /// Its folder.
    pub place: Place,
    /// Its address.
    pub address: SocketAddr,
    /// The services that behave.
    pub standin: Handle,
    /// Somebody who uses it as it is meant.
    pub honest: Honest,
    hostile: Hostile,
    attacker: Client,
    program: Mutex<Program>,
    id: u32,
}

/// A place with the attackers' app, and the services that it names.
pub struct Prepared {
    /// The folder.
    pub place: Place,
    /// The services that behave.
    pub standin: Handle,
    hostile: Hostile,
}

impl Prepared {
    /// Makes it.
    ///
    /// # Errors
    ///
    /// If there is no port for the services.
    pub async fn new() -> Result<Self> {
        let standin = standin::Server::start(standin::Config::default()).await?;
        let hostile = Hostile::start().await;
        let place = Place::new();
        place.share_compiled_code();
        app::put_app(&place);
        app::put_callers(&place);
        place.write("wattle.toml", app::toml(&standin, &hostile));
        Ok(Self { place, standin, hostile })
    }

    /// Starts the host.
    ///
    /// # Errors
    ///
    /// If it does not listen.
    pub async fn start(self, binary: &Path) -> Result<Host> {
        let Self { place, standin, hostile } = self;
        let mut command = Command::new(binary);
        command.args(["serve", "--json"]).current_dir(place.root());
        command.env_clear().envs(ENVIRONMENT).env("TZ", "UTC");
        let mut program = Program::start(command)?;
        let line = program.ready(|line| line.starts_with('{')).await?;
        let ready: Value = serde_json::from_str(&line)?;
        let address = ready["address"].as_str().and_then(|it| it.strip_prefix("http://"));
        let address = address.with_context(|| format!("no address: {line}"))?.parse()?;
        Ok(Host {
            place,
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
        raise_file_limit();
        Prepared::new().await?.start(binary).await
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What it wrote.
    pub async fn output(&self) -> String {
        self.program.lock().await.output()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Opens a connection as an attacker does.
    ///
    /// # Errors
    ///
    /// If the host takes none.
    pub async fn connect(&self) -> Result<tokio::net::TcpStream> {
        let socket = tokio::net::TcpSocket::new_v4()?;
        // So that the host soon notices that nothing is read.
        socket.set_recv_buffer_size(4_096)?;
        if let Some(address) = ATTACKER {
            socket.bind(SocketAddr::from((address, 0)))?;
        }
        Ok(socket.connect(self.address).await?)
    }

    /// An attacker's `POST`: status and document.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        answer(self.attacker.post(self.url(path)).json(body)).await
    }

    /// The same with a document that is written already.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn post_text(&self, path: &str, body: &'static str) -> Result<(u16, Value)> {
        let request = self.attacker.post(self.url(path)).body(body);
        answer(request.header("content-type", "application/json")).await
    }

    /// An attacker's `GET`: status and document.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn get(&self, path: &str) -> Result<(u16, Value)> {
        answer(self.attacker.get(self.url(path))).await
    }

    /// An attacker runs a graph to its end.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub async fn run(&self, app: &str, graph: &str, input: Value) -> Result<Value> {
        let start = json!({ "graph": graph, "input": input, "wait": true });
        let (status, run) = self.post(&format!("/api/v1/apps/{app}/runs"), &start).await?;
        ensure!(status == 200, "{status}: {run}");
        Ok(run)
    }

    /// A run of an attacker that must fail at a limit.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub async fn fails_at(&self, graph: &str, input: Value, limit: &str) -> Result<()> {
        let run = self.run(APP, graph, input).await?;
        let failure = &run["failure"];
        let is_limit = failure["code"] == "limit" && failure["details"]["limit"] == limit;
        ensure!(is_limit, "graph `{graph}` did not end at `{limit}`: {failure}");
        Ok(())
    }

    /// Kills the host as a power cut would. Its place and services stay.
    ///
    /// # Errors
    ///
    /// If it cannot be killed.
    pub async fn kill(self) -> Result<Prepared> {
        self.program.into_inner().kill().await?;
        Ok(Prepared { place: self.place, standin: self.standin, hostile: self.hostile })
    }

    /// Asks the host to end, as a supervisor does, and waits until it has. It must not have been
    /// cut off by its own limit.
    ///
    /// # Errors
    ///
    /// If it does not end, or not by itself.
    pub async fn terminate(&self) -> Result<ExitStatus> {
        let mut program = self.program.lock().await;
        let status = program.terminate().await?;
        let output = program.output();
        ensure!(status.success(), "the host ended with {status}:\n{output}");
        ensure!(!output.contains("panicked"), "the host panicked:\n{output}");
        Ok(status)
    }
}

/// Attackers open many connections.
fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where it cannot be raised, an attack fails with a reason.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
