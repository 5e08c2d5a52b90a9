//! Third-party programs for tests, installed once below cargo's target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use wattle_needs::Program;
use wattle_needs::clients::{BUNDLE, BUNDLED, TOOLCHAINS};

use crate::shell::{root, say, target_folder};
use crate::step::run;
use crate::{browser, files, python, python_sdk};

/// A client for Node.js, which is installed in a separate folder.
struct Client {
    /// The folder below `tests/clients`, and below the folder of installed clients.
    folder: &'static str,
    /// A description for step names.
    what: &'static str,
    /// The folder below `tests/clients` whose programs (`*.mjs` and `*.ts`) use the client. They
    /// are copied into the installed client, because Node.js resolves packages from the folder of
    /// a program.
    programs: &'static str,
}

/// The bundler, below the folder of installed clients.
const BUNDLER: &str = "react/node_modules/esbuild/bin/esbuild";

/// The lock file that pins the bundler's version.
const BUNDLER_LOCK: &str = "react/package-lock.json";

/// The folder below `tests/clients` with a page, whose program is bundled for a browser.
const PAGED: &str = "react";

/// The program of the page in [`PAGED`].
const PAGE: &str = "chat.mjs";

/// The file name of the bundle of [`PAGE`], in the folder of the client.
const PAGE_BUNDLE: &str = "chat.bundle.js";

/// Selects the builds of libraries for developers, which warn about wrong uses.
const FOR_DEVELOPERS: &str = "--define:process.env.NODE_ENV=\"development\"";

/// The file with the inputs of a bundle, in the folder of the bundle.
const BUNDLE_INPUTS: &str = "user.bundle.inputs";

/// The folder below `tests/clients` whose programs are in TypeScript. They are compiled in the
/// folder of the installed client.
const TYPED: &str = "page";

/// The configuration of the compiler, beside the programs in TypeScript.
const COMPILER_CONFIGURATION: &str = "tsconfig.json";

/// The file with the inputs of compiled programs, in their folder.
const COMPILER_INPUTS: &str = "programs.inputs";

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
const LOCK: &str = "package-lock.json";

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
    copy_programs(&clients.join(client.programs), &to)?;
    if !complete {
        install_packages(client, &to)?;
    }
    let (bundled, program) = BUNDLED;
    match client.programs {
        TYPED => compile(client, &to),
        PAGED => bundle(client, &to, PAGE, PAGE_BUNDLE, &["--format=esm", FOR_DEVELOPERS]),
        folder if folder == bundled => {
            let require = format!("--banner:js={REQUIRE}");
            bundle(client, &to, program, BUNDLE, &["--platform=node", "--format=esm", &require])
        }
        _ => Ok(()),
    }
}

/// Copies programs into the folder of a client, and removes those that exist only there.
fn copy_programs(from: &Path, to: &Path) -> Result<()> {
    let sources = programs(from)?;
    for file in programs(to)? {
        if sources.iter().all(|source| source.file_name() != file.file_name()) {
            fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
    }
    sources.iter().try_for_each(|file| copy(file, to))
}

/// Returns the programs in a folder and the configuration of their compiler, sorted by name.
fn programs(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = files.collect::<Result<_>>()?;
    files.retain(|file| {
        let has_name = |wanted: &str| file.file_name().is_some_and(|name| name == wanted);
        let is_program = file.extension().is_some_and(|ending| ending == "mjs" || ending == "ts");
        is_program && !has_name(BUNDLE) || has_name(COMPILER_CONFIGURATION)
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

/// Bundles a program of a client in its folder. The client with [`BUNDLER`] must be installed.
fn bundle(
    client: &Client,
    folder: &Path,
    program: &str,
    bundle: &str,
    options: &[&str],
) -> Result<()> {
    let clients = target_folder().join("clients");
    let file = folder.join(bundle);
    let mut command = Command::new("node");
    command.arg(clients.join(BUNDLER)).arg(folder.join(program));
    command.args(["--bundle", "--log-level=warning"]).args(options);
    command.arg(format!("--outfile={}", file.display()));
    let what = format!("bundle the program for {}", client.what);
    let locks = [folder.join(LOCK), clients.join(BUNDLER_LOCK)];
    make(&what, folder, &locks, BUNDLE_INPUTS, &file, &mut command)
}

/// Checks the types of the programs in the folder of a client, and compiles them.
fn compile(client: &Client, folder: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["run", "build", "--loglevel=error"]).current_dir(folder);
    let what = format!("compile the programs for {}", client.what);
    let program = folder.join(browser::PROGRAM);
    make(&what, folder, &[folder.join(LOCK)], COMPILER_INPUTS, &program, &mut npm)
}

/// Runs `command`, which makes `file` from the programs in `folder`, unless the programs and the
/// lock files are unchanged since `file` was made. Stores their content in the file `record` of the
/// folder.
fn make(
    what: &str,
    folder: &Path,
    locks: &[PathBuf],
    record: &str,
    file: &Path,
    command: &mut Command,
) -> Result<()> {
    let mut inputs = Vec::new();
    for input in programs(folder)?.iter().chain(locks) {
        inputs.extend(fs::read(input).with_context(|| format!("cannot read {}", input.display()))?);
    }
    let record = folder.join(record);
    if file.is_file() && fs::read(&record).is_ok_and(|known| known == inputs) {
        return Ok(());
    }
    // If the command fails, an outdated file must not remain.
    fs::remove_file(file).ok();
    run(what, command)?;
    fs::write(&record, inputs).with_context(|| format!("cannot write {}", record.display()))
}

/// Checks lints and format of the programs in TypeScript, whose types are checked when they are
/// compiled. Their client must be installed.
pub(crate) fn check() -> Result<()> {
    let client = target_folder().join("clients").join(TYPED);
    let mut biome = Command::new(client.join("node_modules/.bin/biome"));
    biome.args(["ci", "--error-on-warnings", "."]);
    biome.current_dir(root().join("tests/clients").join(TYPED));
    run("check the programs for the browser", &mut biome)
}

/// Copies a file into a folder.
fn copy(file: &Path, folder: &Path) -> Result<()> {
    files::copy(file, &folder.join(file.file_name().unwrap_or_default()))
}
