//! What `cargo xtask` installs and builds for tests: clients of others, and the pages of the
//! applications.

use std::env;
use std::path::{Path, PathBuf};

use crate::{Missing, Program};

/// The command that installs the clients.
const INSTALL: &str = "cargo xtask clients";

/// The command that installs [`PEERS`].
const INSTALL_PEERS: &str = "cargo xtask peers";

/// The command that builds the pages.
const BUILD: &str = "cargo xtask pages";

/// A program that starts once for each user of a test, below `tests/clients`. It is bundled with all that it imports, and
/// so starts in a fourth of the time.
pub const BUNDLED: (&str, &str) = ("ai-sdk", "user.mjs");

/// The client with servers and gateways that only `cargo xtask peers` installs.
pub const PEERS: &str = "peers";

/// The file of the bundle of [`BUNDLED`], in the folder of each client that the program uses.
pub const BUNDLE: &str = "user.bundle.mjs";

/// The folder of a client for Node.js, by its name below `tests/clients`.
///
/// # Errors
///
/// [`Missing`] if there is no Node.js, or if the client is not installed.
pub fn node(name: &str) -> Result<PathBuf, Missing> {
    Program::Node.find()?;
    let folder = folder(name);
    if folder.join("node_modules").is_dir() {
        return Ok(folder);
    }
    Err(not_installed(name))
}

/// The bundle of [`BUNDLED`] with a client for Node.js.
///
/// # Errors
///
/// [`Missing`] as in [`node`], and if the program was not bundled.
pub fn bundle(name: &str) -> Result<PathBuf, Missing> {
    let file = node(name)?.join(BUNDLE);
    if file.is_file() { Ok(file) } else { Err(not_installed(name)) }
}

/// A program in the Python environment of a client, by the client's name below `tests/clients`.
///
/// # Errors
///
/// [`Missing`] if the client is not installed, or if there is no Python to install it with.
pub fn python(name: &str, program: &str) -> Result<PathBuf, Missing> {
    let file = folder(name).join("bin").join(program);
    if file.exists() {
        return Ok(file);
    }
    Program::Python.find()?;
    Err(not_installed(name))
}

/// The file of an application's page.
///
/// # Errors
///
/// [`Missing`] if the page is not built, or if there is no Node.js to build it with.
pub fn page(app: &str) -> Result<PathBuf, Missing> {
    let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/apps");
    let file = apps.join(app).join("page/dist/index.html");
    if file.is_file() {
        return Ok(file);
    }
    Program::Node.find()?;
    Program::Npm.find()?;
    Err(Missing::new(format!("the page of `{app}`"), BUILD))
}

fn not_installed(name: &str) -> Missing {
    let install = if name == PEERS { INSTALL_PEERS } else { INSTALL };
    Missing::new(format!("the client `{name}`"), install)
}

/// Below cargo's target folder, in which the program of a test is at `debug/deps`.
fn folder(name: &str) -> PathBuf {
    let own = env::current_exe().unwrap_or_default();
    let target = own.ancestors().nth(3).map(PathBuf::from).unwrap_or_default();
    target.join("clients").join(name)
}
