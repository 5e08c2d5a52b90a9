//! Programs of others that tests talk to: installed once, below cargo's target folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use wattle_needs::Program;

use crate::shell::{root, say, target_folder};
use crate::step::run;
use crate::{files, python};

/// What is installed in a folder of its own.
struct Client {
    /// The folder below `tests/clients`, and below that of all installed clients.
    folder: &'static str,
    /// What it is, for people.
    what: &'static str,
    /// The folder below `tests/clients` whose programs (`*.mjs`) use it. They are copied, since a
    /// program finds libraries only beside itself.
    programs: &'static str,
}

/// A program that starts once for each user of a test, and the folder below `tests/clients` that has
/// it. It is bundled with all that it imports, into a file with the ending [`BUNDLE`], and so starts in
/// a fourth of the time.
const BUNDLED: (&str, &str) = ("ai-sdk", "user.mjs");

/// Ending of a bundled program.
const BUNDLE: &str = "bundle.mjs";

/// What bundles programs, below the folder of installed clients.
const BUNDLER: &str = "react/node_modules/esbuild/bin/esbuild";

/// Libraries that are no ECMAScript modules load those of Node.js by `require`.
const REQUIRE: &str = "import { createRequire } from 'node:module'; \
    const require = createRequire(import.meta.url);";

const CLIENTS: &[Client] = &[
    Client { folder: "mcp", what: "the official MCP servers", programs: "mcp" },
    Client { folder: "page", what: "the driver of a browser", programs: "page" },
    Client { folder: "ag-ui", what: "the AG-UI client", programs: "ag-ui" },
    Client {
        folder: "langgraph-js",
        what: "the LangGraph client for JavaScript",
        programs: "langgraph-js",
    },
    Client { folder: "react", what: "the LangGraph hooks for React", programs: "react" },
    Client { folder: "ai-sdk/5", what: "the chat hook of AI SDK 5", programs: "ai-sdk" },
    Client { folder: "ai-sdk/6", what: "the chat hook of AI SDK 6", programs: "ai-sdk" },
    Client { folder: "ai-sdk/7", what: "the chat hook of AI SDK 7", programs: "ai-sdk" },
];

/// Programs of Python: their folders below `tests/clients`, also those of their environments, and
/// what they are. What tests let them run stays where it is.
const PYTHON: &[(&str, &str)] = &[
    ("langgraph-py", "the LangGraph client for Python"),
    ("schemathesis", "what tests APIs by their descriptions"),
];

const MANIFEST: &str = "package.json";

/// The lock file says whether anything changed.
const LOCK: &str = "package-lock.json";

/// Installs them unless they are there. This is the only step of the tests that needs a network.
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
    })
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
    let mut is_same = complete;
    for entry in fs::read_dir(clients.join(client.programs))? {
        let file = entry?.path();
        if file.extension().is_some_and(|ending| ending == "mjs") {
            is_same &= files::same(&file, &to.join(file.file_name().unwrap_or_default()));
            copy(&file, &to)?;
        }
    }
    if !complete {
        install_packages(client, &to)?;
    }
    let (folder, program) = BUNDLED;
    let file = to.join(program).with_extension(BUNDLE);
    if client.programs == folder && !(is_same && file.is_file()) {
        bundle(client, &to.join(program), &file)?;
    }
    Ok(())
}

fn install_packages(client: &Client, to: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(to);
    let installed = run(&format!("install {}", client.what), &mut npm);
    if installed.is_err() {
        // Half an installation must not pass for a whole one.
        fs::remove_dir_all(to.join("node_modules")).ok();
    }
    installed
}

/// Bundles a program of a client. The client with [`BUNDLER`] must be installed.
fn bundle(client: &Client, program: &Path, file: &Path) -> Result<()> {
    // An old one must not pass for the one of this program.
    fs::remove_file(file).ok();
    let mut command = Command::new("node");
    command.arg(target_folder().join("clients").join(BUNDLER)).arg(program);
    command.args(["--bundle", "--platform=node", "--format=esm", "--log-level=warning"]);
    command.arg(format!("--banner:js={REQUIRE}")).arg(format!("--outfile={}", file.display()));
    run(&format!("bundle a user of {}", client.what), &mut command)
}

/// Copies a file into a folder.
fn copy(file: &Path, folder: &Path) -> Result<()> {
    files::copy(file, &folder.join(file.file_name().unwrap_or_default()))
}
