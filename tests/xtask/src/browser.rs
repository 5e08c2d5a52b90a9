//! The browser that all tests of pages share, so that it starts only once.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use wattle_needs::Program;

use crate::shell::target_folder;

/// The environment variable with the URL of the browser, for the programs of `tests/clients/page`.
pub(crate) const ADDRESS: &str = "WATTLE_BROWSER";

/// The program that starts the browser, in the folder of the client `page`.
pub(crate) const PROGRAM: &str = "browser.js";

/// A running browser. Dropping it closes the browser.
pub(crate) struct Browser {
    address: String,
    program: Child,
}

impl Browser {
    /// Starts the browser. Returns `None` if the machine has no Chromium or no Node.js. The client
    /// `page` must be installed.
    ///
    /// # Errors
    ///
    /// If the browser does not start.
    pub(crate) fn start() -> Result<Option<Self>> {
        let (Ok(chromium), Ok(_)) = (Program::Chromium.find(), Program::Node.find()) else {
            return Ok(None);
        };
        let mut command = Command::new("node");
        command.arg(PROGRAM).current_dir(target_folder().join("clients/page"));
        command.env("CHROMIUM", chromium).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().context("cannot start node")?;
        let mut address = String::new();
        let output = program.stdout.take().context("the browser has no output")?;
        let read = BufReader::new(output).read_line(&mut address);
        let browser = Self { address: address.trim().to_owned(), program };
        read.context("cannot read the output of the browser")?;
        ensure!(!browser.address.is_empty(), "the browser did not start");
        Ok(Some(browser))
    }

    /// Returns the URL of the browser.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The program closes the browser at the end of its input.
        drop(self.program.stdin.take());
        let _ = self.program.wait();
    }
}
