//! Host and stand-ins as child processes, on free ports.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use reqwest::{RequestBuilder, Response};
use serde_json::{Map, Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Column, ConnectOptions, Connection, Row, ValueRef};
use tokio::process::Command;
use wattle_kit::process::Program;

use crate::config::Demo;
use crate::tour;

/// A running host and its stand-ins. Dropping it ends both processes.
pub(crate) struct Host {
    /// The URL of the host.
    pub(crate) address: String,
    /// The URL of the stand-ins.
    pub(crate) standins: String,
    /// The data folder of the host.
    pub(crate) data: PathBuf,
    /// The configuration file of the host.
    pub(crate) config: PathBuf,
    /// The executable of the host.
    pub(crate) binary: PathBuf,
    /// Names and values of the environment variables of the host.
    variables: Vec<(String, String)>,
    server: Program,
    standin: Program,
    client: reqwest::Client,
}

impl Host {
    /// Starts stand-ins and host. Configuration and data are in `folder`, by default a new one.
    pub(crate) async fn start(root: &Path, folder: Option<PathBuf>) -> Result<Self> {
        let programs = std::env::current_exe()?.parent().context("no folder")?.to_owned();
        let folder = match folder {
            Some(folder) => folder,
            None => tempfile::Builder::new().prefix("wattle-demo-").tempdir()?.keep(),
        };
        std::fs::create_dir_all(&folder)?;
        let mut standin = Program::start({
            let mut command = Command::new(programs.join("wattle-standin"));
            command.arg("--print-addr");
            command
        })?;
        let addresses: Value =
            serde_json::from_str(&standin.ready(|line| line.starts_with('{')).await?)?;
        let standins = addresses["base_url"].as_str().context("no address")?.to_owned();
        let config = folder.join("wattle.toml");
        let Demo { text, variables } = Demo::read(root, &folder, &standins)?;
        tour::write(&folder)?;
        std::fs::write(&config, text)?;
        let binary = programs.join("wattle");
        let (server, address) = serve(&binary, &config, &variables).await?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let data = folder.join("data");
        Ok(Self { address, standins, data, config, binary, variables, server, standin, client })
    }

    /// Kills the host with SIGKILL and starts it again at the same address.
    pub(crate) async fn kill_and_restart(&mut self) -> Result<()> {
        self.server.kill().await?;
        (self.server, self.address) = serve(&self.binary, &self.config, &self.variables).await?;
        Ok(())
    }

    /// Posts a JSON document to an app and parses the response.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(path, self.client.post(format!("{}{path}", self.address)).json(body)).await
    }

    /// Gets a JSON document from an app.
    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.send(path, self.client.get(format!("{}{path}", self.address))).await
    }

    /// Posts a JSON document to an app and returns the response before its body is complete.
    pub(crate) async fn open(&self, path: &str, body: &Value) -> Result<Response> {
        let request = self.client.post(format!("{}{path}", self.address)).json(body);
        self.good(path, request).await
    }

    /// Gets the body of a response as text.
    pub(crate) async fn text(&self, path: &str) -> Result<String> {
        let request = self.client.get(format!("{}{path}", self.address));
        Ok(self.good(path, request).await?.text().await?)
    }

    /// Gets a file from the host or the stand-ins, by its URL.
    pub(crate) async fn bytes(&self, address: &str) -> Result<Vec<u8>> {
        Ok(self.good(address, self.client.get(address)).await?.bytes().await?.to_vec())
    }

    /// Returns all requests that the stand-ins have received.
    pub(crate) async fn journal(&self) -> Result<Value> {
        let request = self.client.get(format!("{}/__requests", self.standins));
        Ok(self.good("/__requests", request).await?.json().await?)
    }

    /// Posts an order to the control endpoints of the stand-ins.
    pub(crate) async fn order(&self, path: &str, order: &Value) -> Result<()> {
        let request = self.client.post(format!("{}{path}", self.standins)).json(order);
        self.good(path, request).await.map(|_| ())
    }

    /// The folder of this run of the demo.
    pub(crate) fn folder(&self) -> Result<&Path> {
        self.config.parent().context("no folder")
    }

    async fn send(&self, path: &str, request: RequestBuilder) -> Result<Value> {
        let text = self.good(path, request).await?.text().await?;
        serde_json::from_str(&text)
            .with_context(|| format!("the response of {path} is not JSON: {text}"))
    }

    async fn good(&self, path: &str, request: RequestBuilder) -> Result<Response> {
        let response = request.send().await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        bail!("{path} returned {status}: {}\n{}", response.text().await?, self.server.output());
    }

    /// Queries the database file of the app `asset` directly.
    pub(crate) async fn rows(&self, query: &'static str) -> Result<Vec<Value>> {
        let options =
            SqliteConnectOptions::new().filename(self.data.join("asset.db")).read_only(true);
        let mut connection = options.connect().await?;
        let rows = sqlx::query(query).fetch_all(&mut connection).await?;
        connection.close().await?;
        Ok(rows.iter().map(row).collect())
    }

    /// Runs a command of the `wattle` program and returns its output.
    pub(crate) async fn wattle(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        let output = command.arg("--config").arg(&self.config).args(arguments).output().await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("`wattle {}`: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(text)
    }

    /// Ends host and stand-ins.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.server.terminate().await?;
        self.standin.terminate().await?;
        Ok(())
    }
}

/// Starts the host, and returns it with its URL.
async fn serve(
    binary: &Path,
    config: &Path,
    variables: &[(String, String)],
) -> Result<(Program, String)> {
    let mut command = Command::new(binary);
    command.arg("--config").arg(config).args(["--json", "serve"]);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let mut server = Program::start(command)?;
    let ready: Value =
        serde_json::from_str(&server.ready(|line| line.starts_with("{\"address\"")).await?)?;
    let address = ready["address"].as_str().context("no address")?.to_owned();
    Ok((server, address))
}

fn row(row: &SqliteRow) -> Value {
    let fields: Map<String, Value> = row
        .columns()
        .iter()
        .enumerate()
        .map(|(index, column)| (column.name().to_owned(), value(row, index)))
        .collect();
    Value::Object(fields)
}

fn value(row: &SqliteRow, index: usize) -> Value {
    if row.try_get_raw(index).is_ok_and(|raw| raw.is_null()) {
        return Value::Null;
    }
    if let Ok(number) = row.try_get::<i64, _>(index) {
        return json!(number);
    }
    if let Ok(number) = row.try_get::<f64, _>(index) {
        return json!(number);
    }
    row.try_get::<Option<String>, _>(index).map_or(Value::Null, |text| json!(text))
}
