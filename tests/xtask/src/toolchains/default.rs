//! Guests that toolchains build with the settings that they have by default, without an SDK.

use std::process::Command;

use wattle_needs::Program;
use wattle_needs::clients::GUESTS as FOLDER;

use super::{CONTRACT, Guest, NODE_PIN, PYTHON_PIN, Paths};

/// The name of the world of the guests.
const WORLD_NAME: &str = "plugin";

/// The world of the guests.
const WORLD: (&str, &str) = ("tests/clients/toolchains/wit/world.wit", "wit/world.wit");

/// The contract, from which the world takes its interfaces.
const INTERFACES: (&str, &str) = (CONTRACT, "wit/deps/wattle");

/// The source for both engines of JavaScript.
const SCRIPT: (&str, &str) = ("tests/clients/toolchains/plugin.js", "plugin.js");

/// The folder of the script that tries what WASI has, in the folder of the build.
const EXPLORER: &str = "misdeeds-quickjs";

/// The guests, each with the name of its toolchain. The last one calls imports of WASI, for which
/// the engine has no functions.
pub(super) const GUESTS: &[Guest] = &[
    Guest {
        name: "quickjs",
        what: "QuickJS",
        programs: &[Program::Node, Program::Npm],
        copied: &[SCRIPT, WORLD, INTERFACES],
        read: &[NODE_PIN],
        commands: |paths| componentize_qjs(paths, "wit", "plugin.js"),
    },
    Guest {
        name: "starlingmonkey",
        what: "StarlingMonkey",
        programs: &[Program::Node, Program::Npm],
        copied: &[SCRIPT, WORLD, INTERFACES],
        read: &[NODE_PIN],
        commands: starlingmonkey,
    },
    Guest {
        name: "python",
        what: "Python",
        programs: &[Program::Python],
        copied: &[("tests/clients/toolchains/python", "python"), WORLD, INTERFACES],
        read: &[PYTHON_PIN],
        commands: componentize_py,
    },
    Guest {
        name: "c",
        what: "C",
        programs: &[Program::Python, Program::Node, Program::Npm],
        copied: &[("tests/clients/toolchains/plugin.c", "plugin.c"), WORLD, INTERFACES],
        read: &[PYTHON_PIN, NODE_PIN],
        commands: c,
    },
    Guest {
        name: "misdeeds-quickjs",
        what: "QuickJS with misdeeds",
        programs: &[Program::Node, Program::Npm],
        copied: &[
            ("tests/guests/misdeeds/quickjs", EXPLORER),
            (CONTRACT, "misdeeds-quickjs/wit/deps/wattle"),
        ],
        read: &[NODE_PIN],
        commands: |paths| {
            componentize_qjs(paths, &format!("{EXPLORER}/wit"), &format!("{EXPLORER}/explore.js"))
        },
    },
];

fn componentize_qjs(paths: &Paths, world: &str, script: &str) -> Vec<Command> {
    let program = "node_modules/componentize-qjs/cli.mjs";
    let arguments = [program, "--wit", world, "--js", script, "--output", &paths.guest];
    vec![paths.command("node", &arguments)]
}

fn starlingmonkey(paths: &Paths) -> Vec<Command> {
    let program = "node_modules/@bytecodealliance/componentize-js/src/cli.js";
    let world = ["--wit", "wit", "--world-name", WORLD_NAME];
    let mut command = paths.command("node", &[program, "plugin.js"]);
    command.args(world).args(["--out", &paths.guest]);
    vec![command]
}

fn componentize_py(paths: &Paths) -> Vec<Command> {
    let world = ["--wit-path", "wit", "--world", WORLD_NAME];
    let mut command = paths.command(paths.python.join("componentize-py"), &world);
    command.args(["componentize", "plugin", "--python-path", "python", "--output", &paths.guest]);
    vec![command]
}

/// The compiler makes a module for `wasm32-wasip1`. The second command adds the component type, and
/// the host makes a component of it.
fn c(paths: &Paths) -> Vec<Command> {
    let module = format!("{FOLDER}/c.module.wasm");
    let mut compile = paths.zig();
    compile.args(["-Wall", "-Wextra", "-Werror", "-o", &module, "plugin.c"]);
    let program = "node_modules/@bytecodealliance/jco/src/jco.js";
    let mut embed = paths.command("node", &[program, "embed", &module]);
    embed.args(["--wit", "wit", "--world-name", WORLD_NAME, "--output", &paths.guest]);
    vec![compile, embed]
}
