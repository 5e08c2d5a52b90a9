//! `wattle serve` of this build with the reference graphs, in a process of its own.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::process::Command;
use wattle_kit::process::Program;
use wattle_suite::guests;
use wattle_suite::place::Place;

use crate::usage::Usage;

/// A server that runs.
pub(crate) struct Served {
    /// Where it answers.
    pub(crate) url: String,
    program: Program,
    /// Its folder, which goes with it.
    _place: Place,
}

impl Served {
    /// Starts a server over an empty store, `redb` or `memory`.
    pub(crate) async fn start(store: &str) -> Result<Self> {
        Self::start_on(&format!("kind = \"{store}\"")).await
    }

    /// Starts a server over a store, given by the settings of it.
    pub(crate) async fn start_on(store: &str) -> Result<Self> {
        let place = Place::new();
        place.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
        place.write("wattle.toml", toml(store));
        let mut command = Command::new(binary()?);
        command.args(["serve", "--json", "--no-watch"]).current_dir(place.root()).env_clear();
        let mut program = Program::start(command)?;
        let line = program.ready(|line| line.starts_with('{')).await?;
        let ready: Value = serde_json::from_str(&line)?;
        let url = ready["address"].as_str().with_context(|| format!("no address: {line}"))?;
        Ok(Self { url: url.to_owned(), program, _place: place })
    }

    /// What it has taken so far.
    pub(crate) fn usage(&self) -> Result<Usage> {
        let id = self.program.id().context("the server has ended")?;
        Usage::of(&id.to_string())
    }

    /// Everything that it said.
    pub(crate) fn output(&self) -> String {
        self.program.output()
    }

    /// Kills it.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.program.kill().await?;
        Ok(())
    }

    /// Ends it.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.program.terminate().await?;
        Ok(())
    }
}

/// Beside this program, where cargo puts both.
fn binary() -> Result<PathBuf> {
    let binary = std::env::current_exe()?.with_file_name("wattle");
    let shown = binary.display();
    ensure!(binary.is_file(), "{shown} is missing; run `cargo xtask bench`, which builds it");
    Ok(binary)
}

/// Defaults, but for the number of requests that one client may have open.
fn toml(store: &str) -> String {
    format!(
        r#"
data = "data"
plugins = "plugins"
[server]
listen = "127.0.0.1:0"
[server.limits]
open = 100000
[store]
{store}
[apps.reference]
path = "{app}"
components = {{ reference = "{component}" }}
"#,
        app = guests::root().join("tests/clients/graphs").display(),
        component = guests::path("wattle-app-reference").display(),
    )
}
