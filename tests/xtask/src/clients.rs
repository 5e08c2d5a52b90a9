//! Third-party programs for tests, installed once below cargo's target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use wattle_needs::Program;
use wattle_needs::clients::{BUNDLE, BUNDLED, TOOLCHAINS};

use crate::shell::{root, say, target_folder};
use crate::step::run;
use crate::{files, python, python_sdk};

/// A client for Node.js, which is installed in a folder of its own.
struct Client {
    /// The folder below `tests/clients`, and below the folder of installed clients.
    folder: &'static str,
    /// A description for step names.
    what: &'static str,
    /// The folder below `tests/clients` whose programs (`*.mjs`) use the client. They are copied
    /// into the installed client, because Node.js resolves packages from the folder of a program.
    programs: &'static str,
}

/// The bundler, below the folder of installed clients.
const BUNDLER: &str = "react/node_modules/esbuild/bin/esbuild";

/// The lock file that pins the bundler's version.
const BUNDLER_LOCK: &str = "react/package-lock.json";

/// The file with the inputs of a bundle, in the folder of the bundle.
const BUNDLE_INPUTS: &str = "user.bundle.inputs";

/// Defines `require` in bundles. CommonJS libraries load modules of Node.js with it.
const REQUIRE: &str = "import { createRequire } from 'node:module'; \
    const require = createRequire(import.meta.url);";

const CLIENTS: &[Client] = &[
    Client { folder: "mcp", what: "the official MCP servers", programs: "mcp" },
    Client { folder: "gateway", what: "a gateway of model providers", programs: "gateway" },
    Client { folder: "page", what: "the driver of a browser", programs: "page" },
    Client { folder: "ag-ui", what: "the AG-UI client", programs: "ag-ui" },
    Client { folder: "ag-ui-older", what: "an older AG-UI client", programs: "ag-ui" },
    Client {
        folder: "langgraph-js",
        what: "the LangGraph client for JavaScript",
        programs: "langgraph-js",
    },
    Client {
        folder: "langgraph-js-older",
        what: "an older LangGraph client for JavaScript",
        programs: "langgraph-js",
    },
    Client { folder: "react", what: "the LangGraph hooks for React", programs: "react" },
    Client { folder: "react-older", what: "older LangGraph hooks for React", programs: "react" },
    Client { folder: "ai-sdk/5", what: "the chat hook of AI SDK 5", programs: "ai-sdk" },
    Client { folder: "ai-sdk/6", what: "the chat hook of AI SDK 6", programs: "ai-sdk" },
    Client { folder: "ai-sdk/7", what: "the chat hook of AI SDK 7", programs: "ai-sdk" },
    Client { folder: TOOLCHAINS, what: "the toolchains for JavaScript", programs: TOOLCHAINS },
];

/// Clients for Python: their folders below `tests/clients` and below the folder of installed
/// clients, and descriptions for step names. Their programs are not copied.
const PYTHON: &[(&str, &str)] = &[
    ("langgraph-py", "the LangGraph client for Python"),
    ("langgraph-py-older", "an older LangGraph client for Python"),
    ("schemathesis", "Schemathesis"),
    ("mcp-py", "an MCP server on an old library for Python"),
    (PYTHON_TOOLCHAINS, "the toolchains for Python and C"),
];

/// The folder of the toolchains that are packages for Python.
pub(crate) const PYTHON_TOOLCHAINS: &str = "toolchains-py";

const MANIFEST: &str = "package.json";

/// The lock file. A client is reinstalled if it has changed.
pub(crate) const LOCK: &str = "package-lock.json";

/// Installs the clients and the packages of the Python SDK that are missing. This is the only step of
/// the tests that needs a network.
pub(crate) fn install() -> Result<()> {
    install_python()?;
    if let Err(missing) = Program::Node.find().and(Program::Npm.find()) {
        say(&format!("note: no client for Node.js is installed: {missing}"));
        return Ok(());
    }
    CLIENTS.iter().try_for_each(install_one)
}

fn install_python() -> Result<()> {
    if let Err(missing) = Program::Python.find() {
        say(&format!("note: no client for Python is installed: {missing}"));
        return Ok(());
    }
    PYTHON.iter().try_for_each(|(folder, what)| {
        let from = root().join("tests/clients").join(folder);
        python::install(what, &from, &target_folder().join("clients").join(folder))
    })?;
    python_sdk::install()
}

fn install_one(client: &Client) -> Result<()> {
    let clients = root().join("tests/clients");
    let from = clients.join(client.folder);
    let to = target_folder().join("clients").join(client.folder);
    let complete =
        files::same(&from.join(LOCK), &to.join(LOCK)) && to.join("node_modules").is_dir();
    files::make(&to)?;
    for file in [MANIFEST, LOCK] {
        copy(&from.join(file), &to)?;
    }
    for file in programs(&clients.join(client.programs))? {
        copy(&file, &to)?;
    }
    if !complete {
        install_packages(client, &to)?;
    }
    let (folder, program) = BUNDLED;
    if client.programs == folder { bundle(client, &to, program) } else { Ok(()) }
}

/// Returns the programs in a folder, sorted by name.
fn programs(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = files.collect::<Result<_>>()?;
    files.retain(|file| {
        let is_bundle = file.file_name().is_some_and(|name| name == BUNDLE);
        file.extension().is_some_and(|ending| ending == "mjs") && !is_bundle
    });
    files.sort();
    Ok(files)
}

fn install_packages(client: &Client, to: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(to);
    let installed = run(&format!("install {}", client.what), &mut npm);
    if installed.is_err() {
        // A partial installation must not count as complete.
        fs::remove_dir_all(to.join("node_modules")).ok();
    }
    installed
}

/// Bundles a program of a client in its folder, unless a bundle with the same programs, packages
/// and bundler exists. The client with [`BUNDLER`] must be installed.
fn bundle(client: &Client, folder: &Path, program: &str) -> Result<()> {
    let clients = target_folder().join("clients");
    let mut inputs = Vec::new();
    for file in [programs(folder)?, vec![folder.join(LOCK), clients.join(BUNDLER_LOCK)]].concat() {
        inputs.extend(fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    let (file, bundled) = (folder.join(BUNDLE), folder.join(BUNDLE_INPUTS));
    if file.is_file() && fs::read(&bundled).is_ok_and(|bundled| bundled == inputs) {
        return Ok(());
    }
    // If the bundler fails, an outdated bundle must not remain.
    fs::remove_file(&file).ok();
    let mut command = Command::new("node");
    command.arg(clients.join(BUNDLER)).arg(folder.join(program));
    command.args(["--bundle", "--platform=node", "--format=esm", "--log-level=warning"]);
    command.arg(format!("--banner:js={REQUIRE}")).arg(format!("--outfile={}", file.display()));
    run(&format!("bundle the program for {}", client.what), &mut command)?;
    fs::write(&bundled, inputs).with_context(|| format!("cannot write {}", bundled.display()))
}

/// Copies a file into a folder.
fn copy(file: &Path, folder: &Path) -> Result<()> {
    files::copy(file, &folder.join(file.file_name().unwrap_or_default()))
}
