//! Programs of others that tests talk to: installed once, below cargo's target folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::guests::target_folder;
use crate::steps::{has, root, run, say};

/// Names of the browser that tests use, on different systems.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A folder below `tests/clients`.
struct Client {
    folder: &'static str,
    /// What it is, for people.
    what: &'static str,
    /// The program.
    program: &'static str,
}

const CLIENTS: &[Client] = &[
    Client { folder: "mcp", what: "the official MCP servers", program: "server.mjs" },
    Client { folder: "page", what: "the driver of a browser", program: "page.mjs" },
];

const MANIFEST: &str = "package.json";

/// The lock file says whether anything changed.
const LOCK: &str = "package-lock.json";

/// Installs them unless they are there. This is the only step of the tests that needs a network.
pub(crate) fn install() -> Result<()> {
    if !has("node", &["--version"]) || !has("npm", &["--version"]) {
        say(
            "note: no node or npm found; tests against the official MCP servers and those with a browser are left out",
        );
        return Ok(());
    }
    if !BROWSERS.iter().any(|name| has(name, &["--version"])) {
        say(
            "note: no browser found; tests with one are left out (Debian: `apt-get install chromium`)",
        );
    }
    CLIENTS.iter().try_for_each(install_one)
}

fn install_one(client: &Client) -> Result<()> {
    let from = root().join("tests/clients").join(client.folder);
    let to = target_folder().join("clients").join(client.folder);
    let unchanged = fs::read(to.join(LOCK)).ok() == fs::read(from.join(LOCK)).ok();
    let complete = unchanged && to.join("node_modules").is_dir();
    fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
    for file in [MANIFEST, client.program, LOCK] {
        copy(&from.join(file), &to.join(file))?;
    }
    if complete {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&to);
    let installed = run(&format!("install {}", client.what), &mut npm);
    if installed.is_err() {
        // Half an installation must not pass for a whole one.
        fs::remove_dir_all(to.join("node_modules")).ok();
    }
    installed
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display())).map(drop)
}
