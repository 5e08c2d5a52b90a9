//! Guests that use the SDKs for TypeScript, Python and C: the conformance plugin, and the twins of
//! the misdeeds in Rust. Each is built as the README of its SDK says.

use std::process::Command;

use wattle_needs::Program;

use super::{CONTRACT, Guest, NODE_PIN, PYTHON_PIN, Paths};
use crate::pages::SDK as TYPESCRIPT;
use crate::shell::root;

/// The SDK for C, relative to the root.
const C: &str = "plugins/sdk/c";

/// The modules of the SDK for Python, with the contract.
const PYTHON: (&str, &str) = ("plugins/sdk/python/src", "sdk/python");

/// The packages of the pages and of the SDK for TypeScript, which the guests share.
pub(super) const PACKAGES: &str = "sdk/node_modules";

/// Files and folders on which guests in TypeScript depend, relative to the root. StarlingMonkey is
/// a package of the toolchains, which are installed above the packages of the guests.
const TYPESCRIPT_INPUTS: &[&str] = &[
    "plugins/package-lock.json",
    "plugins/sdk/typescript/bin",
    "plugins/sdk/typescript/build",
    "plugins/sdk/typescript/package.json",
    "plugins/sdk/typescript/src",
    CONTRACT,
    NODE_PIN,
];

/// The guests.
pub(super) const GUESTS: &[Guest] = &[
    Guest {
        name: "conformance-typescript",
        what: "the TypeScript SDK for conformance",
        programs: &[Program::Node, Program::Npm],
        copied: &[("tests/guests/conformance/typescript", "sdk/conformance-typescript")],
        read: TYPESCRIPT_INPUTS,
        commands: |paths| typescript(paths, "conformance-typescript"),
    },
    Guest {
        name: "conformance-starlingmonkey",
        what: "the TypeScript SDK with StarlingMonkey for conformance",
        programs: &[Program::Node, Program::Npm],
        copied: &[("tests/guests/conformance/typescript", "sdk/conformance-typescript")],
        read: TYPESCRIPT_INPUTS,
        commands: |paths| starlingmonkey(paths, "conformance-typescript"),
    },
    Guest {
        name: "conformance-python",
        what: "the Python SDK for conformance",
        programs: &[Program::Python],
        copied: &[("tests/guests/conformance/python", "sdk/conformance-python"), PYTHON],
        read: &[PYTHON_PIN],
        commands: |paths| python(paths, "conformance", "sdk/conformance-python"),
    },
    Guest {
        name: "conformance-c",
        what: "the C SDK for conformance",
        programs: &[Program::Python],
        copied: &[],
        read: &["tests/guests/conformance/c", C, CONTRACT, PYTHON_PIN],
        commands: c,
    },
    Guest {
        name: "misdeeds-typescript",
        what: "the TypeScript SDK with misdeeds",
        programs: &[Program::Node, Program::Npm],
        copied: &[("tests/guests/misdeeds/typescript", "sdk/misdeeds-typescript")],
        read: TYPESCRIPT_INPUTS,
        commands: |paths| typescript(paths, "misdeeds-typescript"),
    },
    Guest {
        name: "misdeeds-python",
        what: "the Python SDK with misdeeds",
        programs: &[Program::Python],
        copied: &[("tests/guests/misdeeds/python", "sdk/misdeeds-python"), PYTHON],
        read: &[PYTHON_PIN],
        commands: |paths| python(paths, "misdeeds", "sdk/misdeeds-python"),
    },
];

/// Returns the commands that build a guest in TypeScript. The first command checks its types,
/// because the build does not.
fn typescript(paths: &Paths, copy: &str) -> Vec<Command> {
    let mut check = node(paths, copy);
    check.args(["../node_modules/typescript/bin/tsc", "--project", "."]);
    vec![check, wattle_plugin(paths, copy)]
}

/// Returns the command that builds the same guest with the other engine.
fn starlingmonkey(paths: &Paths, copy: &str) -> Vec<Command> {
    let mut build = wattle_plugin(paths, copy);
    build.args(["--engine", "starlingmonkey"]);
    vec![build]
}

fn wattle_plugin(paths: &Paths, copy: &str) -> Command {
    let mut build = node(paths, copy);
    build.arg(root().join(format!("plugins/{TYPESCRIPT}/bin/wattle-plugin.mjs")));
    build.arg("build").arg("--out").arg(paths.folder.join(&paths.guest));
    build
}

/// Returns a command of Node.js in the folder of a guest.
fn node(paths: &Paths, copy: &str) -> Command {
    let mut command = Command::new("node");
    command.current_dir(paths.folder.join("sdk").join(copy));
    command
}

fn python(paths: &Paths, module: &str, folder: &str) -> Vec<Command> {
    let arguments = ["-m", "wattle", "build", module, "--path", folder, "--output", &paths.guest];
    let mut build = paths.command(paths.python.join("python"), &arguments);
    build.env("PYTHONPATH", paths.folder.join(PYTHON.1)).env("PYTHONDONTWRITEBYTECODE", "1");
    vec![build]
}

fn c(paths: &Paths) -> Vec<Command> {
    let sdk = root().join(C);
    let own = root().join("tests/guests/conformance/c");
    let mut compile = paths.zig();
    let files = ["conformance.c", "calls.c", "batches.c", "services.c", "handlers.c"];
    compile.arg("-I").arg(&sdk).args(files.map(|file| own.join(file)));
    let bindings = ["bindings/plugin.c", "bindings/plugin_component_type.o"];
    let sources = ["wattle.c", "web.c", "json.c"].into_iter().chain(bindings);
    compile.args(sources.map(|file| sdk.join(file)));
    compile.args(["-o", &paths.guest]);
    vec![compile]
}
