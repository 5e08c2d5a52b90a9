//! The browser that all tests of pages share: one start in place of one for each test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use wattle_needs::Program;

use crate::shell::target_folder;

/// The environment variable with the address of the browser, for the programs of `tests/clients/page`.
pub(crate) const ADDRESS: &str = "WATTLE_BROWSER";

/// A running browser. It ends with this value.
pub(crate) struct Browser {
    address: String,
    program: Child,
}

impl Browser {
    /// Starts the browser, if the machine has one. The client `page` must be installed.
    ///
    /// # Errors
    ///
    /// If the browser does not start.
    pub(crate) fn start() -> Result<Option<Self>> {
        let (Ok(chromium), Ok(_)) = (Program::Chromium.find(), Program::Node.find()) else {
            return Ok(None);
        };
        let mut command = Command::new("node");
        command.arg("browser.mjs").current_dir(target_folder().join("clients/page"));
        command.env("CHROMIUM", chromium).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().context("cannot start node")?;
        let mut address = String::new();
        let output = program.stdout.take().context("the browser has no output")?;
        let read = BufReader::new(output).read_line(&mut address);
        let browser = Self { address: address.trim().to_owned(), program };
        read.context("cannot read what the browser says")?;
        ensure!(!browser.address.is_empty(), "the browser does not start");
        Ok(Some(browser))
    }

    /// Where it can be reached.
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
