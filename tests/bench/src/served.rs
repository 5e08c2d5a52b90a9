//! `wattle serve` of this build with the reference graphs, in a separate process.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::process::Command;
use wattle_kit::process::Program;
use wattle_suite::guests;
use wattle_suite::workspace::{ENVIRONMENT, Workspace};

use crate::usage::Usage;

/// A running server.
pub(crate) struct Served {
    /// The URL of the server.
    pub(crate) url: String,
    program: Program,
    /// The folder of the server, which is deleted with this value.
    _workspace: Workspace,
}

impl Served {
    /// Starts a server with an empty store, `redb` or `memory`.
    pub(crate) async fn start(store: &str) -> Result<Self> {
        Self::start_on(&format!("kind = \"{store}\"")).await
    }

    /// Starts a server with the given settings of `[store]`.
    pub(crate) async fn start_on(store: &str) -> Result<Self> {
        Self::start_in(Workspace::new(), store).await
    }

    /// Starts a server on the data of a folder, with the given settings of `[store]`.
    pub(crate) async fn start_in(workspace: Workspace, store: &str) -> Result<Self> {
        Self::start_with(workspace, store, "").await
    }

    /// Starts a server on the files of a folder, with the given settings of `[store]` and further
    /// tables of the configuration. Its environment has the keys of stand-ins.
    pub(crate) async fn start_with(
        workspace: Workspace,
        store: &str,
        tables: &str,
    ) -> Result<Self> {
        workspace.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
        workspace.write("wattle.toml", toml(store) + tables);
        let mut command = Command::new(binary()?);
        command.args(["serve", "--json", "--no-watch"]).current_dir(workspace.root());
        command.env_clear().envs(ENVIRONMENT);
        let mut program = Program::start(command)?;
        let line = program.ready(|line| line.starts_with('{')).await?;
        let ready: Value = serde_json::from_str(&line)?;
        let url = ready["address"].as_str().with_context(|| format!("no address: {line}"))?;
        Ok(Self { url: url.to_owned(), program, _workspace: workspace })
    }

    /// Returns the resource usage so far.
    pub(crate) fn usage(&self) -> Result<Usage> {
        let id = self.program.id().context("the server has ended")?;
        Usage::of(&id.to_string())
    }

    /// Returns the output of the server.
    pub(crate) fn output(&self) -> String {
        self.program.output()
    }

    /// Kills the server.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.program.kill().await?;
        Ok(())
    }

    /// Stops the server.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.program.terminate().await?;
        Ok(())
    }
}

/// Returns the `wattle` program, which cargo builds into the folder of this program.
pub(crate) fn binary() -> Result<PathBuf> {
    let binary = std::env::current_exe()?.with_file_name("wattle");
    let shown = binary.display();
    ensure!(binary.is_file(), "{shown} is missing; run `cargo xtask bench`, which builds it");
    Ok(binary)
}

/// Returns the configuration: defaults, except for the number of open requests of one client, and
/// the time that a start waits for the app.
fn toml(store: &str) -> String {
    format!(
        r#"
data = "data"
plugins = "plugins"
[server]
listen = "127.0.0.1:0"
load_wait = "10m"
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
