//! Clients, pages and guests that tests need and `cargo xtask` provides: third-party clients and
//! servers, the pages of the applications, the studio, and guests that other toolchains build.

use std::env;
use std::path::{Path, PathBuf};

use crate::program::has_node;
use crate::{Missing, Program};

/// The command that installs the clients.
const INSTALL: &str = "cargo xtask clients";

/// The command that installs the client [`PEERS`].
const INSTALL_PEERS: &str = "cargo xtask peers";

/// The command that builds the pages.
const BUILD: &str = "cargo xtask pages";

/// A program below `tests/clients` that runs once for each simulated user of a test: the folder and
/// the file. It is bundled with all of its imports, which cuts its start time to a quarter.
pub const BUNDLED: (&str, &str) = ("ai-sdk", "user.mjs");

/// The client with the servers and gateways that only `cargo xtask peers` installs.
pub const PEERS: &str = "peers";

/// The folder below the folder of installed clients in which guests are built by other toolchains.
pub const TOOLCHAINS: &str = "toolchains";

/// The folder with the finished guests, below [`TOOLCHAINS`].
pub const GUESTS: &str = "guests";

/// The file name of the bundle of [`BUNDLED`], in the folder of each client that the program uses.
pub const BUNDLE: &str = "user.bundle.mjs";

/// Returns the folder of an installed client for Node.js, by its name below `tests/clients`.
///
/// # Errors
///
/// [`Missing`] if Node.js is missing, or if the client is not installed.
pub fn node(name: &str) -> Result<PathBuf, Missing> {
    let folder = folder(name);
    // What installed the client has checked the version, and each test would start Node.js for it.
    if folder.join("node_modules").is_dir() && has_node() {
        return Ok(folder);
    }
    Program::Node.find()?;
    Err(not_installed(name))
}

/// Returns the bundle of [`BUNDLED`] with a client for Node.js.
///
/// # Errors
///
/// [`Missing`] as in [`node`], and if the bundle does not exist.
pub fn bundle(name: &str) -> Result<PathBuf, Missing> {
    let file = node(name)?.join(BUNDLE);
    if file.is_file() { Ok(file) } else { Err(not_installed(name)) }
}

/// Returns a program in the Python environment of a client, by the client's name below
/// `tests/clients`.
///
/// # Errors
///
/// [`Missing`] if the client is not installed, or if Python is missing.
pub fn python(name: &str, program: &str) -> Result<PathBuf, Missing> {
    let file = folder(name).join("bin").join(program);
    if file.exists() {
        return Ok(file);
    }
    Program::Python.find()?;
    Err(not_installed(name))
}

/// Returns a guest that another toolchain built, by its name.
///
/// # Errors
///
/// [`Missing`] if the guest is not built, or if Node.js, npm or Python is missing.
pub fn toolchain(name: &str) -> Result<PathBuf, Missing> {
    let file = folder(TOOLCHAINS).join(GUESTS).join(format!("{name}.wasm"));
    if file.is_file() {
        return Ok(file);
    }
    for program in [Program::Node, Program::Npm, Program::Python] {
        program.find()?;
    }
    Err(Missing::new(format!("the guest `{name}` of another toolchain"), INSTALL))
}

/// Returns the file of an application's page.
///
/// # Errors
///
/// [`Missing`] if the page is not built, or if Node.js or npm is missing.
pub fn page(app: &str) -> Result<PathBuf, Missing> {
    built(&format!("plugins/apps/{app}/page"), || format!("the page of `{app}`"))
}

/// Returns the file of the studio.
///
/// # Errors
///
/// [`Missing`] if the studio is not built, or if Node.js or npm is missing.
pub fn studio() -> Result<PathBuf, Missing> {
    built("host/studio", || "the studio".to_owned())
}

/// Returns the entry document that was built of the sources in a folder, relative to the root.
fn built(folder: &str, what: impl FnOnce() -> String) -> Result<PathBuf, Missing> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join(folder).join("dist/index.html");
    if file.is_file() {
        return Ok(file);
    }
    Program::Node.find()?;
    Program::Npm.find()?;
    Err(Missing::new(what(), BUILD))
}

/// Returns the folder with the packages of the TypeScript SDK and of the pages.
///
/// # Errors
///
/// [`Missing`] if they are not installed, or if Node.js or npm is missing.
pub fn packages() -> Result<PathBuf, Missing> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/node_modules");
    for program in [Program::Node, Program::Npm] {
        program.find()?;
    }
    if folder.join("componentize-qjs").is_dir() {
        return Ok(folder);
    }
    Err(Missing::new("the packages of the TypeScript SDK", BUILD))
}

fn not_installed(name: &str) -> Missing {
    let install = if name == PEERS { INSTALL_PEERS } else { INSTALL };
    Missing::new(format!("the client `{name}`"), install)
}

/// Returns the folder in which a client is installed, below cargo's target folder. The executable
/// of a test is in `debug/deps` of that folder.
fn folder(name: &str) -> PathBuf {
    let own = env::current_exe().unwrap_or_default();
    let target = own.ancestors().nth(3).map(PathBuf::from).unwrap_or_default();
    target.join("clients").join(name)
}
