//! Runs one case in a separate process, on an empty store.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use wattle_kit::postgres::Postgres;

use crate::order::Answer;
use crate::peer::contest::{Contest, Entry, Side};
use crate::say;

/// Starts processes of the installed programs.
pub(crate) struct Processes {
    /// The folder in which the peers are installed. Stores are below it, on the measured disk.
    folder: PathBuf,
    seconds: f64,
    postgres: Option<Postgres>,
    databases: usize,
}

impl Processes {
    /// Creates the starter, with a database server if PostgreSQL is installed.
    pub(crate) fn new(folder: &Path, seconds: f64) -> Result<Self> {
        let postgres = match Postgres::start() {
            Ok(server) => Some(server),
            Err(wattle_kit::error::Error::Missing(missing)) => {
                say(&format!("note: PostgreSQL is left out: {missing}"));
                None
            }
            Err(failure) => return Err(failure.into()),
        };
        let processes = Self { folder: folder.to_owned(), seconds, postgres, databases: 0 };
        for (side, program) in [(Side::Python, processes.python()), (Side::Node, processes.node())]
        {
            if !program.exists() {
                let (name, program) = (side.name(), program.display());
                say(&format!("note: {name} is left out: {program} does not exist"));
            }
        }
        Ok(processes)
    }

    /// Returns true if the programs of an entry are installed.
    pub(crate) fn can_run(&self, entry: &Entry) -> bool {
        let program = match entry.side {
            Side::Native | Side::Wasm => true,
            Side::Python => self.python().exists(),
            Side::Node => self.node().exists(),
        };
        program && (self.postgres.is_some() || !entry.store.starts_with("postgres"))
    }

    fn python(&self) -> PathBuf {
        self.folder.join("python/bin/python")
    }

    /// Returns the program for Node.js. It is in the folder of its packages, because Node.js
    /// resolves them from there.
    fn node(&self) -> PathBuf {
        self.folder.join("node/main.mjs")
    }

    /// Measures a case once.
    pub(crate) fn measure(&mut self, contest: &Contest, entry: Entry) -> Result<Answer> {
        let files = TempDir::new_in(&self.folder)?;
        let place = match &self.postgres {
            Some(server) if entry.store.starts_with("postgres") => {
                self.databases += 1;
                server.create_database(&format!("bench_{}", self.databases))?
            }
            _ => files.path().to_string_lossy().into_owned(),
        };
        let order = serde_json::to_string(&contest.order(place, self.seconds))?;
        let mut command = self.command(entry.side)?;
        command.args([contest.case, entry.store, &order]);
        // Disables tracing, which the environment may enable and which would distort the
        // measurement.
        command.env("LANGSMITH_TRACING", "false").env("LANGCHAIN_TRACING_V2", "false");
        let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}", output.status, errors.trim());
        let answer = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&answer)
            .with_context(|| format!("the output is not a result: {answer}{errors}"))
    }

    fn command(&self, side: Side) -> Result<Command> {
        let own = |code| -> Result<Command> {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["own", code]);
            Ok(command)
        };
        match side {
            Side::Native => own("native"),
            Side::Wasm => own("wasm"),
            Side::Python => {
                let mut command = Command::new(self.python());
                // `-B` avoids compiled files next to the sources.
                command.arg("-B");
                command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peer/python/main.py"));
                Ok(command)
            }
            Side::Node => {
                let mut command = Command::new("node");
                command.arg(self.node());
                Ok(command)
            }
        }
    }
}
